import type { Cluster, Redis } from 'ioredis';
import type { Lease } from '../../../kernel/api/lease.js';
import { type FenceGuard, guardCommands } from './fence.js';
import type { FencedCommand } from './fenced-commands.js';
import type { FenceTransaction } from '../sql/adapters.js';
import type { FenceDialect } from '../sql/dialects.js';
import { type FencedHolder, fenceSchema, guardTransaction } from '../sql/guard.js';

/**
 * Lets the open transaction of a SQL database commit only if no later holder of the resource has used the guard. Make
 * it the first statement of each transaction under the lock:
 *
 * ```ts
 * await db.transaction(async (tx) => {
 *   await fence.guard(tx, lease);
 *   // read and write
 * });
 * ```
 *
 * It stores the fencing token in the row of the resource, in the table of `fence.schema()`. The row stays locked until
 * the transaction ends: a later holder waits there, and then reads the data that this one has committed. If a later
 * holder was there first, the call throws, and the transaction has to be rolled back. All supported libraries roll back
 * when their callback throws. Do not swallow the error: PostgreSQL would refuse to commit, but MySQL, MariaDB and
 * SQLite would commit anyway. Do not call the guard inside a savepoint that may be rolled back while the transaction
 * continues.
 *
 * The guard is one statement, on the connection of the transaction. Guard every transaction that writes the same data,
 * under the lock of the same resource. One lease may guard many transactions.
 *
 * @param tx an open transaction of pg, postgres.js, TypeORM, `@nestjs-cls/transactional`, Prisma, MikroORM, Drizzle,
 *   Knex, Sequelize or mysql2, on PostgreSQL, MySQL, MariaDB or SQLite
 * @param holder a lease, or a resource and the token of its lease. For a lease of several resources: each of them, in
 *   the order of `lease.resources`
 * @throws StaleFencingTokenError if a later holder has used the guard: roll back
 * @throws LeaseLostError if the lease is known to be lost; nothing was sent
 * @throws InvalidLockOptionsError if no transaction is open, as far as the library knows; if the table is missing; for
 *   a lease of several resources, of a reader or of a semaphore; or if an argument is invalid
 * @throws the database's own error in every other case, such as a deadlock or a serialization failure
 */
async function guard(tx: FenceTransaction, holder: Lease | FencedHolder): Promise<void>;
/**
 * Runs commands only if the guard has seen no larger fencing token. Comparing the token, storing it and running the
 * commands are one atomic step in Redis. The token of the last write is accepted again, so one lease can write many
 * times.
 *
 * ```ts
 * await fence.guard(redis, { key: 'fence:stock:{7}', lease }, [
 *   ['SET', 'stock:{7}:left', 3],
 *   ['RPUSH', 'stock:{7}:log', 'sold 1'],
 * ]);
 * ```
 *
 * Without commands, it only stores the token. Do that before you read the data that you are going to change, or read it
 * under the guard: from then on, no earlier holder can change it.
 *
 * The client's `keyPrefix` is prepended to the key of the guard and to the keys of the commands, as in the client's own
 * commands: `['SET', 'a', 1]` writes what `redis.get('a')` reads. A command that ioredis does not know, such as a
 * command of a Redis module, is sent unchanged, like by `redis.call()`.
 *
 * Before the first use of a command, COMMAND INFO asks Redis whether the command may run in a script. If the client is
 * not allowed to use COMMAND INFO, the process emits a warning.
 *
 * Redis does not roll back: if a command fails, the commands before it have run. If the reply is lost, all of them may
 * have run. The same token may write again, so use commands that can safely run twice (`SET`, not `INCR`).
 *
 * @param client your own ioredis client. It is not changed: the script is called by its hash
 * @param commands 0 or more commands as `redis.call()` takes them, of at most 5,000 parts each
 * @returns the reply of each command, as a script sees it: `HGETALL` is a flat array, and integers are exact up to 2^53
 * @throws StaleFencingTokenError if the guard has seen a larger token; no command has run
 * @throws FencedCommandError if a command failed; the commands before it have run
 * @throws LeaseLostError if the given lease is known to be lost; nothing was sent
 * @throws LockUnavailableError if Redis is unreachable, does not answer, or rejects the script. Its `cause` tells you
 *   if the commands may have run
 * @throws InvalidLockOptionsError if an argument is invalid, or the lease belongs to a reader or a semaphore; nothing
 *   was sent
 */
async function guard(
  client: Redis | Cluster,
  options: FenceGuard,
  commands: readonly FencedCommand[],
): Promise<unknown[]>;
async function guard(
  target: FenceTransaction | Redis | Cluster,
  holder: Lease | FencedHolder | FenceGuard,
  commands?: readonly FencedCommand[],
): Promise<unknown> {
  if (commands !== undefined || isRedisClient(target)) {
    return guardCommands(target as Redis, holder as FenceGuard, commands as readonly FencedCommand[]);
  }
  return guardTransaction(target, holder as Lease | FencedHolder);
}

/** A transaction of Knex or postgres.js is a function, which has `call` as well. */
function isRedisClient(target: unknown): target is Redis | Cluster {
  return typeof target === 'object' && typeof (target as Partial<Redis> | null)?.call === 'function';
}

/**
 * Returns the statement that creates the table in which `fence.guard` stores the tokens of SQL transactions. Add it to
 * your migrations: nothing creates the table at run time.
 *
 * @param dialect the database; use `mysql` for MariaDB too
 */
function schema(dialect: FenceDialect): string {
  return fenceSchema(dialect);
}

/**
 * The receiver's side of fencing: `fence.guard` rejects writes with a stale fencing token, in Redis or in a SQL
 * transaction. `fence.schema` returns the table that SQL transactions need.
 */
export const fence = { guard, schema } as const;

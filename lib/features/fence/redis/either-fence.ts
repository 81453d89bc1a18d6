import type { Cluster, Redis } from 'ioredis';
import type { Lease } from '../../../kernel/api/lease.js';
import { type FenceGuard, guardCommands } from './fence.js';
import type { FencedCommand } from './fenced-commands.js';
import type { FenceTransaction } from '../sql/adapters.js';
import type { FenceDialect } from '../sql/dialects.js';
import { type FencedHolder, fenceSchema, guardTransaction } from '../sql/guard.js';

/**
 * Lets the open transaction of a SQL database commit only if no later holder of the resource has come. Make it the
 * first statement of each transaction under the lock:
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
 * holder has come before, the call throws, and the transaction has to be rolled back. All of these libraries do that
 * when their callback throws. PostgreSQL commits nothing after that, even if the error is swallowed; MySQL, MariaDB and
 * SQLite do. Do not call it in a savepoint that may be rolled back while the transaction continues.
 *
 * It is one statement, on the connection of the transaction. Every transaction that writes the same data has to be
 * guarded, under the lock of the same resource. One lease may guard many transactions.
 *
 * @param tx an open transaction of pg, postgres.js, TypeORM, `@nestjs-cls/transactional`, Prisma, MikroORM, Drizzle,
 * Knex, Sequelize or mysql2, on PostgreSQL, MySQL, MariaDB or SQLite
 * @param holder a lease, or a resource and the token of its lease. For a lease of several resources: each of them, in
 * the order of `lease.resources`
 * @throws StaleFencingTokenError when a later holder has come: roll back
 * @throws LeaseLostError when the lease is known to be lost: nothing was sent
 * @throws InvalidLockOptionsError when no transaction is open, as far as the library knows; when the table is missing;
 * for a lease of several resources, of a reader or of a semaphore; and when an argument is invalid
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
 * Without commands, it only stores the token. Do that before you read what you are going to change, or read under the
 * guard: from then on, no earlier holder can change it.
 *
 * The client's `keyPrefix` is put before the key of the guard and the keys of the commands, exactly as the client does
 * it: `['SET', 'a', 1]` writes what `redis.get('a')` reads. A command that ioredis does not know, such as one of a
 * module, is sent as it is written, as `redis.call()` does.
 *
 * Before the first use of a command, COMMAND INFO asks Redis whether the command may run in a script. If the client may
 * not use COMMAND INFO, the process emits a warning.
 *
 * Redis does not roll back: when a command fails, the commands before it were executed. When the reply is lost, all of
 * them may have been executed. The same token may write again, so use commands that may run twice (`SET`, not `INCR`).
 *
 * @param client your own ioredis client. It is not changed: the script is called by its hash
 * @param commands 0 or more commands as `redis.call()` takes them, of at most 5,000 parts each
 * @returns the reply of each command, as a script sees it: `HGETALL` is a flat array, and integers are exact up to 2^53
 * @throws StaleFencingTokenError when the guard has seen a larger token: nothing was executed
 * @throws FencedCommandError when a command failed: the commands before it were executed
 * @throws LeaseLostError when the given lease is known to be lost: nothing was sent
 * @throws LockUnavailableError when Redis cannot be reached, does not answer, or refuses. Its cause tells you if the
 * commands may have run
 * @throws InvalidLockOptionsError when an argument is invalid, or the lease belongs to a reader or a semaphore: nothing
 * was sent
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
 * @param dialect `mysql` is for MariaDB, too
 */
function schema(dialect: FenceDialect): string {
  return fenceSchema(dialect);
}

/** The receiver's side of fencing. */
export const fence = { guard, schema } as const;

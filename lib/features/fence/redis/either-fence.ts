import type { Cluster, Redis } from 'ioredis';
import type { Lease } from '../../../kernel/api/lease.js';
import { type FenceGuard, guardCommands } from './fence.js';
import type { FencedCommand } from './fenced-commands.js';
import type { FenceTransaction } from '../sql/adapters.js';
import type { FenceDialect } from '../sql/dialects.js';
import { type FencedHolder, fenceSchema, guardTransaction } from '../sql/guard.js';

/**
 * Lets a transaction of a SQL database commit only if no later holder of the resource has used the guard. Call it first
 * in each transaction under the lock:
 *
 * ```ts
 * await db.transaction(async (tx) => {
 *   await fence.guard(tx, lease);
 *   // read and write
 * });
 * ```
 *
 * The guard stores the fencing token in the row of the resource, in the table of `fence.schema()`, and the row stays
 * locked until the transaction ends. If a later holder was there first, the guard throws. Let the error roll the
 * transaction back: if you swallow it, MySQL, MariaDB and SQLite commit anyway. Do not call the guard inside a
 * savepoint that may be rolled back while the transaction continues.
 *
 * Guard every transaction that writes the same data, under the lock of the same resource.
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
 * Before you read data that you are going to change, call the guard with `[]`, which only stores the token, or read
 * under the guard: from then on, no earlier holder can change the data.
 *
 * The client's `keyPrefix` is prepended to the key of the guard and to the keys of the commands, except for commands
 * that ioredis doesn't know, such as those of a Redis module.
 *
 * Redis does not roll back: if a command fails, the commands before it have run. If the reply is lost, all of them may
 * have run. The same token may write again, so use commands that can safely run twice (`SET`, not `INCR`).
 *
 * @param client your own ioredis client; it is not changed
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

import type { Cluster, Redis } from 'ioredis';
import { InvalidLockOptionsError, LockUnavailableError } from '../../core/api/errors.js';
import { FencedCommandError, StaleFencingTokenError } from '../../core/api/lease-errors.js';
import type { Lease } from '../../core/api/lease.js';
import { LockStoreError } from '../../core/store/lock-store.js';
import { checkInteger, checkKnownOptions, describeValue } from '../../core/api/validation.js';
import { type Advice, replyCode, shortenReply, toStoreError } from '../script/failures.js';
import { type FencedCommand, packCommands } from './fenced-commands.js';
import { checkRunnable } from './script-commands.js';
import { GUARD } from '../script/scripts.js';

const OPTION_NAMES = ['key', 'token', 'lease', 'ttlMs'];
const MIN_TTL_MS = 60_000;
const MAX_TTL_MS = 365 * 86_400_000;

const ADVICE: Advice = {
  WRONGTYPE: 'Give the guard a key of its own, in which nothing else is kept',
  CROSSSLOT: 'On a cluster the key of the guard and those of the commands need one hash tag, such as stock:{7}',
  NOPERM:
    'The ACL user needs EVALSHA, EVAL, GET, SET and the commands themselves, for the key of the guard and their keys',
  NOAUTH: 'Give the password to the client',
  WRONGPASS: 'Check user name and password of the client',
};

interface GuardRegister {
  /**
   * The key in which the guard remembers the largest token: one that nothing else uses, such as `fence:stock:{7}`. The client's
   * `keyPrefix` is put before it. All writers of what is guarded have to name the same one. On a cluster it has to
   * share its slot with the keys of the commands.
   */
  readonly key: string;
  /**
   * How long the guard remembers, from the last accepted write on: 1 min to 365 days. It must be longer than any process can stand
   * still, because a guard that has forgotten accepts every token.
   *
   * @default for ever
   */
  readonly ttlMs?: number;
}

/** Under what a write stands: where the largest token is remembered, and the token of the one who writes. */
export type FenceGuard = GuardRegister &
  (
    | {
        /** `lease.fencingToken`, or `lease.fencingTokenOf(resource)` of a lease of several resources. */
        readonly token: number;
        readonly lease?: never;
      }
    | {
        /** In place of `token`: its token is sent, unless the lease is known to be lost already. */
        readonly lease: Lease;
        readonly token?: never;
      }
  );

/**
 * Runs commands only if no larger fencing token has been here: comparing, remembering the token and running the commands are
 * one atomic step in Redis. The token of the last write is accepted again, so one lease can write many times.
 *
 * ```ts
 * await fence.guard(redis, { key: 'fence:stock:{7}', lease }, [
 *   ['SET', 'stock:{7}:left', 3],
 *   ['RPUSH', 'stock:{7}:log', 'sold 1'],
 * ]);
 * ```
 *
 * Without commands it only remembers the token. Do that, or read under the guard, before you read what you are going to change:
 * from then on no earlier holder can change it.
 *
 * The client's `keyPrefix` is put before the key of the guard and the keys of the commands, exactly where the client itself
 * would: `['SET', 'a', 1]` writes what `redis.get('a')` reads. A command that ioredis does not know (of a module) is sent as it
 * is written, as by `redis.call()`.
 *
 * Before the first use of a command Redis is asked, by COMMAND INFO, whether it runs it in a script; a client that may not ask
 * gets a warning of the process.
 *
 * Redis does not roll back: when a command fails, those before it were executed. And when the reply was lost, all of them may
 * have been: the same token may write again, so use commands that may run twice (`SET`, not `INCR`).
 *
 * @param client your own ioredis client. It is not changed: the script runs by its hash
 * @param commands what `redis.call()` would take: 0 or more, of at most 5,000 parts each
 * @returns the reply of each command, as a script gives it: `HGETALL` is a flat array, integers are exact up to 2^53
 * @throws StaleFencingTokenError when a larger token has been here: nothing was executed
 * @throws FencedCommandError when a command failed: those before it were executed
 * @throws LeaseLostError when the given lease is known to be lost: nothing was sent
 * @throws LockUnavailableError when Redis cannot be reached, does not answer, or refuses. Its cause says whether the commands
 *   may have been executed
 * @throws InvalidLockOptionsError when something cannot be right: nothing was sent
 */
async function guard(
  client: Redis | Cluster,
  options: FenceGuard,
  commands: readonly FencedCommand[],
): Promise<unknown[]> {
  checkClient(client);
  const { key, token, ttlMs = '' } = checkGuard(options);
  const { names, keys, layout, values } = packCommands(commands, key);
  // Mostly known already.
  const asking = checkRunnable(client, commands);
  if (asking) {
    await asking.catch((error: unknown) => {
      throw error instanceof InvalidLockOptionsError ? error : unavailable(key, error, false);
    });
  }
  options.lease?.assertHeld();
  const reply = await run(client, [key, ...keys], [String(token), String(ttlMs), layout, ...values]).catch(
    (error: unknown) => {
      throw unavailable(key, error);
    },
  );
  const [status, ...rest] = reply as [string, ...unknown[]];
  if (status === 'stale') throw new StaleFencingTokenError(key, token, Number(rest[0]));
  if (status === 'failed') {
    const index = Number(rest[0]);
    throw new FencedCommandError(key, index, names[index]!, shortenReply(String(rest[1])));
  }
  return rest;
}

/** The receiver's side of fencing, for what is kept in Redis. */
export const fence = { guard } as const;

/** By what the client itself has, of whichever copy of ioredis it is. Not `defineCommand`, which would change it. */
async function run(
  client: Redis | Cluster,
  keys: readonly (string | Buffer)[],
  args: readonly (string | Buffer)[],
): Promise<unknown> {
  try {
    return await client.call('evalsha', [GUARD.sha, keys.length, ...keys, ...args]);
  } catch (error) {
    // Not instanceof, see toStoreError.
    if (replyCode((error as Partial<Error> | undefined)?.message ?? '') !== 'NOSCRIPT') throw error;
    return client.call('eval', [GUARD.lua, keys.length, ...keys, ...args]);
  }
}

/**
 * Of what ioredis rejects with, only the message: the error has the arguments of the command.
 *
 * @param wasSent whether there was a command that may have been executed
 */
function unavailable(key: string, error: unknown, wasSent = true): LockUnavailableError {
  const sorted = toStoreError(error, ADVICE);
  const failure = !wasSent && sorted.failure === 'unknown' ? 'notExecuted' : sorted.failure;
  const { message } = sorted;
  const isUnknown = failure === 'unknown';
  const cause = new LockStoreError(
    failure,
    isUnknown ? `${message}. The commands may have been executed, or may still be` : message,
  );
  return new LockUnavailableError(key, 'write under the guard', isUnknown ? 'timeout' : 'failed', cause);
}

function checkClient(client: unknown): void {
  const { call, isPipeline } = (client ?? {}) as { call?: unknown; isPipeline?: boolean };
  if (typeof call === 'function' && !isPipeline) return;
  throw new InvalidLockOptionsError(
    `fence.guard needs an ioredis client (Redis or Cluster), not ${isPipeline ? 'a pipeline' : describeValue(client)}.`,
    'client',
  );
}

function checkGuard(options: FenceGuard): { key: string; token: number; ttlMs: number | undefined } {
  checkKnownOptions('the guard', options, OPTION_NAMES);
  const { key, lease, ttlMs } = options;
  if (typeof key !== 'string' || key === '' || !key.isWellFormed()) {
    throw new InvalidLockOptionsError(`key must be a non-empty, well-formed text, not ${describeValue(key)}.`, 'key');
  }
  if ((options.token === undefined) === (lease === undefined)) {
    throw new InvalidLockOptionsError('A guard needs either token or lease, and not both.', 'token');
  }
  if (lease !== undefined && typeof (lease as Partial<Lease> | null)?.assertHeld !== 'function') {
    throw new InvalidLockOptionsError(`lease must be a lease, not ${describeValue(lease)}.`, 'lease');
  }
  const token = lease === undefined ? options.token : lease.fencingToken;
  // Not undefined, which passes for an option that was left out.
  checkInteger('token', token ?? null, 1, Number.MAX_SAFE_INTEGER, 'a fencing token');
  checkInteger('ttlMs', ttlMs, MIN_TTL_MS, MAX_TTL_MS);
  return { key, token, ttlMs };
}

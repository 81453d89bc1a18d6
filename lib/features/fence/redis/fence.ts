import type { Cluster, Redis } from 'ioredis';
import { InvalidLockOptionsError, LockUnavailableError } from '../../../kernel/api/errors.js';
import type { Lease } from '../../../kernel/api/lease.js';
import { LockStoreError } from '../../../kernel/store/store-error.js';
import { describeValue, Option, type OptionsOf, OptionTable } from '../../../kernel/api/validation.js';
import { type Advice, replyCode, shortenReply, toStoreError } from '../../../redis/script/failures.js';
import { type FencedCommand, packCommands } from './fenced-commands.js';
import { checkRunnable } from './script-commands.js';
import { GUARD } from '../../../redis/script/scripts.js';
import { checkExcludes } from '../sql/guard.js';
import { FencedCommandError, StaleFencingTokenError } from '../core/fence-errors.js';

const MIN_TTL_MS = 60_000;
const MAX_TTL_MS = 365 * 86_400_000;

const ADVICE: Advice = {
  WRONGTYPE: 'Give the guard a key that nothing else uses',
  CROSSSLOT: 'On a cluster, the keys of the guard and of the commands need the same hash tag, such as stock:{7}',
  NOPERM: 'The ACL user needs EVALSHA, EVAL, GET, SET and the commands themselves, for the keys of guard and commands',
  NOAUTH: 'Set the password of the client',
  WRONGPASS: 'Check the user name and the password of the client',
};

interface GuardRegister {
  /**
   * The key in which the guard stores the largest token, such as `fence:stock:{7}`. Nothing else may use this key. The
   * client's `keyPrefix` is prepended to it. All processes that write the guarded data must use the same key. On a
   * cluster, it must be in the same slot as the keys of the commands.
   */
  readonly key: string;
  /**
   * Time for which the guard remembers the token after the last accepted write, in milliseconds: 1 minute to 365 days.
   * Choose a time longer than any process can be blocked or suspended, because a guard that has forgotten its token
   * accepts every token.
   *
   * @default forever
   */
  readonly ttlMs?: number;
}

/** The key that stores the largest token so far, and the token of the writer. */
export type FenceGuard = GuardRegister &
  (
    | {
        /** `lease.fencingToken`, or `lease.fencingTokenOf(resource)` for a lease of several resources. */
        readonly token: number;
        readonly lease?: never;
      }
    | {
        /**
         * Used instead of `token`: the guard sends the token of this lease, and throws if the lease is known to be
         * lost. Leases of readers and semaphores are rejected, because they share the resource.
         */
        readonly lease: Lease;
        readonly token?: never;
      }
  );

/** @see the JSDoc of `fence`, in `lib/fence.ts` */
export async function guardCommands(
  client: Redis | Cluster,
  options: FenceGuard,
  commands: readonly FencedCommand[],
): Promise<unknown[]> {
  checkClient(client);
  const { key, token, ttlMs = '' } = checkGuard(options);
  const { names, keys, layout, values } = packCommands(commands, key);
  // Most commands are known already: then there is nothing to wait for.
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

/**
 * Uses only methods of the client itself: it may come from another copy of ioredis. `defineCommand` would change the
 * client.
 */
async function run(
  client: Redis | Cluster,
  keys: readonly (string | Buffer)[],
  args: readonly (string | Buffer)[],
): Promise<unknown> {
  try {
    return await client.call('evalsha', [GUARD.sha, keys.length, ...keys, ...args]);
  } catch (error) {
    // Not instanceof: the error may come from another copy of ioredis, too.
    if (replyCode((error as Partial<Error> | undefined)?.message ?? '') !== 'NOSCRIPT') throw error;
    return client.call('eval', [GUARD.lua, keys.length, ...keys, ...args]);
  }
}

/**
 * Takes only the message of an ioredis error: the error itself contains the arguments of the command.
 *
 * @param wasSent whether a command was sent that may have been executed
 */
function unavailable(key: string, error: unknown, wasSent = true): LockUnavailableError {
  const sorted = toStoreError(error, ADVICE);
  const failure = !wasSent && sorted.failure === 'unknown' ? 'notExecuted' : sorted.failure;
  const { message } = sorted;
  const isUnknown = failure === 'unknown';
  const cause = new LockStoreError(
    failure,
    isUnknown ? `${message}. The commands may have been executed, or may still be executed` : message,
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

const GUARD_OPTIONS = new OptionTable({
  key: Option.checked<string>(checkKey).required(),
  token: Option.atLeast(1, 'a fencing token'),
  lease: Option.checked<Lease>(checkLease),
  ttlMs: Option.milliseconds(MIN_TTL_MS, MAX_TTL_MS),
} satisfies OptionsOf<FenceGuard>);

function checkGuard(options: FenceGuard): { key: string; token: number; ttlMs: number | undefined } {
  GUARD_OPTIONS.check('the guard', options);
  const { key, lease, ttlMs } = options;
  if ((options.token === undefined) === (lease === undefined)) {
    throw new InvalidLockOptionsError('A guard needs either token or lease, not both.', 'token');
  }
  if (lease === undefined) return { key, token: options.token, ttlMs };
  checkExcludes(lease);
  const { fencingToken } = lease;
  GUARD_OPTIONS.options.token.check('token', fencingToken);
  return { key, token: fencingToken, ttlMs };
}

function checkKey(option: string, key: unknown): void {
  if (typeof key === 'string' && key !== '' && key.isWellFormed()) return;
  throw new InvalidLockOptionsError(
    `${option} must be a non-empty, well-formed text, not ${describeValue(key)}.`,
    option,
  );
}

function checkLease(option: string, lease: unknown): void {
  if (typeof (lease as Partial<Lease> | null)?.assertHeld === 'function') return;
  throw new InvalidLockOptionsError(`${option} must be a lease, not ${describeValue(lease)}.`, option);
}

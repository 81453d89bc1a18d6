import { InvalidLockOptionsError } from '../api/errors.js';
import type { LockDefaults } from '../api/lock-options.js';
import { describeValue } from '../api/validation.js';
import type { Clock, Random } from '../util/clock.js';
import type { JobClaims, JobStore } from './job-store.js';
import type { LockStore } from './lock-store.js';

/** Where a lock service keeps its locks: a store of your own. */
export interface LockStores {
  /** The lock service closes it when the application shuts down. */
  readonly locks: LockStore;
  /**
   * Of singleton jobs. With `claim` and `end` only, ticks run, and history, pauses and missed ticks are refused.
   *
   * @default none: `runSingleton` and decorated jobs are refused
   */
  readonly jobs?: JobStore | JobClaims | undefined;
  /** The time by which this process counts leases, waits and renewals. @default the system's */
  readonly clock?: Clock | undefined;
  /** @default the system's */
  readonly random?: Random | undefined;
}

/** The lock service that a store is for. */
export interface StoreContext {
  /** The `service` of the registration; `'default'` without one. */
  readonly service: string;
  /** The name of this process where holders are shown. The store must have the same one. */
  readonly instanceId: string;
  /** What every key begins with, where a store has keys. */
  readonly keyPrefix: string;
  /** The options of a lock whose call states none. */
  readonly defaults: LockDefaults;
}

/** Creates the stores of one lock service. It is called once, when the application starts. */
export type StoreFactory = (context: StoreContext) => LockStores | Promise<LockStores>;

/** The methods of a lock store that send a command. */
export const LOCK_COMMANDS = [
  'acquire',
  'rotate',
  'setDepth',
  'renew',
  'release',
  'retain',
  'label',
  'verify',
  'downgrade',
  'raiseToken',
  'transfer',
  'lowerPermits',
  'resize',
  'inspect',
  'list',
  'forceRelease',
  'watch',
] as const satisfies readonly (keyof LockStore)[];

/** What each port must have to be called one. */
const METHODS = {
  locks: [...LOCK_COMMANDS, 'fenceOf', 'trouble', 'probe', 'listen', 'close'],
  jobs: ['claim', 'end'],
  clock: ['now', 'wallNow', 'setTimer'],
  random: ['id', 'fraction'],
} as const satisfies {
  readonly [K in keyof Required<LockStores>]: readonly (keyof NonNullable<LockStores[K]>)[];
};

/** What a job store has that remembers jobs: all of these, or none. */
const RECORD_METHODS = [
  'note',
  'look',
  'pause',
  'resume',
  'register',
  'list',
] as const satisfies readonly (keyof JobStore)[];

/** Whether jobs are remembered there. */
export function hasRecords(jobs: JobStore | JobClaims): jobs is JobStore {
  return RECORD_METHODS.some((method) => method in jobs);
}

/**
 * Checks what a {@link StoreFactory} returned.
 *
 * @throws InvalidLockOptionsError that names what is missing
 */
export function checkLockStores(stores: unknown, instanceId: string): asserts stores is LockStores {
  if (typeof stores !== 'object' || stores === null) {
    throw invalid(`store must return { locks, jobs?, clock?, random? }, not ${describeValue(stores)}`);
  }
  const given = stores as Record<string, unknown>;
  for (const [part, methods] of Object.entries(METHODS)) {
    const value = given[part];
    if (value === undefined && part !== 'locks') continue;
    const wanted = part === 'jobs' && hasRecords(Object(value)) ? [...methods, ...RECORD_METHODS] : methods;
    const missing = wanted.filter((method) => typeof Object(value)[method] !== 'function');
    if (missing.length === 0) continue;
    throw invalid(
      `${part} in the result of store must have the methods ${wanted.join(', ')}. It lacks ${missing.join(', ')}`,
    );
  }
  const { clientId, instanceId: own } = given['locks'] as LockStore;
  if (own !== instanceId) {
    throw invalid(
      `locks.instanceId in the result of store must be the instanceId that store was called with (${instanceId}), ` +
        `not ${describeValue(own)}`,
    );
  }
  if (typeof clientId === 'string' && clientId.startsWith(instanceId)) return;
  throw invalid(
    `locks.clientId in the result of store must be a text that begins with the instanceId (${instanceId}), ` +
      `not ${describeValue(clientId)}`,
  );
}

function invalid(message: string): InvalidLockOptionsError {
  return new InvalidLockOptionsError(`${message}.`, 'store');
}

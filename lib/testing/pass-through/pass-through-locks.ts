import type { ForeignClient, ForeignReply } from '../../core/api/foreign-lock.js';
import { resolveLockDefaults, resolveLockOptions } from '../../core/api/lock-options.js';
import { type OptionsOf, OptionTable } from '../../core/api/option-table.js';
import type { CountdownLatch, LatchOptions, LatchWaitOptions } from '../../core/latch/countdown-latch.js';
import { LockClient } from '../../core/lock-client.js';
import { withoutRecords } from '../../core/store/job-store.js';
import { AlsoLocks } from '../../migration/both/also-locks.js';
import {
  EXTRA_OPTIONS,
  MODULE_OPTIONS,
  type RedisLockModuleExtras,
  type RedisLockModuleSettings,
} from '../../nest/module/module-options.js';
import { RedisLockService } from '../../nest/redis-lock.service.js';
import { DEFAULT_NAME } from '../../nest/tokens.js';
import { NO_CHANCE, STANDING_CLOCK } from './pass-through-clock.js';
import { PassThroughGranting } from './pass-through-granting.js';
import { PassThroughLatches, PassThroughStore, PassThroughClaims } from './pass-through-store.js';

/**
 * Those options of `RedisLockModule.forRoot` that decide which calls are refused, and what a call tells. Pass what your
 * application passes, where a test depends on it.
 */
export interface PassThroughOptions
  extends
    Pick<RedisLockModuleExtras, 'service'>,
    Pick<
      RedisLockModuleSettings,
      | 'leaseMs'
      | 'waitMs'
      | 'unavailableMs'
      | 'watchdog'
      | 'attemptTimeoutMs'
      | 'localHandOvers'
      | 'localHandOversMs'
      | 'maxWaiters'
      | 'backgroundRelease'
      | 'warnAfterMs'
      | 'alsoLock'
      | 'observers'
      | 'transactions'
      | 'group'
      | 'labelGroups'
      | 'unclearNames'
    > {}

/** What operators see as the holder. */
const INSTANCE_ID = 'unit-test';

const { options } = MODULE_OPTIONS;

export const PASS_THROUGH_OPTIONS = new OptionTable({
  service: EXTRA_OPTIONS.options.service,
  leaseMs: options.leaseMs,
  waitMs: options.waitMs,
  unavailableMs: options.unavailableMs,
  watchdog: options.watchdog,
  attemptTimeoutMs: options.attemptTimeoutMs,
  localHandOvers: options.localHandOvers,
  localHandOversMs: options.localHandOversMs,
  maxWaiters: options.maxWaiters,
  backgroundRelease: options.backgroundRelease,
  warnAfterMs: options.warnAfterMs,
  alsoLock: options.alsoLock,
  observers: options.observers,
  transactions: options.transactions,
  group: options.group,
  labelGroups: options.labelGroups,
  unclearNames: options.unclearNames,
} satisfies OptionsOf<PassThroughOptions>);

/**
 * Returns a lock service for unit tests that lets every call pass: `new Shop(passThroughLocks())`. It is complete: each
 * method of `RedisLockService` works, and refuses bad names and options as in production.
 *
 * - No call waits, also where another one holds the resource: it excludes nothing. To test that, use
 *   `RedisLockTestingModule`.
 * - No lease ends before its release. Fencing tokens grow.
 * - `assertLocked()` and `currentOrThrow()` are satisfied, also outside of any lock.
 * - `campaign()` leads at once, `runSingleton()` runs the work, and `wait()` of a latch resolves.
 * - `inspect()` and `list()` tell what is held.
 * - A lock of another library (`alsoLock`) is not asked.
 *
 * It has no timers and no connections, so it needs no shutdown.
 *
 * @param given what your application passes to the module, where the test depends on it
 * @throws InvalidLockOptionsError when an option is invalid
 */
export function passThroughLocks(given: PassThroughOptions = {}): RedisLockService {
  PASS_THROUGH_OPTIONS.check('passThroughLocks', given);
  const { service: name = DEFAULT_NAME, transactions } = given;
  const store = new PassThroughStore(INSTANCE_ID);
  const defaults = resolveLockDefaults(given);
  const client = new PassThroughClient({
    store,
    clock: STANDING_CLOCK,
    random: NO_CHANCE,
    defaults,
    observers: given.observers ?? [],
    transactions,
    service: name,
    group: given.group,
    labelGroups: given.labelGroups ?? PASS_THROUGH_OPTIONS.defaults.labelGroups,
    unclearNames: given.unclearNames ?? PASS_THROUGH_OPTIONS.defaults.unclearNames,
    granting: new PassThroughGranting(store, resolveLockOptions(undefined, defaults)),
    secondLocks: (runtime) => new AlsoLocks(runtime, () => FOREIGN),
  });
  return new PassThroughService({
    client,
    singletonRuns: client.singletonRuns(withoutRecords('such locks remember no jobs', new PassThroughClaims(store))),
    latches: client.latches(new PassThroughLatches()),
    drainMs: 0,
    transactions,
  });
}

/** Stands in for the locks of other libraries. */
const FOREIGN: ForeignClient = {
  claim: () => ({
    tryAcquire: async (): Promise<ForeignReply> => ({ status: 'held' }),
    renew: async () => true,
    release: async () => true,
  }),
  close: async () => {},
};

/** It has nothing to close: time stands still, so a shutdown could not wait for work either. */
class PassThroughClient extends LockClient {
  override async shutdown(): Promise<void> {}
}

class PassThroughService extends RedisLockService {
  override latch(name: string, count: number, options?: LatchOptions): CountdownLatch {
    const latch = super.latch(name, count, options);
    // With 0, a call looks whether the latch is open.
    const passing = (given?: LatchWaitOptions) => (given?.waitMs === 0 ? { ...given, waitMs: 1 } : given);
    return { ...latch, wait: (given) => latch.wait(passing(given)) };
  }
}

import {
  DEFAULT_OPTIONS,
  type LockDefaults,
  type ResolvedLockOptions,
  resolveLockDefaults,
  resolveLockOptions,
} from '../../kernel/api/lock-options.js';
import { type OptionsOf, OptionTable, pick } from '../../kernel/api/validation.js';
import { LockClient } from '../../kernel/lock-client.js';
import type { LockClientOptions } from '../../kernel/wire.js';
import { OnceCalls } from '../../features/once/core/once-calls.js';
import type { ResultStore } from '../../features/once/core/result-store.js';
import { type JobClaims, withoutRecords } from '../../features/jobs/core/job-store.js';
import {
  EXTRA_OPTIONS,
  MODULE_OPTIONS,
  type RedisLockModuleExtras,
  type RedisLockModuleSettings,
} from '../../nest/module/module-options.js';
import { RedisLockService } from '../../nest/redis-lock.service.js';
import { DEFAULT_NAME } from '../../nest/service-parts.js';
import { LocalQueues } from '../../kernel/acquiring/local-queues.js';
import type { Lease } from '../../kernel/api/lease.js';
import type { Grant } from '../../kernel/holding/hold.js';
import { StoreLease } from '../../kernel/holding/store-lease.js';
import type { SingleLease } from '../../kernel/lease/single-lease.js';
import { createOwner } from '../../kernel/store/ask.js';
import type { Runtime } from '../../kernel/holding/runtime.js';
import type { LockOwner } from '../../kernel/store/lock-store.js';
import { MemoryLockStore } from '../../memory/memory-lock-store.js';
import { MemoryServer } from '../../memory/memory-server.js';
import { type Clock, type Random, SystemRandom, type Timer } from '../../kernel/util/clock.js';
import { soon } from '../../kernel/util/promises.js';

/**
 * The options of `RedisLockModule.forRoot` that affect which calls are rejected, and what events and errors contain.
 * Pass your application's values if a test depends on them.
 */
export interface PassThroughOptions
  extends
    Pick<RedisLockModuleExtras, 'service'>,
    Partial<Omit<LockDefaults, 'restartQuarantineMs'>>,
    Pick<RedisLockModuleSettings, 'observers' | 'transactions' | 'group' | 'labelGroups' | 'suspiciousNames'> {}

/** The holder in errors and logs. */
const INSTANCE_ID = 'unit-test';

const PASS_THROUGH_OPTIONS = new OptionTable({
  service: EXTRA_OPTIONS.options.service,
  ...DEFAULT_OPTIONS,
  ...pick(MODULE_OPTIONS.options, 'observers', 'transactions', 'group', 'labelGroups', 'suspiciousNames'),
} satisfies OptionsOf<PassThroughOptions>);

/**
 * Returns a lock service for unit tests that grants every call: `new Shop(passThroughLocks())`. It is complete: each
 * method of `RedisLockService` works, and rejects invalid names and options as in production.
 *
 * - No call waits, even if another one holds the resource. To test exclusion, use `RedisLockTestingModule`.
 * - No lease ends before its release. Fencing tokens grow.
 * - `assertLocked()` and `currentOrThrow()` succeed, even outside of any lock.
 * - `campaign()` leads at once, and `runSingleton()` runs the work.
 * - Each call of `once()` runs its work: no result is stored or shared.
 * - `inspect()` and `list()` show the current holders. If several holders would exclude each other in production, they
 *   show the first one.
 *
 * It has no timers and no connections, so it needs no shutdown.
 *
 * @param given the module options of your application, if the test depends on them
 * @throws InvalidLockOptionsError if an option is invalid
 */
export function passThroughLocks(given: PassThroughOptions = {}): RedisLockService {
  PASS_THROUGH_OPTIONS.check('passThroughLocks', given);
  const { service = DEFAULT_NAME, transactions, ...options } = PASS_THROUGH_OPTIONS.filled(given);
  const server = new PassThroughServer(STOPPED_CLOCK);
  const client = new PassThroughClient(server, {
    defaults: resolveLockDefaults(given),
    ...pick(options, 'observers', 'group', 'labelGroups', 'suspiciousNames'),
    transactions,
    service,
  });
  // Grants every tick, even one that has run already.
  const claims: JobClaims = {
    claim: async (_tick, { owner, leaseMs }) => {
      return { status: 'granted', fencingToken: server.grant(owner, leaseMs), attempt: 1 };
    },
    end: async () => true,
  };
  // Keeps no result, so each call runs its work.
  const results: ResultStore = {
    read: async () => undefined,
    claim: async (owner, leaseMs) => ({ status: 'granted', fencingToken: server.grant(owner, leaseMs) }),
    keep: (owner) => client.deps.store.release(owner),
    forget: async () => {},
  };
  // Calls with one key would share the run of the first one.
  const once = () => new OnceCalls(client.deps, client.leases, client.watches, results, options.suspiciousNames);
  return new RedisLockService({
    client,
    singletonRuns: client.jobs.runs(withoutRecords('such locks remember no jobs', claims)),
    once: {
      run: (...call) => once().run(...call),
      forget: (key) => once().forget(key),
      assertSupported: (where) => once().assertSupported(where),
    },
    drainMs: 0,
    transactions,
  });
}

/** The resource of the lease that `currentOrThrow()` returns outside of any lock. */
const ASSUMED = 'unit-test';

type ScriptName = Parameters<MemoryServer['run']>[0];

/** A server in memory where no owner blocks another one. */
class PassThroughServer extends MemoryServer {
  override run(name: ScriptName, [lock = '', ...keys]: readonly string[], args: readonly (string | number)[]): unknown {
    // Time does not advance, so a retained lock would stay forever.
    const script = name === 'retain' ? 'release' : name;
    // A watcher finds nothing there.
    const aside = asideKey(args[0]);
    const isAside = name === 'watch' || this.redis.exists(aside);
    const reply = super.run(script, [isAside ? aside : lock, ...keys], args);
    return name === 'acquire' && typeof reply !== 'number' ? super.run(name, [aside, ...keys], args) : reply;
  }

  /** @returns the fencing token */
  grant({ resource, id, mode }: LockOwner, leaseMs: number, lock = this.keys.lock(resource)): number {
    const keys = [lock, this.keys.waiters(resource), this.keys.fence(lock)];
    return this.run('acquire', keys, [id, leaseMs, '', mode]) as number;
  }
}

/** The key of an owner that found the resource taken. Nothing shows what it holds. */
function asideKey(ownerId: unknown): string {
  return `aside:${String(ownerId)}`;
}

/** Lets every call pass: nothing is busy, and no call waits. */
class PassThroughClient extends LockClient {
  readonly #assumed = new Map<string, Lease>();

  constructor(
    private readonly server: PassThroughServer,
    options: Omit<LockClientOptions, 'store' | 'clock' | 'random'>,
  ) {
    const store = new MemoryLockStore({ instanceId: INSTANCE_ID, server });
    super({ ...options, store, clock: STOPPED_CLOCK, random: NO_CHANCE });
  }

  /** Closes nothing: time does not advance, so a shutdown could not wait for work either. */
  override async shutdown(): Promise<void> {}

  protected override createQueues(runtime: Runtime): LocalQueues {
    return new PassThroughQueues(runtime);
  }

  protected override lead(resource: string, options: ResolvedLockOptions): SingleLease {
    return this.#pass(resource, options);
  }

  protected override leaseFor(resource = ASSUMED): Lease {
    const assumed = this.#assumed.get(resource);
    if (assumed?.isHeld()) return assumed;
    const lease = this.#pass(resource, resolveLockOptions(undefined, this.deps.defaults), asideKey);
    this.#assumed.set(resource, lease);
    return lease;
  }

  /** Synchronous, because a caller that has not awaited may ask for it. */
  #pass(resource: string, options: ResolvedLockOptions, keyOf?: typeof asideKey): SingleLease {
    const owner = createOwner(resource, options, this.deps);
    const now = STOPPED_CLOCK.now();
    const fencingToken = this.server.grant(owner, options.leaseMs, keyOf?.(owner.id));
    const storeLease = new StoreLease(owner, fencingToken, now, options, STOPPED_CLOCK, now);
    return this.leases.hold({ storeLease, attempts: 1, waitedMs: 0, grantedAt: now }, options);
  }
}

/** In a queue, a call would wait for the calls before it. */
class PassThroughQueues extends LocalQueues {
  override acquire<T>(resource: string, options: ResolvedLockOptions, take: (grant: Grant) => T): Promise<T> {
    return super.acquire(resource, { ...options, waitMs: 0 }, take);
  }
}

const NO_TIMER: Timer = { cancel() {} };

/**
 * Time does not advance for leases and waits, so no lease ends and no timer keeps the process alive. Timers without a
 * delay fire at once. The date is the process's, or from its fake timers.
 */
const STOPPED_CLOCK: Clock = {
  now: () => 0,
  wallNow: () => Date.now(),
  setTimer(callback, delayMs) {
    if (delayMs <= 0) void soon(callback);
    return NO_TIMER;
  },
};

const system = new SystemRandom();

/** No call waits for a random part of a time. */
const NO_CHANCE: Random = { id: () => system.id(), fraction: () => 0 };

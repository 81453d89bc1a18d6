import type { Holder } from '../../kernel/api/holder.js';
import type { Lease } from '../../kernel/api/lease.js';
import { checkResource } from '../../kernel/api/resource.js';
import type { LockState } from '../../kernel/store/lock-state.js';
import { callSiteOf, type Origin, recordOrigin } from '../../kernel/util/call-site.js';
import { settle } from '../../kernel/util/promises.js';
import { quote } from '../../kernel/util/quoted.js';
import type { RedisLockService } from '../../nest/redis-lock.service.js';
import { type ExclusiveOptions, expectExclusive, type Section } from './exclusive.js';
import { expectHeldDuring, type HeldDuringOptions } from './held-during.js';
import { failed, type LocksUnderTest } from './locks-under-test.js';

/** Assertions about the locks of an application. A failed assertion throws an `AssertionError` of `node:assert`. */
export class LockAssertions {
  readonly #locks: LocksUnderTest;

  /** @internal */
  constructor(service: RedisLockService, seen: Pick<LocksUnderTest, 'instanceId' | 'states' | 'unmetFailures'>) {
    const sites = new AcquireSites(service);
    this.#locks = {
      ...seen,
      observe: (observer) => service.observe(observer),
      callSiteOf: (resource, fencingToken) => sites.of(resource, fencingToken),
    };
  }

  /**
   * Calls the work, and checks that the application held the resource throughout. The work itself must acquire the
   * resource.
   *
   * ```ts
   * const paid = await locks.expectHeldDuring('order:7', () => shop.pay('7'));
   * await locks.expectHeldDuring('order:7', () => http.post('/orders/7/pay'), { touching: orders });
   * ```
   *
   * Without `touching`, the lock is the first and the last thing that the work waits for: the work must request it
   * before the event loop turns, may not release it in between, and must end before the event loop turns again. Steps
   * that wait for nothing but settled promises go unnoticed. With `touching`, each method call on these objects must
   * begin and end under the lock.
   *
   * @returns the result of the work
   * @throws AssertionError if the resource was not held; the message lists the events of the locks
   * @throws the error of the work
   */
  expectHeldDuring<T>(resource: string, work: () => T | Promise<T>, options?: HeldDuringOptions): Promise<T> {
    return expectHeldDuring(this.#locks, resource, work, options);
  }

  /**
   * Checks that no application of the fleet holds the resource.
   *
   * @throws AssertionError if it is held; the message names the holders and the call site of the lease
   */
  async expectNotHeld(resource: string): Promise<void> {
    const name = checkResource(resource, 'expectNotHeld');
    await settle();
    const held = leasesOf(this.#locks).filter(({ state }) => state.resource === name);
    if (held.length === 0) return;
    const lines = held.map((lease) => describe(this.#locks, lease));
    throw failed(this.expectNotHeld, `${quote(name)} is held:\n${lines.join('\n')}`, {
      actual: 'held',
      expected: 'not held',
    });
  }

  /**
   * Checks that no application of the fleet holds anything, and that each failure of `failNext` has hit a command. Call
   * it in `afterEach`. Leaderships do not count, because a campaign leads for as long as its application runs.
   *
   * @throws AssertionError if anything is held, or a failure hit no command; the message names each lease with its call
   *   site, and each such failure
   */
  async expectNothingHeld(): Promise<void> {
    await settle();
    // A campaign leads for as long as its application runs.
    const held = leasesOf(this.#locks).filter(({ state }) => !state.resource.startsWith('leader:'));
    const unmet = this.#locks.unmetFailures();
    const problems = [stillHeld(this.#locks, held), metNothing(unmet)].filter((text) => text !== undefined);
    if (problems.length === 0) return;
    const actual = [...held.map(({ state }) => state.resource), ...unmet];
    throw failed(this.expectNothingHeld, problems.join('\n\n'), { actual, expected: [] });
  }

  /**
   * Runs a function several times at once, and checks that only one run at a time was inside, and that the runs
   * competed for a lock. Name the protected objects in `touching`, or call `section` inside of the function.
   *
   * ```ts
   * await locks.expectExclusive(() => shop.pay('7'), { times: 3, touching: orders });
   * await locks.expectExclusive((section) => service.using('report', () => section()));
   * ```
   *
   * A run that does not get the lock (`LockBusyError`) or is skipped counts as excluded. With `touching`, a run is
   * inside from its first call of a method to its last one.
   *
   * @param run is called with `section` and the index of the run
   * @returns the outcome of each run
   * @throws AssertionError if two runs were inside at once, no run was inside, or no run had to wait
   * @throws the error of a run
   */
  expectExclusive<T>(
    run: (section: Section, index: number) => T | Promise<T>,
    options?: ExclusiveOptions,
  ): Promise<PromiseSettledResult<T>[]> {
    return expectExclusive(this.#locks, run, options);
  }
}

type ServiceMethod = (...args: never[]) => unknown;

/** Records the call sites of leases that a test or its application has to release itself. */
class AcquireSites {
  readonly #origins = new Map<string, Origin>();

  /** Wraps these methods of the service. */
  constructor(service: RedisLockService) {
    this.#follow(service, 'acquire', 'tryAcquire');
    const { semaphore } = service;
    service.semaphore = (...args) => {
      const made = semaphore.apply(service, args);
      this.#follow(made, 'acquire', 'tryAcquire');
      return made;
    };
  }

  of(resource: string, fencingToken: number): string | undefined {
    return callSiteOf(this.#origins.get(keyOf(resource, fencingToken)));
  }

  #follow(object: object, ...names: string[]): void {
    const methods = object as Record<string, ServiceMethod>;
    for (const name of names) {
      const original = methods[name]!;
      const followed = (...args: never[]): unknown => {
        const origin = recordOrigin(followed);
        const lease = original.apply(object, args) as Promise<Lease | null>;
        lease.then(
          (taken) => taken && this.#note(taken, origin),
          () => {},
        );
        return lease;
      };
      methods[name] = followed;
    }
  }

  #note(lease: Lease, origin: Origin): void {
    for (const resource of lease.resources) {
      this.#origins.set(keyOf(resource, lease.fencingTokenOf(resource)), origin);
    }
  }
}

function keyOf(resource: string, fencingToken: number): string {
  return `${fencingToken} ${resource}`;
}

function stillHeld(locks: LocksUnderTest, held: ReturnType<typeof leasesOf>): string | undefined {
  if (held.length === 0) return undefined;
  const lines = held.map((lease) => describe(locks, lease));
  const [what, it] = held.length === 1 ? ['A lease is', 'it'] : [`${held.length} leases are`, 'each'];
  return `${what} still held:\n${lines.join('\n')}\nRelease ${it} in the test or in the code: await using lease = …, or finally.`;
}

/** Describes failures that hit no command: a test that plans one depends on it. */
function metNothing(unmet: readonly string[]): string | undefined {
  if (unmet.length === 0) return undefined;
  const what =
    unmet.length === 1 ? 'A failure planned with failNext' : `${unmet.length} failures planned with failNext`;
  const lines = unmet.map((text) => `  ${text}`);
  return `${what} never hit a command:\n${lines.join('\n')}\nMake the test send such a command, or remove failNext.`;
}

/** Returns the leases that are not released. A lease that is retained for its `minHoldMs` is released. */
function leasesOf(locks: LocksUnderTest): { state: LockState; holder: Holder }[] {
  return locks
    .states()
    .flatMap((state) => state.holders.filter(({ isKept }) => !isKept).map((holder) => ({ state, holder })));
}

function describe(locks: LocksUnderTest, { state, holder }: ReturnType<typeof leasesOf>[number]): string {
  const { resource, mode } = state;
  const { instanceId, fencingToken } = holder;
  const site = locks.callSiteOf(resource, fencingToken);
  const isOwn = instanceId === locks.instanceId;
  const by = isOwn ? 'this application' : `the instance ${quote(instanceId)}`;
  const where = site === undefined ? (isOwn ? 'by work that still runs' : '') : `acquired at ${site}`;
  return `  ${quote(resource)} (${mode}, token ${fencingToken}) by ${by}${where && `, ${where}`}`;
}

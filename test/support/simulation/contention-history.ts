import assert from 'node:assert/strict';
import type { LockEvent } from '../../../lib/kernel/events/events.js';
import type { Hold } from '../../../lib/kernel/holding/hold.js';
import { fencingTickOf, TOKENS_PER_FENCING_TICK } from '../../../lib/kernel/store/fencing-token.js';
import type { LockStore } from '../../../lib/kernel/store/lock-store.js';
import type { CallPlan } from './contention-plan.js';
import type { SimulatedInstance } from './contention-simulation.js';
import type { LockWorld } from '../world/lock-world.js';
import { KeptMinimums } from './kept-minimums.js';
import { SimulatedCall } from './simulated-call.js';
import { TokenOrder } from './growing-tokens.js';
import { isExcluding, ValidLeases } from './valid-leases.js';

/** The allowed delay of a call's end after its `waitMs`, for a clock that ticks in whole milliseconds. */
const LATENESS_MS = 5;

/** The events of a simulation, and its checks. Violations are thrown as soon as they are noticed. */
export class ContentionHistory {
  readonly calls: SimulatedCall[] = [];
  /** All resources of the plan. */
  readonly #resources = new Set<string>();
  readonly holds = new Set<Hold>();
  readonly #tokens = new TokenOrder();
  readonly #minimums = new KeptMinimums();
  /** When the first lease of a store lease began, by its tick. */
  readonly #storeLeases = new Map<number, number>();
  /** The ticks of leases that an operator has ended: their holders learn about it later, and are wrong until then. */
  readonly #forced = new Set<number>();
  /** The most permits that semaphores had, by resource. */
  readonly #permits = new Map<string, number>();
  /** Calls that others overtook, in this very moment. */
  readonly #passed: SimulatedCall[] = [];
  readonly #operator: LockStore;
  #failure: unknown;

  constructor(
    private readonly world: LockWorld,
    private readonly instances: readonly SimulatedInstance[],
  ) {
    this.#operator = world.instance('operator').store;
    for (const instance of instances) {
      instance.locks.observers.add((event) => this.#noted(() => this.#hear(instance, event)));
    }
  }

  /** The number of released leases with a minimum. */
  get kept(): number {
    return this.#minimums.kept;
  }

  /** The number of granted leases. */
  get leases(): number {
    return this.calls.filter(({ leases }) => leases.length > 0).length;
  }

  begin(instance: SimulatedInstance, plan: CallPlan): SimulatedCall {
    const call = new SimulatedCall(instance, plan, this);
    this.calls.push(call);
    for (const resource of plan.resources) this.#resources.add(resource);
    if (plan.permits) this.#mayHave(plan.resources[0]!, plan.permits.total);
    return call;
  }

  get isGoingOn(): boolean {
    const begun = this.calls.filter(({ state }) => state !== 'ended').map(({ instance }) => instance);
    return begun.some(({ clock }) => !clock.isDead);
  }

  /** Thrown at the next check: here it would be taken for the failure of the work, or of an observer. */
  fail(error: unknown): void {
    this.#failure ??= error;
  }

  granted(call: SimulatedCall): void {
    this.#noted(() => {
      for (const { hold } of call.leases) {
        this.holds.add(hold);
        this.#checkTerms(call.plan, hold);
      }
    });
    this.#noted(() => {
      if (!call.isInLine) return;
      const passed = this.calls
        .slice(0, this.calls.indexOf(call))
        .filter((other) => other.isBefore(call) && other.state === 'waiting');
      // One that has given up, or was refused, in this very moment has not heard of it yet.
      this.#passed.push(...passed.filter((other) => other.overdueMs < 0 && other.plan.abortMs === undefined));
    });
  }

  /** An operator ends the first lease of the resource. */
  forceRelease(resource: string): void {
    const first = this.world.server.members(resource)[0];
    if (!first) return;
    this.#forced.add(fencingTickOf(first.fencingToken));
    this.#minimums.forced(fencingTickOf(first.fencingToken));
    void this.#operator.forceRelease(resource, first.fencingToken);
  }

  /** An operator decides how many permits there are. */
  resize(resource: string, total: number): void {
    this.#mayHave(resource, total);
    void this.#operator.resize(resource, total);
  }

  /** After each step of the world. */
  check(): void {
    if (this.#failure) throw this.#failure as Error;
    for (const { state, leases } of this.#passed.splice(0)) {
      assert.ok(state === 'ended' && leases.length === 0, 'the calls of one process are served in the order they came');
    }
    const permitsOf = (resource: string) => this.#permits.get(resource)!;
    const valid = new ValidLeases(this.world.server, permitsOf);
    for (const hold of this.holds) {
      if (!this.#canAsk(hold)) continue;
      if (!hold.checkHeld()) this.holds.delete(hold); // that is final
      else if (!this.#forced.has(fencingTickOf(hold.fencingToken))) valid.add(hold);
    }
    for (const call of this.calls) {
      if (call.state !== 'waiting' || call.overdueMs <= LATENESS_MS || !this.#isAwake(call)) continue;
      assert.fail(`a call waits ${call.overdueMs} ms longer than it may: ${JSON.stringify(call.plan)}`);
    }
  }

  checkEnded(): void {
    const left = this.calls.filter(({ state, instance }) => state !== 'ended' && !instance.clock.isDead);
    assert.deepEqual(
      left.map(({ state, plan }) => ({ state, ...plan })),
      [],
      'calls that never end',
    );
  }

  checkNothingIsLeft(): void {
    assert.ok(this.world.server.isEmpty, 'something is left in the store');
    assert.equal(this.world.clock.timers, 0, 'timers are left');
    for (const { clock, locks, events } of this.instances) {
      if (clock.isDead) continue;
      assert.equal(locks.stats().orphanReleases, 0);
      const lease = this.calls.find((call) => call.instance.locks === locks && call.leases.length > 0)?.leases[0];
      if (lease) {
        const { localQueues, watchdog, active } = lease['deps'];
        assert.deepEqual([localQueues.size, watchdog.size, active.size], [0, 0, 0], 'something is left in the process');
      }
      checkEndings(events);
    }
  }

  /** On a lossless network, a process has one place in a queue, besides places that it is withdrawing. */
  checkPlaces(): void {
    for (const resource of this.#resources) {
      const waiters = this.world.server.listWaiters(resource);
      if (waiters.length < 2) continue;
      for (const { network, locks, store } of this.instances) {
        const places = waiters.filter((name) => name === store.instanceId).length;
        const most = 1 + locks.stats().orphanReleases + network.inFlight;
        assert.ok(places <= most, `${store.instanceId} has ${places} places in the queue of ${resource}`);
      }
    }
  }

  /** On a lossless network, nothing is left to expire, except leases abandoned on purpose. */
  checkNothingIsLeftByTheLiving(): void {
    const isLeft = ({ instance, plan }: SimulatedCall) => plan.isForgotten || instance.clock.isDead;
    for (const resource of this.#resources) {
      if (this.calls.some((call) => call.plan.resources.includes(resource) && isLeft(call))) continue;
      assert.deepEqual(this.world.server.members(resource), [], `a lock of ${resource} is left`);
      assert.deepEqual(this.world.server.listWaiters(resource), [], `waiters for ${resource} are left`);
    }
  }

  /** A blocked process cannot ask; after it resumes, it may handle other events first. */
  #canAsk({ owner }: Hold): boolean {
    const { clock } = this.instances.find(({ store }) => owner.id.startsWith(`${store.instanceId}/`))!;
    return clock.isAwake && clock.wokeAt < this.world.clock.now();
  }

  #hear(instance: SimulatedInstance, event: LockEvent): void {
    if (event.type === 'released') this.#released(instance, event.fencingToken);
    if (event.type !== 'acquired') return;
    const { resource, mode, fencingToken } = event;
    const tick = fencingTickOf(fencingToken);
    if (!this.#storeLeases.has(tick)) this.#storeLeases.set(tick, instance.clock.now());
    this.#minimums.granted({ resource, mode, fencingToken });
    if (this.#forced.has(tick)) return;
    for (const hold of this.holds) {
      const isOther = hold.owner.resource !== resource || !isExcluding(hold.mode, mode) || !this.#canAsk(hold);
      if (isOther || this.#forced.has(fencingTickOf(hold.fencingToken))) continue;
      assert.ok(!hold.checkHeld(), `${resource} is granted (${mode}) while it is held (${hold.mode})`);
    }
    this.#tokens.granted(resource, mode, fencingToken);
  }

  #released({ clock }: SimulatedInstance, fencingToken: number): void {
    if (this.#forced.has(fencingTickOf(fencingToken))) return;
    for (const { plan, leases } of this.calls) {
      const { minHoldMs = 0 } = plan.options;
      const lease = minHoldMs > 0 ? leases.find((each) => each.fencingToken === fencingToken) : undefined;
      // Of several shares of a semaphore, any number may be free.
      if (!lease || lease.mode === 'semaphore') continue;
      // The store may have ended it, and granted its owner another one, before the release was executed.
      if (clock.now() >= lease.hold.deadline) return;
      return this.#minimums.released({ resource: lease.resource, mode: lease.hold.mode, fencingToken }, minHoldMs);
    }
  }

  #checkTerms({ permits, options }: CallPlan, hold: Hold): void {
    const { mode = 'exclusive', leaseMs = 0, maxHoldMs = Infinity, strictOrder = false } = options;
    const askedMs = Math.min(leaseMs, maxHoldMs);
    // One who reads beside it may have made it longer.
    const isAsAsked = hold.leaseMs === askedMs || (hold.mode === 'read' && hold.leaseMs > askedMs);
    assert.ok(isAsAsked, `a lease is as long as was asked for: ${hold.leaseMs}, ${askedMs}`);
    assert.equal(hold.mode, permits ? 'semaphore' : mode);
    const place = hold.fencingToken % TOKENS_PER_FENCING_TICK;
    assert.ok(place === 0 || !strictOrder, 'a store lease is not passed on in strict order');
    const storeLeaseBeganAt = this.#storeLeases.get(fencingTickOf(hold.fencingToken))!;
    assert.ok(
      place === 0 || hold.acquiredAt - storeLeaseBeganAt < 10,
      'a store lease is passed on for less than 10 ms',
    );
  }

  #mayHave(resource: string, total: number): void {
    this.#permits.set(resource, Math.max(total, this.#permits.get(resource) ?? 0));
  }

  /** Awake, and for long enough to have done what it missed. */
  #isAwake({ instance: { clock }, cleanUpMs }: SimulatedCall): boolean {
    return clock.isAwake && this.world.clock.now() - clock.wokeAt > LATENESS_MS + cleanUpMs;
  }

  #noted(check: () => void): void {
    try {
      check();
    } catch (error) {
      this.fail(error);
    }
  }
}

const ENDINGS = new Set(['released', 'lost', 'releaseFailed']);

/** Every lease ends once: released, or lost, or with a release that failed. */
function checkEndings(events: readonly LockEvent[]): void {
  const begun = new Map<number, number>();
  const endings = new Map<number, string[]>();
  for (const event of events) {
    if (!('fencingToken' in event)) continue;
    const { type, fencingToken } = event;
    if (type === 'acquired') begun.set(fencingToken, (begun.get(fencingToken) ?? 0) + 1);
    else if (ENDINGS.has(type)) endings.set(fencingToken, [...(endings.get(fencingToken) ?? []), type]);
  }
  // More than one where the process adopted what it had transferred.
  for (const [token, times] of begun) {
    const types = endings.get(token) ?? [];
    assert.equal(types.length, times, `the lease ${token}, granted ${times} times, ended as: ${types.join(', ')}`);
  }
}

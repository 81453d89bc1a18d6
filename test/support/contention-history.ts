import assert from 'node:assert/strict';
import { LockError } from '../../lib/core/errors.js';
import type { LockEvent } from '../../lib/core/events.js';
import type { HeldLease } from '../../lib/core/held-lease.js';
import type { Hold } from '../../lib/core/hold.js';
import type { CallPlan, SimulatedInstance } from './contention-simulation.js';
import type { LockWorld } from './lock-world.js';

/** How much later than its `waitMs` a call may end: for the timers of a clock that ticks in whole milliseconds. */
const LATENESS_MS = 5;
const TOKENS_PER_TICK = 32;

/** One call, from its beginning to its end. */
export class SimulatedCall {
  readonly beganAt: number;
  state: 'waiting' | 'granted' | 'ended' = 'waiting';
  lease: HeldLease | undefined;

  constructor(
    readonly instance: SimulatedInstance,
    readonly plan: CallPlan,
    private readonly history: ContentionHistory,
  ) {
    this.beganAt = instance.clock.now();
  }

  /** Whether it stands in the line of its process. */
  get isInLine(): boolean {
    return (this.plan.kind === 'acquire' || this.plan.kind === 'using') && this.plan.options.waitMs !== 0;
  }

  granted(lease: HeldLease): void {
    assert.equal(this.state, 'waiting', 'a call is granted once');
    this.state = 'granted';
    this.lease = lease;
    this.history.granted(this, lease);
  }

  /** A reentrant lease once more. */
  entered(lease: HeldLease): void {
    assert.equal(lease.fencingToken, this.lease?.fencingToken, 're-entry keeps the token');
  }

  end(error?: unknown): void {
    assert.notEqual(this.state, 'ended', 'a call ends once');
    this.state = 'ended';
    if (error !== undefined && !(error instanceof LockError)) this.history.fail(error);
  }

  /** How much longer than it may it has waited already. */
  get overdueMs(): number {
    const { waitMs = Infinity, attemptTimeoutMs = 1_000 } = this.plan.options;
    const limit = this.plan.kind === 'tryAcquire' || waitMs === 0 ? attemptTimeoutMs : waitMs;
    return this.instance.clock.now() - this.beganAt - limit;
  }
}

/** What happened in a simulation, and what is wrong with it. Whatever is wrong is thrown, where it is noticed. */
export class ContentionHistory {
  readonly calls: SimulatedCall[] = [];
  readonly holds = new Set<Hold>();
  readonly #lastTokens = new Map<string, number>();
  /** When the first lease of a tenure began, by its token. */
  readonly #tenures = new Map<string, number>();
  #failure: unknown;

  constructor(
    private readonly world: LockWorld,
    private readonly instances: readonly SimulatedInstance[],
  ) {
    for (const instance of instances) {
      instance.locks.observers.add((event) => this.#noted(() => this.#hear(instance, event)));
    }
  }

  /** How many were granted. */
  get leases(): number {
    return this.calls.filter(({ lease }) => lease).length;
  }

  begin(instance: SimulatedInstance, plan: CallPlan): SimulatedCall {
    const call = new SimulatedCall(instance, plan, this);
    this.calls.push(call);
    return call;
  }

  get isGoingOn(): boolean {
    return this.calls.some(({ state, instance }) => state !== 'ended' && !instance.clock.isDead);
  }

  /** Thrown at the next check: here it would be taken for the failure of the work, or of an observer. */
  fail(error: unknown): void {
    this.#failure ??= error;
  }

  granted(call: SimulatedCall, { hold }: HeldLease): void {
    this.holds.add(hold);
    const { instance, plan } = call;
    this.#noted(() => {
      const { leaseMs = 0, maxHoldMs = Infinity, cohort = 0, cohortMs = 0 } = plan.options;
      assert.equal(hold.leaseMs, Math.min(leaseMs, maxHoldMs), 'a lease is as long as was asked for');
      const handOver = hold.fencingToken % TOKENS_PER_TICK;
      assert.ok(handOver <= cohort, 'a tenure is handed on no more often than cohort');
      const tenureBeganAt = this.#tenures.get(tenureOf(plan.resource, hold.fencingToken))!;
      assert.ok(handOver === 0 || hold.acquiredAt - tenureBeganAt < cohortMs, 'nor for longer than cohortMs');
    });
    this.#noted(() => {
      if (!call.isInLine) return;
      const before = this.calls.slice(0, this.calls.indexOf(call)).filter((other) => other.isInLine);
      const passed = before.filter(
        (other) => other.instance === instance && other.plan.resource === plan.resource && other.state === 'waiting',
      );
      // One that has given up in this very moment has not heard of it yet.
      const live = passed.filter((other) => other.overdueMs < 0 && other.plan.abortMs === undefined);
      assert.equal(live.length, 0, 'the calls of one process are served in the order they came');
    });
  }

  /** After each step of the world. */
  check(): void {
    const { server } = this.world;
    if (this.#failure) throw this.#failure as Error;
    const held = new Map<string, Hold>();
    for (const hold of this.holds) {
      if (!this.#canAsk(hold)) continue;
      if (!hold.isHeld()) {
        this.holds.delete(hold); // that is final
        continue;
      }
      const { resource, owner } = hold.ownership;
      assert.ok(!held.has(resource), `two leases of ${resource} are valid at once`);
      held.set(resource, hold);
      const lock = server.locks.get(resource);
      assert.equal(
        lock?.owner,
        owner,
        `the store does not have the lock of ${resource} that ${owner} believes to have`,
      );
      assert.equal(Math.floor(hold.fencingToken / TOKENS_PER_TICK), lock!.fencingToken / TOKENS_PER_TICK);
      // The clocks differ by less than 1 %.
      const leftMs = hold.remainingMs() / 1.01;
      assert.ok(leftMs <= server.locks.ttlMs(resource), `the lease of ${resource} is trusted for longer than the lock`);
    }
    for (const call of this.calls) {
      if (call.state !== 'waiting' || call.overdueMs <= LATENESS_MS || !this.#isAwake(call.instance)) continue;
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
      assert.equal(locks.withdrawals.size, 0);
      const lease = this.calls.find((call) => call.instance.locks === locks && call.lease)?.lease;
      if (lease) {
        const { contention, watchdog, active } = lease['workings'];
        assert.deepEqual([contention.size, watchdog.size, active.size], [0, 0, 0], 'something is left in the process');
      }
      checkEndings(events);
    }
  }

  /** Where nothing is lost on the way, a process has one place in a queue, but for what it is withdrawing. */
  checkPlaces(): void {
    for (const { network, locks, store } of this.instances) {
      for (const resource of new Set(this.calls.map(({ plan }) => plan.resource))) {
        const places = this.world.server.listWaiters(resource).filter((name) => name === store.instanceId).length;
        const most = 1 + locks.withdrawals.size + network.inFlight;
        assert.ok(places <= most, `${store.instanceId} has ${places} places in the queue of ${resource}`);
      }
    }
  }

  /** Where nothing is lost on the way, nothing is left to expire, but what somebody left on purpose. */
  checkNothingIsLeftByTheLiving(): void {
    const isLeft = ({ instance, plan }: SimulatedCall) => plan.isForgotten || instance.clock.isDead;
    for (const { plan } of this.calls) {
      if (this.calls.some((call) => call.plan.resource === plan.resource && isLeft(call))) continue;
      assert.equal(this.world.server.locks.get(plan.resource), undefined, `a lock of ${plan.resource} is left`);
      assert.deepEqual(this.world.server.listWaiters(plan.resource), [], `waiters for ${plan.resource} are left`);
    }
  }

  /** Not while its process stands still; and when that goes on, it may look at other things first. */
  #canAsk({ ownership }: Hold): boolean {
    const { clock } = this.instances.find(({ store }) => ownership.owner.startsWith(`${store.instanceId}/`))!;
    return clock.isAwake && clock.wokeAt < this.world.clock.now();
  }

  #hear(instance: SimulatedInstance, event: LockEvent): void {
    if (event.type !== 'acquired') return;
    const { resource, fencingToken } = event;
    for (const hold of this.holds) {
      const isOther = hold.ownership.resource !== resource || !this.#canAsk(hold);
      assert.ok(isOther || !hold.isHeld(), `${resource} is granted while it is held`);
    }
    assert.ok(fencingToken > (this.#lastTokens.get(resource) ?? 0), `a later lease of ${resource} has no larger token`);
    this.#lastTokens.set(resource, fencingToken);
    if (fencingToken % TOKENS_PER_TICK > 0) return;
    this.#tenures.set(tenureOf(resource, fencingToken), instance.clock.now());
  }

  /** Awake, and for long enough to have done what it missed. */
  #isAwake({ clock }: SimulatedInstance): boolean {
    return clock.isAwake && this.world.clock.now() - clock.wokeAt > LATENESS_MS;
  }

  #noted(check: () => void): void {
    try {
      check();
    } catch (error) {
      this.fail(error);
    }
  }
}

function tenureOf(resource: string, token: number): string {
  return `${resource} ${Math.floor(token / TOKENS_PER_TICK)}`;
}

/** Every lease ends once: released, or lost, or with a release that failed. */
function checkEndings(events: readonly LockEvent[]): void {
  const endings = new Map<number, string[]>();
  for (const event of events) {
    if (event.type === 'acquired') endings.set(event.fencingToken, []);
    else if (event.type === 'released' || event.type === 'lost' || event.type === 'releaseFailed') {
      endings.get(event.fencingToken)!.push(event.type);
    }
  }
  for (const [token, types] of endings)
    assert.equal(types.length, 1, `the lease ${token} ended as: ${types.join(', ')}`);
}

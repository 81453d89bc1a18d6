import assert from 'node:assert/strict';
import { CompositeLease } from '../../../lib/kernel/lease/composite-lease.js';
import type { SingleLease } from '../../../lib/kernel/lease/single-lease.js';
import type { Lease, LockedWork } from '../../../lib/kernel/api/lease.js';
import type { LockOptions } from '../../../lib/kernel/api/lock-options.js';
import { fixedInterval, type RetryStrategy } from '../../../lib/kernel/api/retry.js';
import { ContentionHistory } from './contention-history.js';
import {
  type CallPlan,
  type Incident,
  MAX_LEASE_MS,
  MAX_MIN_HOLD_MS,
  SEMAPHORE,
  type SimulationPlan,
} from './contention-plan.js';
import { EventCounts } from './event-counts.js';
import { type Instance, LockWorld } from '../world/lock-world.js';
import { SeededRandom } from '../world/seeded-random.js';
import type { SimulatedCall } from './simulated-call.js';
import { Network, ProcessClock } from './simulated-process.js';

export interface SimulatedInstance extends Instance {
  readonly clock: ProcessClock;
  readonly network: Network;
  /** The totals of its events. */
  readonly counts: EventCounts;
}

/**
 * The time after the last call by which everything must have ended, including waiters without a limit. Some of those
 * before them may have to expire, one after another; on a lossless network, none has to.
 */
const PATIENCE_MS = {
  inOrder: 40 * MAX_LEASE_MS,
  unordered: 40 * MAX_LEASE_MS,
  lossless: 6 * MAX_LEASE_MS,
};

/** Several processes, each with a clock and a network of its own, that do what a plan says. */
export class ContentionSimulation {
  readonly world = new LockWorld();
  readonly instances: SimulatedInstance[];
  readonly history: ContentionHistory;
  readonly #random: SeededRandom;

  constructor(private readonly plan: SimulationPlan) {
    this.#random = new SeededRandom(plan.seed);
    this.instances = Array.from({ length: plan.instances }, (_, index) => this.#start(`process-${index}`));
    this.history = new ContentionHistory(this.world, this.instances);
    this.world.clock.onStep = () => {
      this.history.check();
      if (plan.network.kind === 'lossless') this.history.checkPlaces();
    };
  }

  /** @throws at the first thing that is wrong */
  async run(): Promise<ContentionHistory> {
    const { clock } = this.world;
    const begin = clock.now();
    for (const call of this.plan.calls) clock.setTimer(() => this.#call(call), call.at);
    for (const incident of this.plan.incidents) clock.setTimer(() => this.#happens(incident), incident.at);
    const lastAt = Math.max(0, ...[...this.plan.calls, ...this.plan.incidents].map(({ at }) => at));
    await clock.advance(lastAt);
    for (const { network, clock: own } of this.instances) {
      network.isHealed = true;
      own.continue();
    }
    const { kind, delayMs } = this.plan.network;
    while (this.history.isGoingOn && clock.now() - begin < lastAt + PATIENCE_MS[kind]) await clock.advance(100);
    this.history.checkEnded();
    await clock.advance(3 * delayMs + MAX_MIN_HOLD_MS);
    if (kind === 'lossless') this.history.checkNothingIsLeftByTheLiving();
    // Timers that are set for nothing any more, late commands, and whatever they leave behind, which expires.
    await clock.advance(12 * MAX_LEASE_MS);
    this.history.checkNothingIsLeft();
    for (const { clock: own, counts } of this.instances) {
      assert.deepEqual(counts.wrong, [], 'no lease and no wait ends twice');
      if (own.isAwake) assert.deepEqual(counts.left, {}, 'every lease and every wait has an end');
    }
    return this.history;
  }

  #start(name: string): SimulatedInstance {
    const rate = 1 + (this.#random.fraction() - 0.5) / 60; // less than 1 % off
    const clock = new ProcessClock(this.world.clock, Math.floor(this.#random.fraction() * 1e6), rate);
    // So that a wait for one resource that ends as a wait for another one is noticed.
    const instance = this.world.instance(name, { clock, group: (resource) => resource });
    const random = new SeededRandom(Math.floor(this.#random.fraction() * 2 ** 31));
    const network = new Network(this.world.clock, clock, random, this.plan.network);
    network.connect(instance.store);
    if (this.plan.isCluster) instance.store.fenceOf = (resource) => resource;
    return { ...instance, clock, network, counts: new EventCounts(instance.locks.observers) };
  }

  #instance(number: number): SimulatedInstance {
    return this.instances[number % this.instances.length]!;
  }

  #call(plan: CallPlan): void {
    const instance = this.#instance(plan.on);
    const controller = new AbortController();
    const signal = plan.abortMs === undefined ? undefined : controller.signal;
    if (!this.#begin(plan, (call) => this.#perform(instance, call, signal))) return;
    if (plan.abortMs !== undefined) instance.clock.setTimer(() => controller.abort(), plan.abortMs);
  }

  #begin(plan: CallPlan, perform: (call: SimulatedCall) => Promise<void>): boolean {
    const instance = this.#instance(plan.on);
    if (!instance.clock.isAwake) return false;
    const call = this.history.begin(instance, plan);
    perform(call).then(
      () => call.end(),
      (error: unknown) => call.end(isThrownBy(plan, error) ? undefined : error),
    );
    return true;
  }

  async #perform(instance: SimulatedInstance, call: SimulatedCall, signal: AbortSignal | undefined): Promise<void> {
    const { plan } = call;
    const { kind, extendMs } = plan;
    const locks = locksOf(instance, plan);
    const retry = kind === 'poll' ? strategyOf(plan) : undefined;
    const options: LockOptions = { ...plan.options, ...(signal && { signal }), ...(retry && { retry }) };
    const pass = (ms: number): Promise<void> => new Promise((resolve) => instance.clock.setTimer(resolve, ms));
    const half = plan.sectionMs / 2;
    if (kind === 'using') {
      await locks.using(options, async (lease) => {
        call.granted(partsOf(lease));
        await pass(half);
        // Re-enters; refused if the lease is exclusive or lost.
        const mode = plan.options.mode === 'write' && Number.isInteger(half) ? 'read' : plan.options.mode;
        const again = locks.using({ ...options, waitMs: 0, mode }, (inner) => call.entered(partsOf(inner)));
        await again.catch(() => {});
        if (plan.isDowngraded) await lower(plan, lease).catch(() => {});
        await pass(half);
      });
      return;
    }
    const lease = await (kind === 'tryAcquire' ? locks.tryAcquire(options) : locks.acquire(options));
    if (lease === null) return;
    call.granted(partsOf(lease));
    if (plan.isForgotten && options.watchdog === false) return;
    await pass(half);
    if (extendMs !== undefined) lease.extend(extendMs).catch(() => {});
    // Not both at once: if replies can be reordered, their order is unknown.
    else if (plan.isDowngraded) lower(plan, lease).catch(() => {});
    await pass(half);
    await lease.release().catch(() => {}); // told to the observers
  }

  #happens({ on, kind, lastingMs }: Incident): void {
    const { clock, store } = this.#instance(on);
    const resource = store.commands.at(-1)?.resource ?? 'stock';
    switch (kind) {
      case 'kill': // its connections end with it
      case 'vanish': // the machine is gone, and nobody tells Redis
        clock.kill();
        if (kind === 'kill') void store.close();
        break;
      case 'stop':
        clock.stop();
        this.world.clock.setTimer(() => clock.continue(), lastingMs);
        break;
      case 'reconnect':
        clock.whenAwake(() => store.reconnect());
        break;
      case 'forge': {
        const owner = `${store.clientId}/forged`;
        const isFor = (other: string): boolean => other === owner;
        const grant = { resource, fencingToken: 2 ** 52, sentAt: Math.floor(clock.now()), isFor };
        clock.whenAwake(() => store.deliver(grant));
        break;
      }
      case 'forceRelease':
        this.history.forceRelease(resource);
        break;
      case 'resize':
        this.history.resize(SEMAPHORE, 1 + (lastingMs % 5));
    }
  }
}

/** From now on the lease excludes fewer others. */
function lower({ permits }: CallPlan, lease: Lease): Promise<void> {
  return permits ? lease.releasePermits(1) : lease.downgrade();
}

/** The calls of the plan: to a semaphore, or to locks. */
function locksOf({ locks }: SimulatedInstance, { permits, resources }: CallPlan) {
  const names = resources.length === 1 ? resources[0]! : resources;
  if (!permits) {
    return {
      acquire: (options: LockOptions) => locks.acquire(names, options),
      tryAcquire: (options: LockOptions) => locks.tryAcquire(names, options),
      using: (options: LockOptions, work: LockedWork<void>) => locks.using(names, options, work),
    };
  }
  const semaphore = locks.semaphore(resources[0]!, { permits: permits.total });
  const take = (options: LockOptions) => {
    const { mode: _, ...others } = options;
    return { ...others, count: permits.count };
  };
  return {
    acquire: (options: LockOptions) => semaphore.acquire(take(options)),
    tryAcquire: (options: LockOptions) => semaphore.tryAcquire(take(options)),
    using: (options: LockOptions, work: LockedWork<void>) => semaphore.using(take(options), work),
  };
}

/** Values thrown by strategies: a shared error, and values that are no errors. */
const FAULTS: readonly unknown[] = [new TypeError('no such setting'), 'no such setting', undefined];

function strategyOf({ throwsAfter = Infinity, at }: CallPlan): RetryStrategy {
  const interval = fixedInterval({ intervalMs: 50 });
  return {
    next(state) {
      if (state.attempt >= throwsAfter) throw FAULTS[at % FAULTS.length];
      return interval.next(state);
    },
  };
}

/** Returns true if the strategy of the call threw this. */
function isThrownBy({ kind, throwsAfter, at }: CallPlan, error: unknown): boolean {
  return kind === 'poll' && throwsAfter !== undefined && error === FAULTS[at % FAULTS.length];
}

/** The leases of each resource. */
function partsOf(lease: Lease): readonly SingleLease[] {
  return lease instanceof CompositeLease ? lease.leases : [lease as SingleLease];
}

import type { HeldLease } from '../../lib/core/held-lease.js';
import type { LockOptions } from '../../lib/core/lock-options.js';
import { fixedInterval } from '../../lib/core/retry.js';
import { ContentionHistory, type SimulatedCall } from './contention-history.js';
import { type Instance, LockWorld } from './lock-world.js';
import { SeededRandom } from './seeded-random.js';
import { Network, type NetworkOptions, ProcessClock } from './simulated-process.js';

/** One call that the simulation makes. */
export interface CallPlan {
  readonly at: number;
  readonly on: number;
  readonly resource: string;
  readonly kind: 'acquire' | 'using' | 'tryAcquire' | 'poll';
  readonly options: LockOptions;
  /** How long the section under the lock takes. */
  readonly sectionMs: number;
  /** The caller gives up after this. */
  readonly abortMs: number | undefined;
  /** In the middle of the section: nothing, or the lease is extended to so many milliseconds. */
  readonly extendMs: number | undefined;
  /** A fixed lease may be left to run out. */
  readonly isForgotten: boolean;
}

/** Something that happens to a process. */
export interface Incident {
  readonly at: number;
  readonly on: number;
  readonly kind: 'kill' | 'vanish' | 'stop' | 'reconnect' | 'forge';
  readonly lastingMs: number;
}

export interface SimulationPlan {
  readonly seed: number;
  readonly instances: number;
  readonly network: NetworkOptions;
  readonly calls: readonly CallPlan[];
  readonly incidents: readonly Incident[];
}

export interface SimulatedInstance extends Instance {
  readonly clock: ProcessClock;
  readonly network: Network;
}

/** No lease is longer, where leases are left to expire. */
export const LONGEST_LEASE_MS = 10_000;
/**
 * How long after the last call everything must have ended: waiters without a limit of their own, too. Of those before them
 * some may have to expire, one after another; where nothing is lost, none has to.
 */
const PATIENCE_MS = {
  inOrder: 40 * LONGEST_LEASE_MS,
  unordered: 40 * LONGEST_LEASE_MS,
  lossless: 6 * LONGEST_LEASE_MS,
};

/** Several processes, each with a clock and a network of its own, that do what a plan says. */
export class ContentionSimulation {
  readonly world = new LockWorld();
  readonly instances: SimulatedInstance[];
  readonly history: ContentionHistory;
  readonly #random: SeededRandom;

  constructor(private readonly plan: SimulationPlan) {
    this.#random = new SeededRandom(plan.seed);
    this.instances = Array.from({ length: plan.instances }, (_, index) => this.#start(`process ${index}`));
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
    await clock.advance(3 * delayMs);
    if (kind === 'lossless') this.history.checkNothingIsLeftByTheLiving();
    // Timers that are set for nothing any more, late commands, and whatever they leave behind, which expires.
    await clock.advance(12 * LONGEST_LEASE_MS);
    this.history.checkNothingIsLeft();
    return this.history;
  }

  #start(name: string): SimulatedInstance {
    const rate = 1 + (this.#random.fraction() - 0.5) / 60; // less than 1 % off
    const clock = new ProcessClock(this.world.clock, Math.floor(this.#random.fraction() * 1e6), rate);
    const instance = this.world.instance(name, { clock });
    const random = new SeededRandom(Math.floor(this.#random.fraction() * 2 ** 31));
    const network = new Network(this.world.clock, clock, random, this.plan.network);
    instance.store.all(network.commandFate);
    instance.store.grantFate = network.grantFate;
    return { ...instance, clock, network };
  }

  #call(plan: CallPlan): void {
    const instance = this.instances[plan.on % this.instances.length]!;
    if (!instance.clock.isAwake) return;
    const controller = new AbortController();
    const call = this.history.begin(instance, plan);
    const signal = plan.abortMs === undefined ? undefined : controller.signal;
    if (plan.abortMs !== undefined) instance.clock.setTimer(() => controller.abort(), plan.abortMs);
    this.#perform(instance, plan, call, signal).then(
      () => call.end(),
      (error: unknown) => call.end(error),
    );
  }

  async #perform(
    { locks, clock }: SimulatedInstance,
    plan: CallPlan,
    call: SimulatedCall,
    signal: AbortSignal | undefined,
  ): Promise<void> {
    const { resource, kind, sectionMs, extendMs } = plan;
    const pass = (ms: number): Promise<void> => new Promise((resolve) => clock.setTimer(resolve, ms));
    const options: LockOptions = { ...plan.options, ...(signal && { signal }) };
    if (kind === 'using') {
      await locks.using(resource, options, async (given) => {
        call.granted(given as HeldLease);
        await pass(sectionMs / 2);
        // Enters once more; where the lease is not reentrant, or is lost, that is refused.
        const again = locks.using(resource, { ...options, waitMs: 0 }, (lease) => call.entered(lease as HeldLease));
        await again.catch(() => {});
        await pass(sectionMs / 2);
      });
      return;
    }
    const retry = kind === 'poll' ? fixedInterval({ intervalMs: 50 }) : undefined;
    const lease = await (kind === 'tryAcquire'
      ? locks.tryAcquire(resource, options)
      : locks.acquire(resource, { ...options, ...(retry && { retry }) }));
    if (lease === null) return;
    call.granted(lease as HeldLease);
    if (plan.isForgotten && options.watchdog === false) return;
    await pass(sectionMs / 2);
    if (extendMs !== undefined) lease.extend(extendMs).catch(() => {});
    await pass(sectionMs / 2);
    await lease.release().catch(() => {}); // told to the observers
  }

  #happens({ on, kind, lastingMs }: Incident): void {
    const { clock, store, locks } = this.instances[on % this.instances.length]!;
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
        const resource = store.commands.at(-1)?.resource ?? 'stock';
        const grant = { resource, owner: locks.newOwner(), fencingToken: 2 ** 52, sentAt: Math.floor(clock.now()) };
        clock.whenAwake(() => store.deliver(grant));
      }
    }
  }
}

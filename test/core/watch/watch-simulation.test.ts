import fc from 'fast-check';
import type { LockStore } from '../../../lib/core/store/lock-store.js';
import { MemoryLockStore } from '../../../lib/memory/memory-lock-store.js';
import { track, type Tracked } from '../../support/expect/tracked.js';
import { runs } from '../../support/simulation/runs.js';
import {
  at,
  beginWait,
  FATES,
  on,
  plannedWaits,
  type SimulatedWait,
  SLACK_MS,
} from '../../support/simulation/simulated-wait.js';
import { type Instance, LockWorld } from '../../support/world/lock-world.js';
import type { Fate } from '../../support/world/scripted-store.js';

const RUNS = runs(600);

const plan = fc.record({
  holds: fc.array(
    fc.record({
      at,
      on,
      holdMs: fc.oneof(fc.nat(1_500), fc.nat(200)),
      mode: fc.constantFrom('exclusive' as const, 'read'),
    }),
    {
      maxLength: 12,
    },
  ),
  /** Those who die with what they hold. */
  deaths: fc.array(fc.record({ at, leaseMs: fc.integer({ min: 50, max: 2_000 }) }), { maxLength: 3 }),
  waits: plannedWaits,
  trouble: fc.array(
    fc.record({
      at,
      on,
      what: fc.constantFrom('watch', 'slow', 'slow', 'deaf', 'late', 'late', 'reconnect', 'forge', 'replay'),
      fate: fc.constantFrom(...Object.keys(FATES)),
      lastingMs: fc.nat(1_500),
    }),
    { maxLength: 8 },
  ),
});
type Plan = typeof plan extends fc.Arbitrary<infer T> ? T : never;

class WatchSimulation {
  readonly world = new LockWorld();
  readonly instances: Instance[] = ['a', 'b', 'c'].map((name) => this.world.instance(name));
  readonly waits: SimulatedWait[] = [];
  readonly held: Tracked<void>[] = [];
  /** When the resource was seen to be free, before or after a step of the server. */
  readonly free: number[] = [];
  /** From then on nothing is lost, and every process has asked without trouble. */
  readonly calmFrom: number;
  readonly #events: { at: number; run: () => void }[] = [];

  constructor(plan: Plan) {
    const { clock, server } = this.world;
    const troubles = plan.trouble.map(({ at, lastingMs }) => at + lastingMs + SLACK_MS);
    this.calmFrom = clock.now() + Math.max(0, ...troubles);
    for (const { store } of this.instances) this.#lookAtEachStepOf(Reflect.get(store, 'inner') as LockStore);
    const ghost = new MemoryLockStore({ instanceId: 'ghost', server });
    this.#lookAtEachStepOf(ghost);
    const pause = (ms: number) => new Promise<void>((resolve) => clock.setTimer(resolve, ms));
    for (const { at, on, holdMs, mode } of plan.holds) {
      this.#at(at, () =>
        this.held.push(
          track(this.instances[on]!.locks.using('stock', { mode, waitMs: Infinity }, () => pause(holdMs))),
        ),
      );
    }
    for (const [index, { at, leaseMs }] of plan.deaths.entries()) {
      const owner = { resource: 'stock', id: `${ghost.clientId}/${index}`, mode: 'exclusive' as const };
      this.#at(at, () => void ghost.acquire(owner, leaseMs));
    }
    for (const wait of plan.waits) this.#at(wait.at, () => this.#wait(wait));
    const slow =
      (ms: number): Fate =>
      async (execute) => {
        const reply = await execute();
        await pause(ms);
        return reply;
      };
    for (const { at, on, what, fate, lastingMs } of plan.trouble) {
      const { store } = this.instances[on]!;
      this.#at(at, () => {
        if (what === 'deaf' || what === 'late') store.isDeaf = true;
        else if (what === 'reconnect') store.reconnect();
        else if (what === 'watch') store.fates.watch = FATES[fate]!;
        else if (what === 'slow') store.fates.watch = slow(lastingMs / 3);
        else if (what === 'forge') store.deliverFreed({ resource: 'stock', mark: 0, isFor: () => false });
        else for (const message of store.freedMessages) store.deliverFreed(message);
      });
      this.#at(at + lastingMs, () => {
        if (what === 'deaf' || what === 'late') store.isDeaf = false;
        if (what === 'late') for (const message of store.freedMessages) store.deliverFreed(message);
        if (what === 'watch' || what === 'slow') delete store.fates.watch;
      });
    }
  }

  async run(): Promise<void> {
    const { clock } = this.world;
    const begin = clock.now();
    clock.onStep = () => this.#look();
    for (const { at, run } of this.#events.toSorted((a, b) => a.at - b.at)) {
      await clock.advance(begin + at - clock.now());
      this.#look();
      run();
      await clock.advance(0);
    }
    // All is well again, and in the end the resource is released: no call waits for ever.
    await clock.advance(60_000);
  }

  #look(): void {
    const { clock, server } = this.world;
    if (!server.locks.get('stock') && server.queues.length('stock') === 0) this.free.push(clock.now());
  }

  #lookAtEachStepOf(store: LockStore): void {
    for (const verb of ['acquire', 'rotate', 'release', 'renew', 'watch'] as const) {
      const execute = store[verb].bind(store) as (...args: unknown[]) => Promise<never>;
      store[verb] = (...args: unknown[]) => {
        this.#look();
        const reply = execute(...args);
        this.#look();
        return reply;
      };
    }
  }

  #at(at: number, run: () => void): void {
    this.#events.push({ at, run });
  }

  #wait(planned: Plan['waits'][number]): void {
    const { watches } = this.instances[planned.on]!.locks;
    this.waits.push(beginWait(planned, this.world.clock, (options) => watches.waitUntilFree('stock', options)));
  }
}

describe('waitUntilFree, whatever happens', () => {
  it('ends for those who wait when the resource was free while they waited, never without, and leaves nothing', async () => {
    let resolved = 0;
    let inVain = 0;
    await fc.assert(
      fc.asyncProperty(plan, async (given) => {
        const simulation = new WatchSimulation(given);
        await simulation.run();
        const { world, waits, held, free, instances, calmFrom } = simulation;
        for (const { from, endedAt, waitMs, isAborted, call } of waits) {
          expect(call.state).not.toBe('pending');
          if (call.state === 'fulfilled') {
            resolved++;
            expect(free.some((time) => time >= from && time <= endedAt!)).toBe(true);
            const found = free.find((time) => time >= Math.max(from, calmFrom)) ?? Infinity;
            expect(endedAt!).toBeLessThanOrEqual(Math.max(found, calmFrom) + SLACK_MS);
            continue;
          }
          inVain++;
          const { code } = call.error as { code: string };
          expect(code).toMatch(isAborted ? /^LOCK_(ABORTED|TIMEOUT|UNAVAILABLE)$/ : /^LOCK_(TIMEOUT|UNAVAILABLE)$/);
          if (!isAborted) expect(endedAt! - from).toBeGreaterThanOrEqual(waitMs);
          // Nothing is lost any more, so it was not free for long while this call waited.
          const seen = free.filter((time) => time >= Math.max(from, calmFrom) && time < endedAt! - SLACK_MS);
          expect([code, seen]).toEqual([code, []]);
        }
        for (const { state } of held) expect(state).toBe('fulfilled');
        for (const { locks } of instances) expect([locks.watches.size, locks.stats().alarms]).toEqual([0, 0]);
        expect(world.server.isEmpty).toBe(true);
        expect(world.clock.timers).toBe(0);
      }),
      { numRuns: RUNS, seed: 20_260_101 },
    );
    expect(resolved).toBeGreaterThan(RUNS / 2);
    expect(inVain).toBeGreaterThan(RUNS / 4);
  });
});

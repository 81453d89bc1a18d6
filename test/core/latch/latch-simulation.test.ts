import fc from 'fast-check';
import { type LatchInstance, LatchWorld } from '../../support/world/latch-world.js';
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
  TROUBLE_MS,
} from '../../support/simulation/simulated-wait.js';

const RUNS = runs(600);

const COUNT = 3;

const plan = fc.record({
  ttlMs: fc.constantFrom(1_000, 2_500, 60_000, 60_000),
  counts: fc.array(fc.record({ at, on, id: fc.option(fc.constantFrom('x', 'y', 'z'), { nil: undefined }) }), {
    maxLength: 6,
  }),
  waits: plannedWaits,
  trouble: fc.array(
    fc.record({
      at,
      on,
      what: fc.constantFrom('wait' as const, 'countDown', 'deaf', 'reconnect', 'forge'),
      fate: fc.constantFrom(...Object.keys(FATES)),
      lastingMs: fc.nat(1_500),
    }),
    { maxLength: 8 },
  ),
});
type Plan = typeof plan extends fc.Arbitrary<infer T> ? T : never;

class LatchSimulation {
  readonly world = new LatchWorld();
  readonly instances: LatchInstance[] = ['a', 'b', 'c'].map((name) => this.world.instance(name));
  readonly waits: SimulatedWait[] = [];
  readonly counted: Tracked<number>[] = [];
  /** When the latch was seen to be open, on the server. */
  readonly open: number[] = [];
  /** From then on nothing is lost, and everybody has asked without trouble. */
  readonly calmFrom: number;
  readonly #events: { at: number; run: () => void }[] = [];

  constructor(private readonly plan: Plan) {
    const troubles = plan.trouble.map(({ at, lastingMs }) => at + lastingMs + SLACK_MS);
    this.calmFrom = this.world.clock.now() + Math.max(0, ...troubles);
    for (const { at, on, id } of plan.counts) {
      this.#at(at, () => this.counted.push(track(this.#latch(on).countDown({ id }))));
    }
    for (const wait of plan.waits) this.#at(wait.at, () => this.#wait(wait));
    for (const { at, on, what, fate, lastingMs } of plan.trouble) {
      const { store } = this.instances[on]!;
      this.#at(at, () => {
        if (what === 'deaf') store.isDeaf = true;
        else if (what === 'reconnect') store.reconnect();
        else if (what === 'forge') store.deliver('import', COUNT);
        else store.fates[what] = FATES[fate]!;
      });
      this.#at(at + lastingMs, () => {
        if (what === 'deaf') store.isDeaf = false;
        else if (what === 'wait' || what === 'countDown') delete store.fates[what];
      });
    }
  }

  async run(): Promise<void> {
    const { clock, server } = this.world;
    const begin = clock.now();
    const look = () => {
      if (server.latches.get('import')?.isOpen) this.open.push(clock.now());
    };
    clock.onStep = look;
    for (const { at, run } of this.#events.toSorted((a, b) => a.at - b.at)) {
      await clock.advance(begin + at - clock.now());
      run();
      await clock.advance(0);
      look();
    }
    await clock.advance(TROUBLE_MS);
    // All is well again, and in the end it is counted down: nobody waits for ever.
    for (let id = 0; id < COUNT; id++) await this.#latch(0).countDown({ id: `end ${id}` });
    look();
    await clock.advance(SLACK_MS);
  }

  #at(at: number, run: () => void): void {
    this.#events.push({ at, run });
  }

  #latch(on: number) {
    return this.instances[on]!.latches.latch('import', COUNT, { ttlMs: this.plan.ttlMs });
  }

  #wait(planned: Plan['waits'][number]): void {
    this.waits.push(beginWait(planned, this.world.clock, (options) => this.#latch(planned.on).wait(options)));
  }
}

describe('latches, whatever happens', () => {
  it('open for those who wait, for nobody too early, and leave nothing', async () => {
    let resolved = 0;
    let inVain = 0;
    await fc.assert(
      fc.asyncProperty(plan, async (given) => {
        const simulation = new LatchSimulation(given);
        await simulation.run();
        const { world, waits, counted, open, instances } = simulation;
        for (const { from, endedAt, waitMs, isAborted, call } of waits) {
          expect(call.state).not.toBe('pending');
          if (call.state === 'fulfilled') {
            resolved++;
            // It was open at a time while this one waited, or before that and had not expired.
            expect(open.some((time) => time >= from && time <= endedAt!)).toBe(true);
            continue;
          }
          inVain++;
          const { code } = call.error as { code: string };
          expect(code).toMatch(isAborted ? /^LOCK_(ABORTED|TIMEOUT|UNAVAILABLE)$/ : /^LOCK_(TIMEOUT|UNAVAILABLE)$/);
          if (!isAborted) expect(endedAt! - from).toBeGreaterThanOrEqual(waitMs);
        }
        // Who gave up did not have it open before his eyes, once all was well again.
        for (const { from, endedAt, call } of waits.filter(({ call }) => call.state === 'rejected')) {
          const seen = open.filter((time) => time >= Math.max(from, simulation.calmFrom) && time < endedAt! - SLACK_MS);
          expect([call.error, seen]).toEqual([call.error, []]);
        }
        for (const { state } of counted) expect(state).toBe('fulfilled');
        for (const { latches, client } of instances) expect([latches.size, client.stats().alarms]).toEqual([0, 0]);
        await world.clock.advance(61_000);
        expect(world.server.isEmpty).toBe(true);
        expect(world.clock.timers).toBe(0);
      }),
      { numRuns: RUNS, seed: 20_260_101 },
    );
    expect(resolved).toBeGreaterThan(RUNS / 2);
    expect(inVain).toBeGreaterThan(RUNS / 2);
  });
});

import fc from 'fast-check';
import { LatchWorld } from '../../support/world/latch-world.js';
import { track, type Tracked } from '../../support/expect/tracked.js';
import { at, on, simulateWaits, type WaitSubject } from '../../support/simulation/wait-simulation.js';

const COUNT = 3;

const course = fc.record({
  ttlMs: fc.constantFrom(1_000, 2_500, 60_000, 60_000),
  counts: fc.array(fc.record({ at, on, id: fc.option(fc.constantFrom('x', 'y', 'z'), { nil: undefined }) }), {
    maxLength: 6,
  }),
});

/** A latch, whose count-downs may be lost, too. */
const LATCH: WaitSubject<typeof course extends fc.Arbitrary<infer T> ? T : never> = {
  course,
  troubles: ['wait', 'countDown', 'forge'],
  open({ ttlMs, counts }) {
    const world = new LatchWorld();
    const { clock, server } = world;
    const instances = ['a', 'b', 'c'].map((name) => world.instance(name));
    const latch = (on: number) => instances[on]!.latches.latch('import', COUNT, { ttlMs });
    const counted: Tracked<number>[] = [];
    return {
      clock,
      events: counts.map(({ at, on, id }) => ({
        at,
        run: () => void counted.push(track(latch(on).countDown({ id }))),
      })),
      stores: instances.map(({ store }) => store),
      isThere: () => server.redis.hget(server.keys.latch('import'), 'open') !== undefined,
      wait: (on, options) => latch(on).wait(options),
      trouble(what, on, fate) {
        const { store } = instances[on]!;
        if (what === 'wait' || what === 'countDown') {
          store.fates[what] = fate;
          return () => void delete store.fates[what];
        }
        store.deliver('import', COUNT);
        return () => {};
      },
      async conclude() {
        for (let id = 0; id < COUNT; id++) await latch(0).countDown({ id: `end ${id}` });
      },
      async expectNothingLeft() {
        for (const { state } of counted) expect(state).toBe('fulfilled');
        for (const { latches, client } of instances) expect([latches.size, client.stats().alarms]).toEqual([0, 0]);
        await clock.advance(61_000);
        expect(server.isEmpty).toBe(true);
      },
    };
  },
};

it('a latch opens for those who wait, for nobody too early, and leaves nothing, whatever happens', async () => {
  const { plans, resolved, inVain } = await simulateWaits(LATCH);
  expect(resolved).toBeGreaterThan(plans / 3);
  expect(inVain).toBeGreaterThan(plans / 3);
});

import fc from 'fast-check';
import type { LockStore } from '../../../../lib/kernel/store/lock-store.js';
import { MemoryLockStore } from '../../../../lib/memory/memory-lock-store.js';
import { track, type Tracked } from '../../../support/expect/tracked.js';
import { at, on, simulateWaits, type WaitSubject } from '../../../support/simulation/wait-simulation.js';
import { LockWorld } from '../../../support/world/lock-world.js';
import type { Fate } from '../../../support/world/scripted-store.js';

const course = fc.record({
  holds: fc.array(
    fc.record({
      at,
      on,
      holdMs: fc.oneof(fc.nat(1_500), fc.nat(200)),
      mode: fc.constantFrom('exclusive' as const, 'read'),
    }),
    { maxLength: 12 },
  ),
  /** Holders that die. */
  deaths: fc.array(fc.record({ at, leaseMs: fc.integer({ min: 50, max: 2_000 }) }), { maxLength: 3 }),
});

/** A resource that others hold, and that processes die with. */
const RESOURCE: WaitSubject<typeof course extends fc.Arbitrary<infer T> ? T : never> = {
  course,
  troubles: ['watch', 'slow', 'slow', 'late', 'late', 'forge', 'replay'],
  open({ holds, deaths }, look) {
    const world = new LockWorld();
    const { clock, server } = world;
    const instances = ['a', 'b', 'c'].map((name) => world.instance(name));
    const ghost = new MemoryLockStore({ instanceId: 'ghost', server });
    for (const { store } of instances) lookAtEachStepOf(Reflect.get(store, 'inner') as LockStore, look);
    lookAtEachStepOf(ghost, look);
    const pause = (ms: number) => new Promise<void>((resolve) => clock.setTimer(resolve, ms));
    const held: Tracked<void>[] = [];
    const hold = (on: number, mode: 'exclusive' | 'read', holdMs: number): void => {
      const { locks } = instances[on]!;
      held.push(track(locks.using('stock', { mode, waitMs: Infinity }, () => pause(holdMs))));
    };
    return {
      clock,
      events: [
        ...holds.map(({ at, on, holdMs, mode }) => ({ at, run: () => hold(on, mode, holdMs) })),
        ...deaths.map(({ at, leaseMs }, index) => {
          const owner = { resource: 'stock', id: `${ghost.clientId}/${index}`, mode: 'exclusive' as const };
          return { at, run: () => void ghost.acquire(owner, leaseMs) };
        }),
      ],
      stores: instances.map(({ store }) => store),
      isThere: () => !server.resources().includes('stock'),
      wait: (on, options) => instances[on]!.locks.watches.waitUntilFree('stock', options),
      trouble(what, on, fate, lastingMs) {
        const { store } = instances[on]!;
        const replay = (): void => {
          for (const message of store.freedMessages) store.deliverFreed(message);
        };
        const slow: Fate = async (execute) => {
          const reply = await execute();
          await pause(lastingMs / 3);
          return reply;
        };
        switch (what) {
          case 'watch':
          case 'slow':
            store.fates.watch = what === 'slow' ? slow : fate;
            return () => void delete store.fates.watch;
          case 'late':
            store.isDeaf = true;
            return () => {
              store.isDeaf = false;
              replay();
            };
          case 'forge':
            store.deliverFreed({ resource: 'stock', mark: 0, isFor: () => false });
            return () => {};
          default:
            replay();
            return () => {};
        }
      },
      // In the end it is released.
      conclude: () => clock.advance(60_000),
      async expectNothingLeft() {
        for (const { state } of held) expect(state).toBe('fulfilled');
        for (const { locks } of instances) expect([locks.watches.size, locks.stats().alarms]).toEqual([0, 0]);
        expect(server.isEmpty).toBe(true);
      },
    };
  },
};

function lookAtEachStepOf(store: LockStore, look: () => void): void {
  for (const verb of ['acquire', 'rotate', 'release', 'renew', 'watch'] as const) {
    const execute = store[verb].bind(store) as (...args: unknown[]) => Promise<never>;
    store[verb] = (...args: unknown[]) => {
      look();
      const reply = execute(...args);
      look();
      return reply;
    };
  }
}

it('waitUntilFree ends if the resource was free during the wait, never otherwise, and leaves nothing behind', async () => {
  const { plans, resolved, inVain } = await simulateWaits(RESOURCE);
  expect(resolved).toBeGreaterThan(plans / 2);
  expect(inVain).toBeGreaterThan(plans / 4);
});

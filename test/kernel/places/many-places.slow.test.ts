import type { LockOptions } from '../../../lib/kernel/api/lock-options.js';
import { track, type Tracked } from '../../support/expect/tracked.js';
import { settle } from '../../support/world/fake-clock.js';
import { type Instance, LockWorld } from '../../support/world/lock-world.js';

/** Many batches of 64. */
const WAITS = 2_560;
const FEWER = process.env['TEST_SPEED'] === 'long' ? 256 : 128;

describe('the places of a process in many queues of the store', () => {
  let world: LockWorld;
  let a: Instance;
  let b: Instance;

  beforeEach(() => {
    world = new LockWorld();
    a = world.instance('a');
    b = world.instance('b');
  });

  const names = (count: number) => Array.from({ length: count }, (_, index) => `r${index}`);
  const wait = (resource: string, options: LockOptions = {}, { locks } = b): Tracked<unknown> =>
    track(locks.acquire(resource, { waitMs: Infinity, ...options }));

  it('are kept 64 with a command, and nothing else is sent for many waits', async () => {
    await Promise.all(names(WAITS).map((name) => a.locks.acquire(name)));
    const waiting = names(WAITS).map((name) => wait(name, { leaseMs: 30_000 }));
    await settle();
    await world.clock.advance(30_000);
    b.store.commands.length = 0;
    await world.clock.advance(60_000);
    const sizes = b.store.sent('keep').map(({ resource }) => resource.split(',').length);
    expect(new Set(b.store.commands.map(({ verb }) => verb))).toEqual(new Set(['keep']));
    // Each place at a third of 30 s, and up to a quarter later.
    expect(sizes.length).toBeLessThanOrEqual((60 / 10) * Math.ceil(WAITS / 64) * 1.1);
    expect(sizes.reduce((sum, size) => sum + size, 0)).toBeGreaterThanOrEqual(WAITS * 4);
    expect(Math.max(...sizes)).toBe(64);
    // Up to four follow one another, so that the process and the store wake up less often.
    const moments = new Set(b.store.sent('keep').map(({ sentAt }) => sentAt)).size;
    expect(moments).toBeLessThan(sizes.length / 3);
    expect(waiting.every(({ state }) => state === 'pending')).toBe(true);
    expect(world.server.listWaiters(`r${WAITS - 1}`)).toEqual(['b']);
  }, 60_000);

  describe('cost at most twice the commands of waits and leases of one length', () => {
    /** How many commands b sends in a minute, for its waits for that many resources. */
    async function commandsOf(prepare: (name: string) => Promise<unknown>, options: LockOptions): Promise<number> {
      world = new LockWorld();
      [a, b] = [world.instance('a'), world.instance('b')];
      await Promise.all(names(FEWER).map(prepare));
      for (const name of names(FEWER)) wait(name, options);
      await settle();
      await world.clock.advance(40_000);
      b.store.commands.length = 0;
      await world.clock.advance(60_000);
      return b.store.commands.length;
    }
    const held = (options: LockOptions) => (name: string) => a.locks.acquire(name, options);

    it.each([
      [10_000, 30_000],
      [15_000, 60_000],
      [3_000, 30_000],
      [30_000, 10_000],
    ])(
      'where the lease lasts %i ms, and that of the waiter %i',
      async (heldMs, waitedMs) => {
        const different = await commandsOf(held({ leaseMs: heldMs }), { leaseMs: waitedMs });
        const shorter = { leaseMs: Math.min(heldMs, waitedMs) };
        expect(different).toBeLessThanOrEqual(2 * (await commandsOf(held(shorter), shorter)));
      },
      60_000,
    );

    it('where another waiter has a shorter lease', async () => {
      const commands = async (leaseMs: number): Promise<number> => {
        let other: Instance | undefined;
        return commandsOf(async (name) => {
          other ??= world.instance('other');
          await a.locks.acquire(name);
          wait(name, { leaseMs }, other);
          await settle();
        }, {});
      };
      expect(await commands(12_000)).toBeLessThanOrEqual(2 * (await commands(30_000)));
    }, 60_000);

    it('where readers are waited for', async () => {
      const readers = await commandsOf(held({ mode: 'read' }), { mode: 'write' });
      expect(readers).toBeLessThanOrEqual(2 * (await commandsOf(held({}), {})));
    }, 60_000);
  });
});

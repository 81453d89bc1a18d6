import type { LockOptions } from '../../../../lib/kernel/api/lock-options.js';
import { settle } from '../../../support/world/fake-clock.js';
import { type Instance, LockWorld } from '../../../support/world/lock-world.js';
import { gate, track } from '../../../support/expect/tracked.js';

describe('passing a lease on inside the process', () => {
  let world: LockWorld;
  let a: Instance;

  beforeEach(() => {
    world = new LockWorld();
    a = world.instance('a');
  });

  const verbs = ({ store }: Instance) => store.commands.map(({ verb }) => verb);
  const wait = (options: LockOptions) => track(a.locks.acquire('stock', { waitMs: Infinity, ...options }));

  describe('does not happen', () => {
    const plain: LockOptions = { leaseMs: 3_000 };

    it.each<[string, LockOptions, LockOptions]>([
      ['for a lease of another length', plain, { leaseMs: 3_001 }],
      ['for another mode', plain, { ...plain, mode: 'reentrant' }],
      ['for a fixed lease', plain, { ...plain, watchdog: false }],
      ['by a fixed lease', { ...plain, watchdog: false }, plain],
      ['for a lease with maxHoldMs', plain, { ...plain, maxHoldMs: 60_000 }],
      ['by a lease with maxHoldMs', { ...plain, maxHoldMs: 60_000 }, plain],
      ['between fixed leases', { ...plain, watchdog: false }, { ...plain, watchdog: false }],
    ])('%s: the lease is rotated', async (_, one, other) => {
      const first = await a.locks.acquire('stock', one);
      const second = wait(other);
      await first.release();
      await settle();
      expect(verbs(a)).toEqual(['acquire', 'rotate']);
      expect(second.value.isHeld()).toBe(true);
      expect(second.value.fencingToken % 32).toBe(0);
    });

    it('with the old length after the lease was extended', async () => {
      const first = await a.locks.acquire('stock', { leaseMs: 3_000 });
      const second = wait({ leaseMs: 3_000 });
      await first.extend(60_000);
      await first.release();
      await settle();
      expect(verbs(a)).toEqual(['acquire', 'renew', 'rotate']);
      expect(second.value.remainingMs()).toBe(3_000 - 32);
    });

    it('to a caller that polls, because it is not in line', async () => {
      const first = await a.locks.acquire('stock');
      const polling = track(a.locks.acquire('stock', { retry: { next: () => 5 } }));
      await settle();
      await first.release();
      expect(verbs(a)).toEqual(['acquire', 'acquire', 'release']);
      await world.clock.advance(5);
      expect(polling.state).toBe('fulfilled');
    });
  });

  it('works for reentrant leases: the next one starts with one entry, and may enter again', async () => {
    const held = gate();
    const work = track(
      a.locks.using('stock', { mode: 'reentrant' }, () =>
        a.locks.using('stock', { mode: 'reentrant' }, () => held.opened),
      ),
    );
    await settle();
    const depths: number[] = [];
    const inspect = async () => depths.push((await a.locks.inspect('stock')).holders[0]!.depth);
    const next = track(
      a.locks.using('stock', { mode: 'reentrant' }, async ({ fencingToken }) => {
        await inspect();
        await a.locks.using('stock', { mode: 'reentrant' }, inspect);
        await inspect();
        return fencingToken;
      }),
    );
    held.open();
    await settle();
    expect([work.state, next.state]).toEqual(['fulfilled', 'fulfilled']);
    expect(depths).toEqual([1, 2, 1]);
    expect(next.value % 32).toBe(1);
    expect(a.store.sent('acquire')).toHaveLength(1);
    expect(world.server.isEmpty).toBe(true);
  });
});

import type { LockOptions } from '../../../../lib/core/api/lock-options.js';
import { gate, track } from '../../../support/expect/tracked.js';
import { settle } from '../../../support/world/fake-clock.js';
import { eventsOf, type Instance, LockWorld } from '../../../support/world/lock-world.js';
import { failing } from '../../../support/world/scripted-store.js';

const REENTRANT: LockOptions = { mode: 'reentrant' };

describe('usingAdopted', () => {
  let world: LockWorld;
  let a: Instance;
  let b: Instance;

  beforeEach(() => {
    world = new LockWorld();
    a = world.instance('a');
    b = world.instance('b');
  });

  /** The text of a lease that process a transfers. */
  async function transferred(options?: LockOptions, resource: string | string[] = 'stock'): Promise<string> {
    const lease = await a.locks.acquire(resource, options);
    return lease.transfer();
  }

  it('runs the work in the async context of the lease, and releases it', async () => {
    const result = await b.locks.usingAdopted(await transferred(), async (lease) => {
      await settle();
      expect(b.locks.current()).toBe(lease);
      expect(b.locks.currentOrThrow('stock')).toBe(lease);
      b.locks.assertLocked('stock');
      await expect(b.locks.acquire('stock')).rejects.toMatchObject({ code: 'LOCK_REENTRY' });
      return 'booked';
    });
    expect(result).toBe('booked');
    expect(b.locks.current()).toBeUndefined();
    expect(eventsOf(b, 'released')).toHaveLength(1);
    expect(world.server.isEmpty).toBe(true);
  });

  it('lets reentrant methods below it enter, with its token', async () => {
    await b.locks.usingAdopted(await transferred(REENTRANT), async (lease) => {
      const token = await b.locks.using('stock', REENTRANT, ({ fencingToken }) => fencingToken);
      expect(token).toBe(lease.fencingToken);
      expect(await lease.verify()).toBe(true);
    });
    expect(b.store.sent('acquire')).toEqual([]);
    expect(world.server.isEmpty).toBe(true);
  });

  it('enters with all of several resources', async () => {
    await b.locks.usingAdopted(await transferred(REENTRANT, ['x', 'y']), async (lease) => {
      b.locks.assertLocked(['x', 'y']);
      expect(b.locks.current('y')).toBe(lease);
      expect(await b.locks.using('y', REENTRANT, ({ resource }) => resource)).toBe('y');
      expect(await b.locks.using(['x', 'y'], REENTRANT, ({ resources }) => resources)).toEqual(['x', 'y']);
      expect(lease.isHeld()).toBe(true);
    });
    expect(world.server.isEmpty).toBe(true);
  });

  it('counts the permits of an adopted lease', async () => {
    const options = { permits: 3 };
    const text = await (await a.locks.semaphore('slots', options).acquire({ count: 2 })).transfer();
    await b.locks.usingAdopted(text, async () => {
      const more = b.locks.semaphore('slots', options).acquire({ count: 2 });
      await expect(more).rejects.toMatchObject({ code: 'LOCK_REENTRY' });
    });
    expect(world.server.isEmpty).toBe(true);
  });

  it('takes the options of adopt', async () => {
    const options = { leaseMs: 500, watchdog: false };
    const work = b.locks.usingAdopted(await transferred(), options, () => world.clock.advance(500));
    await expect(work).rejects.toMatchObject({ code: 'LEASE_LOST', reason: 'expired' });
  });

  it('passes on what the work throws, and releases', async () => {
    const error = new RangeError('out of stock');
    const work = b.locks.usingAdopted(await transferred(), () => Promise.reject(error));
    await expect(work).rejects.toBe(error);
    expect(world.server.isEmpty).toBe(true);
  });

  it('does not call the work when the lease was adopted before, has ended, or cannot be adopted', async () => {
    let calls = 0;
    const work = () => void calls++;
    const text = await transferred();
    const held = await a.locks.adopt(text);
    await expect(b.locks.usingAdopted(text, work)).rejects.toMatchObject({ reason: 'adopted' });
    await held.release();
    await expect(b.locks.usingAdopted(text, work)).rejects.toMatchObject({ reason: 'expired' });
    const other = await transferred({}, 'other');
    b.store.fates.transfer = failing('refused');
    await expect(b.locks.usingAdopted(other, work)).rejects.toMatchObject({ code: 'LOCK_UNAVAILABLE' });
    await expect(b.locks.usingAdopted('not a text', work)).rejects.toMatchObject({ option: 'text' });
    expect(calls).toBe(0);
  });

  it.each([[undefined], [{}, undefined], [() => {}, {}], [{ leaseMs: 1 }, () => {}], [{ mode: 'read' }, () => {}]])(
    'refuses %p before the lease is taken from others who have the text',
    async (...given) => {
      const text = await transferred();
      const refused = b.locks.usingAdopted(text, ...(given as unknown as [() => void]));
      await expect(refused).rejects.toMatchObject({ code: 'INVALID_LOCK_OPTIONS' });
      expect(b.store.commands).toEqual([]);
      await (await a.locks.adopt(text)).release();
    },
  );

  it('releases nothing where the work transfers the lease again', async () => {
    const text = await b.locks.usingAdopted(await transferred(), (lease) => lease.transfer());
    expect(eventsOf(b, 'released')).toEqual([]);
    await (await a.locks.adopt(text)).release();
    expect(world.server.isEmpty).toBe(true);
  });

  it('works in the process and the async context that has transferred it', async () => {
    await a.locks.using('stock', REENTRANT, async (outer) => {
      const text = await outer.transfer();
      await a.locks.usingAdopted(text, async (lease) => {
        expect(a.locks.current('stock')).toBe(lease);
        await a.locks.using('stock', REENTRANT, () => {});
      });
      expect(a.locks.current('stock')).toBeUndefined();
    });
    expect(world.server.isEmpty).toBe(true);
  });

  it('is waited for by a shutdown', async () => {
    const over = gate();
    const working = track(b.locks.usingAdopted(await transferred(), () => over.opened));
    await settle();
    const closing = track(b.locks.shutdown(5_000));
    await world.clock.advance(1_000);
    expect([working.state, closing.state]).toEqual(['pending', 'pending']);
    over.open();
    await settle();
    expect([working.state, closing.state]).toEqual(['fulfilled', 'fulfilled']);
    expect(eventsOf(b, 'lost')).toEqual([]);
  });
});

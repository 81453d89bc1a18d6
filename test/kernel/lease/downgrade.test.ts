import type { LockOptions } from '../../../lib/kernel/api/lock-options.js';
import { settle } from '../../support/world/fake-clock.js';
import { eventsOf, type Instance, LockWorld } from '../../support/world/lock-world.js';
import { lostOnTheWay, replyLost } from '../../support/world/scripted-store.js';
import { track } from '../../support/expect/tracked.js';

const READ: LockOptions = { mode: 'read', waitMs: Infinity };
const WRITE: LockOptions = { mode: 'write', waitMs: Infinity };

describe('a writer that is downgraded to a reader', () => {
  let world: LockWorld;
  let a: Instance;
  let b: Instance;

  beforeEach(() => {
    world = new LockWorld();
    a = world.instance('a');
    b = world.instance('b');
  });

  const mode = async () => (await b.locks.inspect('stock')).mode;
  const size = ({ locks }: Instance) => locks['operators']['deps'].localQueues.size;

  async function expectNothingLeft(): Promise<void> {
    await world.clock.advance(60_000);
    expect([world.server.isEmpty, world.clock.timers, size(a), size(b)]).toEqual([true, 0, 0, 0]);
  }

  it('admits the readers of its own process, and keeps the lock until the last of them has left', async () => {
    const lease = await a.locks.acquire('stock', WRITE);
    const readers = [track(a.locks.acquire('stock', READ)), track(a.locks.acquire('stock', READ))];
    await settle();
    await lease.downgrade();
    await settle();
    expect(readers.map(({ value }) => value.mode)).toEqual(['read', 'read']);
    expect(eventsOf(a, 'acquired').map(({ mode }) => mode)).toEqual(['write', 'read', 'read']);
    await lease.release();
    await readers[0]!.value.release();
    expect(await readers[1]!.value.verify()).toBe(true);
    await readers[1]!.value.release();
    expect(a.store.sent('release')).toHaveLength(1);
    await expectNothingLeft();
  });

  it('admits no reader past a local writer that waits ahead of it', async () => {
    const lease = await a.locks.acquire('stock', WRITE);
    const writer = track(a.locks.acquire('stock', WRITE));
    const reader = track(a.locks.acquire('stock', READ));
    await settle();
    await lease.downgrade();
    await settle();
    expect([writer.state, reader.state]).toEqual(['pending', 'pending']);
    expect(world.server.listWaiters('stock')).toEqual(['a']);
    await lease.release();
    await settle();
    await writer.value.release();
    await settle();
    await reader.value.release();
    await expectNothingLeft();
  });

  it.each(['exclusive', 'reentrant'] as const)('is not possible in mode %s', async (other) => {
    const lease = await a.locks.acquire('stock', { mode: other });
    await expect(lease.downgrade()).rejects.toMatchObject({ code: 'INVALID_LOCK_OPTIONS', option: 'mode' });
    expect(lease.isHeld()).toBe(true);
  });

  it('is not possible for a lost lease', async () => {
    const lease = await a.locks.acquire('stock', WRITE);
    await b.locks.operators.forceRelease('stock', { fencingToken: lease.fencingToken });
    await expect(lease.downgrade()).rejects.toMatchObject({ code: 'LEASE_LOST', reason: 'takenOver' });
    await expect(lease.downgrade()).rejects.toMatchObject({ code: 'LEASE_LOST' });
  });

  it('is refused if the context writes further out or further in, and nothing is sent', async () => {
    await a.locks.using('stock', WRITE, (outer) =>
      a.locks.using('stock', WRITE, async (inner) => {
        for (const lease of [outer, inner]) {
          await expect(lease.downgrade()).rejects.toMatchObject({ code: 'LOCK_REENTRY' });
          expect([lease.mode, lease.isHeld()]).toEqual(['write', true]);
        }
      }),
    );
    expect(a.store.sent('downgrade')).toHaveLength(0);
  });

  it('applies to a nested reader alone: the writer remains a writer', async () => {
    await a.locks.using('stock', WRITE, (outer) =>
      a.locks.using('stock', READ, async (inner) => {
        await inner.downgrade();
        expect([outer.mode, inner.mode, await mode()]).toEqual(['write', 'read', 'write']);
      }),
    );
    expect(a.store.sent('downgrade')).toHaveLength(0);
    await expectNothingLeft();
  });

  describe('without a reply', () => {
    it('never writes again: it only reads from the request on', async () => {
      const lease = await a.locks.acquire('stock', WRITE);
      a.store.next('downgrade', lostOnTheWay, lostOnTheWay);
      const downgrading = track(lease.downgrade());
      expect(lease.mode).toBe('read');
      await world.clock.advance(1_000);
      expect(downgrading.error).toMatchObject({ code: 'LOCK_UNAVAILABLE', operation: 'downgrade' });
      expect([lease.mode, lease.isHeld(), await mode()]).toEqual(['read', true, 'write']);
      await lease.downgrade(); // once more
      expect(await mode()).toBe('read');
      await lease.release();
      await expectNothingLeft();
    });

    it('may be in effect: readers elsewhere read, and the lease is renewed like any other', async () => {
      const lease = await a.locks.acquire('stock', WRITE);
      a.store.next('downgrade', replyLost);
      const downgrading = track(lease.downgrade());
      await settle();
      const reader = await b.locks.acquire('stock', READ);
      await world.clock.advance(100_000);
      expect(downgrading.state).toBe('rejected');
      expect([lease.isHeld(), reader.isHeld()]).toEqual([true, true]);
    });
  });
});

import type { AcquireReply, LockStore } from '../../../lib/core/store/lock-store.js';
import type { SeenHolders } from '../../../lib/core/api/seen-holders.js';
import { type Peer, type QueueWorld, useQueueWorld } from '../subjects/queue-world.js';
import {
  EVERYTHING,
  EXCLUSIVE,
  LONG_MS,
  newOwner,
  PATIENT,
  permits,
  READ,
  REENTRANT,
  SHORT_MS,
  type Subject,
  take,
  WRITE,
} from '../subjects/subject.js';

function seenIn(reply: AcquireReply): SeenHolders | undefined {
  return 'seen' in reply ? reply.seen : undefined;
}

/** What every lock store keeps to: what it tells a caller that is not granted about the holders, with the same answer. */
export function describeSeenHolders(createSubject: () => Promise<Subject>, features = EVERYTHING): void {
  let subject: Subject;
  let world: QueueWorld;
  let holder: LockStore;
  let a: Peer;
  let b: Peer;

  useQueueWorld(createSubject, (here) => ({ subject, world, holder, a, b } = here));

  const tokenOf = async (instanceId: string): Promise<number> => {
    const { holders } = await holder.inspect('stock');
    return holders.find((one) => one.instanceId === instanceId)!.fencingToken;
  };

  it.each([EXCLUSIVE, REENTRANT, WRITE, READ])('names a single holder in mode $mode', async (wish) => {
    await world.holding(world.holder, wish);
    const fencingToken = await tokenOf('holder');
    await subject.pass(SHORT_MS);
    for (const queueing of [undefined, PATIENT, { ...PATIENT, maxWaiters: 0 }]) {
      const { list, count } = seenIn(await world.ask(a, EXCLUSIVE, queueing))!;
      expect(count).toBe(1);
      const [{ heldMs, ttlMs, ...seen }] = list as [(typeof list)[0]];
      expect(seen).toEqual({ instanceId: 'holder', isThisProcess: false, mode: wish.mode, fencingToken });
      expect(heldMs).toBeGreaterThanOrEqual(SHORT_MS);
      expect(heldMs).toBeLessThan(LONG_MS);
      expect(ttlMs).toBeGreaterThan(LONG_MS / 2);
      expect(ttlMs).toBeLessThanOrEqual(LONG_MS - SHORT_MS);
    }
  });

  it('says where the holder is another call of the same client', async () => {
    await world.holding(a, EXCLUSIVE);
    expect(seenIn(await world.ask(a, EXCLUSIVE))).toMatchObject({ list: [{ instanceId: 'a', isThisProcess: true }] });
    expect(seenIn(await world.ask(b, EXCLUSIVE))).toMatchObject({ list: [{ instanceId: 'a', isThisProcess: false }] });
  });

  it('counts from the first grant, however often the lease is renewed', async () => {
    const owner = await world.holding(world.holder, EXCLUSIVE);
    await subject.pass(SHORT_MS);
    await holder.renew(owner, LONG_MS);
    const [seen] = seenIn(await world.ask(a, EXCLUSIVE))!.list;
    expect(seen!.heldMs).toBeGreaterThanOrEqual(SHORT_MS - 1);
  });

  it('names the next holder once the lock was passed on', async () => {
    const owner = await world.held();
    const next = await world.waiting(a);
    await holder.release(owner);
    await world.granted(a, next);
    expect(seenIn(await world.ask(b, EXCLUSIVE))).toMatchObject({ count: 1, list: [{ instanceId: 'a' }] });
  });

  it('names the next holder in the answer that passes the lock on', async () => {
    const owner = await world.held();
    await world.waiting(a);
    const reply = await holder.rotate(owner, newOwner(holder, 'stock'), LONG_MS, PATIENT);
    expect(reply).toMatchObject({ released: true, next: { status: 'queued' } });
    expect(seenIn(reply.next as AcquireReply)).toMatchObject({ count: 1, list: [{ instanceId: 'a' }] });
  });

  it('names the readers whose lease runs, in the order of their tokens', async () => {
    await world.holding(b, READ);
    await world.holding(world.holder, READ, SHORT_MS);
    await world.holding(a, READ);
    await world.expire();
    const seen = seenIn(await world.ask(a, WRITE, PATIENT))!;
    expect(seen.count).toBe(2);
    expect(seen.list).toMatchObject([
      { instanceId: 'b', isThisProcess: false, mode: 'read' },
      { instanceId: 'a', isThisProcess: true, mode: 'read' },
    ]);
    expect(seen.list.map(({ fencingToken }) => fencingToken)).toEqual([await tokenOf('b'), await tokenOf('a')]);
    expect(seen.list[0]).not.toHaveProperty('permits');
  });

  it('names 8 of very many readers, and says how many there are', async () => {
    for (let i = 0; i < 20; i++) await world.holding(i % 2 ? a : b, READ);
    const seen = seenIn(await world.ask(world.holder, WRITE))!;
    expect(seen.count).toBe(20);
    expect(seen.list).toHaveLength(8);
    expect(new Set(seen.list.map(({ fencingToken }) => fencingToken)).size).toBe(8);
  });

  if (features.semaphores) {
    it('names the holders of permits, with how many permits each of them has', async () => {
      await world.holding(a, permits(2, 3));
      await world.holding(b, permits(1, 3));
      const seen = seenIn(await world.ask(world.holder, permits(1, 3)))!;
      expect(seen).toMatchObject({
        count: 2,
        list: [
          { instanceId: 'a', mode: 'semaphore', permits: 2 },
          { instanceId: 'b', mode: 'semaphore', permits: 1 },
        ],
      });
    });

    it.each([8, 9, 10, 30])('counts %d holders, not their permits', async (holders) => {
      for (let i = 0; i < holders; i++) await world.holding(i % 2 ? a : b, permits(2, 2 * holders));
      const seen = seenIn(await world.ask(world.holder, permits(1, 2 * holders)))!;
      expect(seen.count).toBe(holders);
      expect(seen.list).toHaveLength(8);
    });
  }

  it('says nothing secret', async () => {
    const owners = [await world.holding(world.holder, READ), await world.holding(a, READ)];
    const replies = [await world.ask(b, EXCLUSIVE), await world.ask(b, EXCLUSIVE, PATIENT)];
    for (const { id } of owners) {
      expect(JSON.stringify(replies)).not.toContain(id.slice(id.lastIndexOf('/') + 1));
    }
  });

  it('says nothing of a holder to one that is granted', async () => {
    const owner = newOwner(holder, 'stock');
    await take(holder, owner);
    expect(await holder.acquire(owner, LONG_MS)).toEqual({ status: 'granted', fencingToken: expect.any(Number) });
  });
}

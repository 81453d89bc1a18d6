import type { LockStore } from '../../../lib/core/store/lock-store.js';
import { type Peer, type QueueWorld, useQueueWorld } from '../subjects/queue-world.js';
import {
  newOwner,
  EVERYTHING,
  EXCLUSIVE,
  expectSameToken,
  LONG_MS,
  PATIENT,
  READ,
  SHORT_MS,
  type Subject,
  take,
  WRITE,
} from '../subjects/subject.js';
import { untimed } from '../../support/expect/untimed.js';

/** What every lock store keeps to: readers share, and nobody else does. */
export function describeReadWrite(createSubject: () => Promise<Subject>, features = EVERYTHING): void {
  const { oneQueue } = features;
  let subject: Subject;
  let world: QueueWorld;
  let holder: LockStore;
  let a: Peer;
  let b: Peer;

  useQueueWorld(createSubject, (here) => ({ subject, world, holder, a, b } = here));

  describe('readers', () => {
    it('share, each with its own token and expiry', async () => {
      const [first, second] = [newOwner(a.store, 'stock', 'read'), newOwner(b.store, 'stock', 'read')];
      const tokens = [await take(a.store, first, 3 * LONG_MS), await take(b.store, second, LONG_MS)];
      expect(tokens[1]).toBeGreaterThan(tokens[0]!);
      const { holders, ...state } = untimed(await holder.inspect('stock'));
      const ttlMs = expect.any(Number);
      expect(state).toEqual({ resource: 'stock', mode: 'read', ttlMs, waiters: [] });
      expect(holders).toEqual([
        { instanceId: 'a', fencingToken: tokens[0], ttlMs, depth: 1 },
        { instanceId: 'b', fencingToken: tokens[1], ttlMs, depth: 1 },
      ]);
      expect(holders[0]!.ttlMs).toBeGreaterThan(2 * LONG_MS);
      expect(holders[1]!.ttlMs).toBeLessThanOrEqual(LONG_MS);
      expect(state.ttlMs).toBe(holders[0]!.ttlMs);
    });

    it('of one instance share as those of several', async () => {
      await world.holding(a, READ);
      await world.holding(a, READ);
      expect(await world.holders()).toEqual(['a', 'a']);
    });

    it('keep their token, and are counted once, when they ask again; only their own lease starts anew', async () => {
      const first = newOwner(a.store, 'stock', 'read');
      const token = await take(a.store, first);
      await world.holding(b, READ);
      for (const leaseMs of [2 * LONG_MS, LONG_MS / 2]) {
        expectSameToken(await take(a.store, first, leaseMs), token, features);
      }
      const { holders } = untimed(await holder.inspect('stock'));
      expect(holders.map(({ instanceId }) => instanceId)).toEqual(['a', 'b']);
      expect(holders[0]!.ttlMs).toBeGreaterThan(LONG_MS);
      expect(holders[1]!.ttlMs).toBeLessThanOrEqual(LONG_MS);
    });

    it('renew their own lease and no other one', async () => {
      const first = await world.holding(a, READ);
      await world.holding(b, READ);
      expect(await a.store.renew(first, 2 * LONG_MS)).toBe(true);
      expect(await a.store.renew(first, LONG_MS)).toBe(true); // late: it cuts nothing
      const renewed = (await holder.inspect('stock')).holders;
      expect(renewed[0]!.ttlMs).toBeGreaterThan(LONG_MS);
      expect(renewed[1]!.ttlMs).toBeLessThanOrEqual(LONG_MS);
      expect(await a.store.renew(first, LONG_MS / 4, true)).toBe(true);
      const [cut, other] = (await holder.inspect('stock')).holders;
      expect(cut!.ttlMs).toBeLessThanOrEqual(LONG_MS / 4);
      expect(other!.ttlMs).toBeGreaterThan(LONG_MS / 2);
    });

    it('release their own lease and no other one, however often it is sent', async () => {
      const first = await world.holding(a, READ);
      const second = await world.holding(b, READ);
      expect(await a.store.release(newOwner(a.store, 'stock', 'read'))).toBe(false);
      expect(await a.store.release(first)).toBe(true);
      expect(await a.store.release(first)).toBe(false);
      expect(await world.holders()).toEqual(['b']);
      expect(await a.store.verify(first)).toBe(false);
      expect(await a.store.renew(first, LONG_MS)).toBe(false);
      expect(await b.store.verify(second)).toBe(true);
      expect(await b.store.release(second)).toBe(true);
      expect(await subject.isEmpty()).toBe(true);
    });

    it('have no depth to set', async () => {
      const reader = await world.holding(a, READ);
      expect(await a.store.setDepth(reader, 2, LONG_MS)).toBe(false);
      expect((await holder.inspect('stock')).holders[0]?.depth).toBe(1);
    });

    it('tell others how long the last of them lasts', async () => {
      await world.holding(a, READ, LONG_MS);
      await world.holding(b, READ, 3 * LONG_MS);
      await world.holding(a, READ, 2 * LONG_MS);
      const replies = [await world.ask(b, WRITE), await world.ask(b, EXCLUSIVE, PATIENT)];
      for (const reply of replies) expect((reply as { ttlMs: number }).ttlMs).toBeGreaterThan(2 * LONG_MS);
    });
  });

  it.each(
    (['exclusive', 'reentrant', 'read', 'write'] as const).flatMap((held) =>
      (['exclusive', 'reentrant', 'read', 'write'] as const).map((wanted) => [held, wanted] as const),
    ),
  )('a resource held in %s mode, wanted in %s mode', async (held, wanted) => {
    const owner = await world.holding(a, { mode: held });
    const isShared = held === 'read' && wanted === 'read';
    expect((await world.ask(b, { mode: wanted })).status).toBe(isShared ? 'granted' : 'busy');
    await a.store.release(owner);
    expect((await world.ask(b, { mode: wanted })).status).toBe(
      isShared || held !== 'read' || wanted !== 'read' ? 'granted' : 'busy',
    );
  });

  it('readers directly behind each other are granted together, and the writer behind them is not', async () => {
    const writer = await world.holding(world.holder, WRITE);
    const readers = [await world.queued(a, READ), await world.queued(b, READ), await world.queued(a, READ)];
    const second = await world.queued(b, WRITE);
    const late = await world.queued(a, READ);
    await holder.release(writer);
    await (oneQueue
      ? world.granted(a, readers[0]!, readers[2]!)
      : world.grantedInAnyOrder(a, readers[0]!, readers[2]!));
    await world.granted(b, readers[1]!);
    await world.nobodyElseIsGranted();
    const holders = await world.holders();
    expect(oneQueue ? holders : holders.sort()).toEqual(oneQueue ? ['a', 'b', 'a'] : ['a', 'a', 'b']);
    const behind = [
      { instanceId: 'b', mode: 'write' },
      { instanceId: 'a', mode: 'read' },
    ];
    const { waiters } = untimed(await holder.inspect('stock'));
    expect(waiters).toEqual(oneQueue ? behind : expect.arrayContaining(behind));
    await a.store.release(readers[0]!);
    await a.store.release(readers[2]!);
    await world.nobodyElseIsGranted();
    await b.store.release(readers[1]!);
    await world.granted(b, second);
    await b.store.release(second);
    await world.granted(a, late);
    await a.store.release(late);
    expect(await subject.isEmpty()).toBe(true);
  });

  if (oneQueue) {
    it('readers that are granted together have different tokens, which grow in their order', async () => {
      const token = await take(holder, newOwner(holder, 'other'));
      const writer = await world.holding(world.holder, WRITE);
      await world.queued(a, READ);
      await world.queued(a, READ);
      await holder.release(writer);
      const tokens = [token, (await a.grants.next()).fencingToken, (await a.grants.next()).fencingToken];
      expect(tokens).toEqual([...new Set(tokens)].sort((x, y) => x - y));
      expect((await holder.inspect('stock')).holders.map(({ fencingToken }) => fencingToken)).toEqual(tokens.slice(1));
    });
  }

  it('a release that is sent again grants nobody twice', async () => {
    const writer = await world.holding(world.holder, WRITE);
    const reader = await world.queued(a, READ);
    await world.queued(b, WRITE);
    expect(await holder.release(writer)).toBe(true);
    const { fencingToken } = await a.grants.next();
    expect(await holder.release(writer)).toBe(false);
    expectSameToken(await take(a.store, reader), fencingToken, features);
    await world.nobodyElseIsGranted();
  });

  it('a reader that hands over to the next of its instance stands behind the writer that waits', async () => {
    const reader = await world.holding(world.holder, READ);
    const writer = await world.queued(a, WRITE);
    const next = newOwner(holder, 'stock', 'read');
    const rotate = () => holder.rotate(reader, next, LONG_MS, PATIENT);
    expect(await rotate()).toMatchObject({ released: true, next: { status: 'queued' } });
    expect(await rotate()).toMatchObject({ released: false, next: { status: 'queued' } });
    await world.granted(a, writer);
    await a.store.release(writer);
    await world.granted(world.holder, next);
  });

  it('a reader that hands over to the next of its instance gets in with the others where nobody waits', async () => {
    const reader = await world.holding(world.holder, READ);
    await world.holding(a, READ);
    const next = newOwner(holder, 'stock', 'read');
    const reply = await holder.rotate(reader, next, LONG_MS, PATIENT);
    expect(reply).toMatchObject({ released: true, next: { status: 'granted' } });
    expect(await world.holders()).toEqual(['a', 'holder']);
  });

  it.each([READ, WRITE])('is held to those who claim a tick: %j', async (wish) => {
    await world.holding(world.holder, wish);
    const owner = newOwner(a.store, 'stock');
    const claim = { owner, leaseMs: LONG_MS, keepMs: LONG_MS, overlap: 'wait', takeOver: 'nothing' } as const;
    const reply = await a.tickStore.claim({ resource: 'stock', tick: 'noon' }, claim);
    expect(reply).toEqual({ status: 'claimed', ttlMs: expect.any(Number) });
    expect(await world.holders()).toEqual(['holder']);
  });

  it('nothing is left when all readers have died', async () => {
    await world.holding(a, READ, SHORT_MS);
    await world.holding(b, READ, SHORT_MS);
    await world.queued(b, WRITE, { leaseMs: SHORT_MS });
    await world.expire();
    expect(await subject.isEmpty()).toBe(true);
  });
}

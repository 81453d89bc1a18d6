import type { LockOptions } from '../../../../lib/core/api/lock-options.js';
import { settle } from '../../../support/world/fake-clock.js';
import { eventsOf, type Instance, LockWorld } from '../../../support/world/lock-world.js';
import {
  brokenAfter,
  executedWhen,
  failing,
  lostOnTheWay,
  replyLost,
  repliedWhen,
} from '../../../support/world/scripted-store.js';
import { gate, track } from '../../../support/expect/tracked.js';

const READ: LockOptions = { mode: 'read' };
const LEASE_MS = 30_000;

describe('transferring a lease to another process', () => {
  let world: LockWorld;
  let a: Instance;
  let b: Instance;

  beforeEach(() => {
    world = new LockWorld();
    a = world.instance('a', { defaults: { leaseMs: LEASE_MS } });
    b = world.instance('b');
  });

  const holders = async () => (await b.locks.inspect('stock')).holders;
  const size = ({ locks }: Instance) => locks['operators']['deps'].localQueues.size;

  it('leaves the resource locked until it is adopted, with the same token', async () => {
    const lease = await a.locks.acquire('stock');
    const text = await lease.transfer();
    expect(await holders()).toMatchObject([{ instanceId: 'a', fencingToken: lease.fencingToken, ttlMs: LEASE_MS }]);
    const adopted = await b.locks.adopt(text);
    expect(adopted.fencingToken).toBe(lease.fencingToken);
    expect(await holders()).toMatchObject([{ instanceId: 'b', fencingToken: lease.fencingToken }]);
    await adopted.release();
    expect(world.server.isEmpty).toBe(true);
  });

  it('is the end of the lease: it is not held, and says why where it is used', async () => {
    const lease = await a.locks.acquire('stock');
    const { signal } = lease;
    await lease.transfer();
    expect([lease.isHeld(), lease.remainingMs(), signal.aborted]).toEqual([false, 0, false]);
    expect(() => lease.assertHeld()).toThrow('it was transferred with transfer()');
    for (const use of [() => lease.extend(), () => lease.downgrade(), () => lease.transfer()]) {
      await expect(use()).rejects.toMatchObject({ code: 'LEASE_LOST', reason: 'transferred' });
    }
    expect(await lease.verify()).toBe(false);
    await lease.release();
    expect(a.store.sent('release')).toHaveLength(0);
    expect(a.events.map(({ type }) => type)).toEqual(['acquired', 'transferred']);
  });

  it('stops the watchdog: the lease ends unless it is adopted in time', async () => {
    const lease = await a.locks.acquire('stock');
    await lease.transfer({ leaseMs: 1_000 });
    await world.clock.advance(999);
    expect(await holders()).toHaveLength(1);
    await world.clock.advance(1);
    expect(await holders()).toHaveLength(0);
    expect(a.store.sent('renew')).toHaveLength(0);
    await world.clock.advance(60_000);
    expect([world.clock.timers, size(a)]).toEqual([0, 0]);
  });

  it('keeps the token of the lease itself, where it follows others in one storeLease', async () => {
    const first = await a.locks.acquire('stock');
    const waiting = track(a.locks.acquire('stock'));
    await first.release();
    await settle();
    const second = waiting.value;
    expect(second.fencingToken).toBe(first.fencingToken + 1);
    const adopted = await b.locks.adopt(await second.transfer());
    expect(adopted.fencingToken).toBe(second.fencingToken);
  });

  it('lets the local waiters go on: they ask Redis', async () => {
    const lease = await a.locks.acquire('stock');
    const waiting = track(a.locks.acquire('stock'));
    await settle();
    const text = await lease.transfer();
    await settle();
    expect([waiting.state, world.server.listWaiters('stock')]).toEqual(['pending', ['a']]);
    await (await b.locks.adopt(text)).release();
    await settle();
    expect(waiting.value.fencingToken).toBeGreaterThan(lease.fencingToken);
  });

  it('is done at the end of the work, and the work is not disturbed by the release that follows', async () => {
    const text = await a.locks.using('stock', undefined, (lease) => lease.transfer());
    expect(a.store.sent('release')).toHaveLength(0);
    expect((await b.locks.adopt(text)).isHeld()).toBe(true);
  });

  it('is refused where the context has entered more than once, and nothing is sent', async () => {
    for (const mode of ['reentrant', 'read', 'write'] as const) {
      await a.locks.using(mode, { mode }, (outer) =>
        a.locks.using(mode, { mode }, async (inner) => {
          await expect(inner.transfer()).rejects.toMatchObject({ code: 'LOCK_REENTRY', resource: mode });
          expect([outer.isHeld(), inner.isHeld()]).toEqual([true, true]);
        }),
      );
    }
    expect(a.store.sent('transfer')).toHaveLength(0);
  });

  it('refuses options that cannot be right before anything is sent', async () => {
    const lease = await a.locks.acquire('stock');
    await expect(lease.transfer({ leaseMs: 49 })).rejects.toMatchObject({ option: 'leaseMs' });
    await expect(lease.transfer({ ttl: 1 } as never)).rejects.toMatchObject({ code: 'INVALID_LOCK_OPTIONS' });
    expect(a.store.sent('transfer')).toHaveLength(0);
    expect(lease.isHeld()).toBe(true);
  });

  it('fails with the loss where the lock had been lost before', async () => {
    const lease = await a.locks.acquire('stock');
    await b.locks.operators.forceRelease('stock', { fencingToken: lease.fencingToken });
    await expect(lease.transfer()).rejects.toMatchObject({ code: 'LEASE_LOST', reason: 'takenOver' });
    expect(eventsOf(a, 'transferred')).toHaveLength(0);
    expect(lease.signal.aborted).toBe(true);
  });

  describe('without an answer', () => {
    it('leaves the lease where it was when Redis has not done it', async () => {
      const lease = await a.locks.acquire('stock');
      a.store.fates.transfer = failing('notExecuted');
      const transferring = track(lease.transfer({ leaseMs: 50 }));
      await world.clock.advance(1_000);
      expect(transferring.error).toMatchObject({ code: 'LOCK_UNAVAILABLE', operation: 'transfer' });
      expect([lease.isHeld(), lease.remainingMs()]).toEqual([true, LEASE_MS - 302 - 1_000]);
      await world.clock.advance(120_000);
      expect(lease.isHeld()).toBe(true);
    });

    it('trusts the lease for no longer than the next owner has it in Redis', async () => {
      const lease = await a.locks.acquire('stock');
      a.store.next('transfer', replyLost);
      const transferring = track(lease.transfer({ leaseMs: 2_000 }));
      await world.clock.advance(1_000);
      expect(transferring.error).toMatchObject({ code: 'LOCK_UNAVAILABLE', lastAttempt: 'timeout' });
      const { signal } = lease;
      const other = track(b.locks.acquire('stock', { waitMs: Infinity }));
      for (let ms = 0; ms < 5_000; ms += 10) {
        await world.clock.advance(10);
        if (other.state === 'fulfilled') expect([signal.aborted, lease.isHeld()]).toEqual([true, false]);
      }
      expect(other.state).toBe('fulfilled');
      expect(lease.isHeld()).toBe(false);
    });

    it('loses the lease when a renewal learns that it has moved, and gives back what nobody can adopt', async () => {
      const lease = await a.locks.acquire('stock', { leaseMs: 9_000 });
      a.store.next('transfer', brokenAfter);
      await expect(lease.transfer({ leaseMs: 60_000 })).rejects.toMatchObject({ code: 'LOCK_UNAVAILABLE' });
      expect(lease.isHeld()).toBe(true);
      await world.clock.advance(3_000);
      expect(lease.signal.reason).toMatchObject({ reason: 'takenOver' });
      expect(world.server.isEmpty).toBe(true);
      await lease.release();
      await world.clock.advance(20_000);
      expect([world.clock.timers, size(a)]).toEqual([0, 0]);
    });

    it('gives back what nobody can adopt when the lease is released before that is known', async () => {
      const lease = await a.locks.acquire('stock');
      a.store.next('transfer', brokenAfter);
      await lease.transfer({ leaseMs: 60_000 }).catch(() => {});
      await lease.release();
      await settle();
      expect(world.server.isEmpty).toBe(true);
    });

    it('releases what is transferred late, and the lease is lost', async () => {
      const lease = await a.locks.acquire('stock');
      const late = gate();
      a.store.next('transfer', executedWhen(late.opened));
      const transferring = track(lease.transfer());
      await world.clock.advance(1_000);
      expect([transferring.state, lease.isHeld()]).toEqual(['rejected', true]);
      late.open();
      await settle();
      expect([lease.isHeld(), world.server.isEmpty]).toEqual([false, true]);
      expect(eventsOf(a, 'lost')).toHaveLength(1);
    });

    it('releases what is transferred while its withdrawal is under way', async () => {
      const lease = await a.locks.acquire('stock');
      const late = gate();
      const reply = gate();
      a.store.next('transfer', executedWhen(late.opened));
      track(lease.transfer());
      await world.clock.advance(1_000);
      a.store.next('release', repliedWhen(reply.opened), executedWhen(reply.opened));
      const releasing = track(lease.release()); // the withdrawal comes first, and finds nothing
      await settle();
      late.open();
      await settle();
      reply.open();
      await settle();
      expect([releasing.state, world.server.isEmpty]).toEqual(['fulfilled', true]);
    });

    it('passes nothing on in memory: what a local waiter got could move away under it', async () => {
      const lease = await a.locks.acquire('stock');
      const waiting = track(a.locks.acquire('stock', { waitMs: Infinity }));
      const late = gate();
      a.store.next('transfer', executedWhen(late.opened));
      const transferring = track(lease.transfer());
      await settle();
      await lease.release();
      await settle();
      late.open();
      await settle();
      expect(transferring.state).toBe('rejected');
      expect(waiting.value.isHeld()).toBe(true);
      expect(await waiting.value.verify()).toBe(true);
      await waiting.value.release();
      await settle();
      expect(world.server.isEmpty).toBe(true);
    });

    it('keeps the lease of a reader whose share of a store lease may have moved', async () => {
      const [one, other] = await Promise.all([a.locks.acquire('stock', READ), a.locks.acquire('stock', READ)]);
      a.store.next('transfer', brokenAfter);
      await expect(one.transfer({ leaseMs: 1_000 })).rejects.toMatchObject({ code: 'LOCK_UNAVAILABLE' });
      await world.clock.advance(100_000);
      expect([one.isHeld(), other.isHeld()]).toEqual([true, true]);
      await Promise.all([one.release(), other.release()]);
      await settle();
      expect(world.server.isEmpty).toBe(true);
    });
  });

  describe('of a reader beside others of its process', () => {
    const readers = (count: number) => Promise.all(Array.from({ length: count }, () => a.locks.acquire('stock', READ)));

    it('lets the others read on', async () => {
      const [one, other] = await readers(2);
      const adopted = await b.locks.adopt(await one!.transfer());
      expect([one!.isHeld(), other!.isHeld(), adopted.isHeld()]).toEqual([false, true, true]);
      expect((await holders()).map(({ instanceId }) => instanceId).sort()).toEqual(['a', 'b']);
      await world.clock.advance(60_000);
      expect([other!.isHeld(), adopted.isHeld()]).toEqual([true, true]);
      await other!.release();
      expect((await holders()).map(({ instanceId }) => instanceId)).toEqual(['b']);
      await adopted.release();
      expect(world.server.isEmpty).toBe(true);
    });

    it('lets nobody read on what is about to move', async () => {
      const [one] = await readers(1);
      const sent = gate();
      a.store.next('transfer', repliedWhen(sent.opened));
      const transferring = track(one!.transfer());
      await settle();
      const joined = track(a.locks.acquire('stock', READ));
      await settle();
      sent.open();
      await settle();
      await (await b.locks.adopt(transferring.value)).release();
      expect(joined.value.isHeld()).toBe(true);
      expect(await joined.value.verify()).toBe(true); // or a writer would be granted beside it
      await joined.value.release();
      expect(world.server.isEmpty).toBe(true);
    });

    it.each(['both are transferred', 'the other one is released'])(
      'leaves nothing behind when %s at once',
      async (how) => {
        const [one, other] = await readers(2);
        const isTransferred = how.startsWith('both');
        const [text, second] = await Promise.all([
          one!.transfer(),
          isTransferred ? other!.transfer() : other!.release(),
        ]);
        const texts = isTransferred ? [text, second as string] : [text];
        expect(await holders()).toHaveLength(texts.length);
        for (const each of texts) await (await b.locks.adopt(each)).release();
        expect([world.server.isEmpty, size(a)]).toEqual([true, 0]);
      },
    );

    it.each(['before', 'after'])(
      'leaves nothing behind where a shutdown ends both, and the other one is released %s the answer',
      async (when) => {
        const [one, other] = await readers(2);
        const reply = gate();
        a.store.next('transfer', repliedWhen(reply.opened));
        track(one!.transfer());
        track(a.locks.shutdown(100));
        await world.clock.advance(100);
        expect([one!.isHeld(), other!.isHeld()]).toEqual([false, false]);
        if (when === 'before') await other!.release();
        reply.open();
        await settle();
        if (when === 'after') await other!.release();
        await settle();
        expect(await holders()).toHaveLength(1); // whoever is to adopt it
      },
    );

    it('happens once for a lease that is transferred twice', async () => {
      const [one, other] = await readers(2);
      const twice = [track(one!.transfer()), track(one!.transfer())];
      await settle();
      expect(twice.map(({ state }) => state)).toEqual(['fulfilled', 'rejected']);
      expect(eventsOf(a, 'transferred')).toHaveLength(1);
      await other!.release();
      await (await b.locks.adopt(twice[0]!.value)).release();
      expect(world.server.isEmpty).toBe(true);
    });
  });

  describe.each<[string, LockOptions]>([
    ['in a line', READ],
    ['by a poller', { ...READ, retry: { next: () => 10 } }],
  ])('when an attempt %s that was granted in the end is executed once more', (_, options) => {
    it('leaves nothing behind for the owner that it was before', async () => {
      const late = gate();
      const reply = gate();
      a.store.next('acquire', executedWhen(late.opened));
      const acquiring = track(a.locks.acquire('stock', { ...options, attemptTimeoutMs: 100 }));
      await world.clock.advance(200); // the second attempt is granted
      a.store.next('transfer', repliedWhen(reply.opened));
      const transferring = track(acquiring.value.transfer());
      await settle();
      late.open(); // the first one is granted as well: the owner reads no more
      await settle();
      expect(await holders()).toHaveLength(2);
      reply.open();
      await settle();
      expect(await holders()).toHaveLength(1);
      await (await b.locks.adopt(transferring.value)).release();
      expect(world.server.isEmpty).toBe(true);
    });
  });

  describe('of several resources', () => {
    it('is one text, and each keeps its token', async () => {
      const lease = await a.locks.acquire(['stock', 'other']);
      const adopted = await b.locks.adopt(await lease.transfer());
      expect(adopted.resources).toEqual(['other', 'stock']);
      for (const name of adopted.resources) expect(adopted.fencingTokenOf(name)).toBe(lease.fencingTokenOf(name));
      await adopted.release();
      expect(world.server.isEmpty).toBe(true);
    });

    it('is all or nothing: what has moved is given back when another part has been lost', async () => {
      const lease = await a.locks.acquire(['stock', 'other']);
      await b.locks.operators.forceRelease('stock', { fencingToken: lease.fencingTokenOf('stock') });
      await expect(lease.transfer()).rejects.toMatchObject({ code: 'LEASE_LOST', resource: 'stock' });
      await settle();
      expect(world.server.isEmpty).toBe(true);
      expect(lease.isHeld()).toBe(false);
    });

    it('moves nothing where one of them was entered more than once', async () => {
      const options: LockOptions = { mode: 'reentrant' };
      await a.locks.using(['stock', 'other'], options, (both) =>
        a.locks.using('stock', options, async () => {
          await expect(both.transfer()).rejects.toMatchObject({ code: 'LOCK_REENTRY' });
          expect(both.isHeld()).toBe(true);
        }),
      );
      expect(a.store.sent('transfer')).toHaveLength(0);
    });

    it('gives back every part when Redis hangs in the middle', async () => {
      const lease = await a.locks.acquire(['stock', 'other']);
      a.store.next('transfer', (execute) => execute(), lostOnTheWay);
      const transferring = track(lease.transfer());
      await world.clock.advance(1_000);
      expect(transferring.error).toMatchObject({ code: 'LOCK_UNAVAILABLE', resource: 'stock' });
      await lease.release();
      await settle();
      expect(world.server.isEmpty).toBe(true);
    });
  });
});

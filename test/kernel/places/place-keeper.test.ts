import { AsyncLocalStorage } from 'node:async_hooks';
import type { Lease } from '../../../lib/kernel/api/lease.js';
import type { LockOptions } from '../../../lib/kernel/api/lock-options.js';
import type { KeepReply } from '../../../lib/kernel/store/lock-store.js';
import { LockStoreError } from '../../../lib/kernel/store/store-error.js';
import { settle } from '../../support/world/fake-clock.js';
import { type Instance, LockWorld } from '../../support/world/lock-world.js';
import { failing, grantLost, lostOnTheWay, repliedWhen, type Verb } from '../../support/world/scripted-store.js';
import { SeededRandom } from '../../support/world/seeded-random.js';
import { ProcessClock } from '../../support/simulation/simulated-process.js';
import { gate, track, type Tracked } from '../../support/expect/tracked.js';

describe('the places of a process in the queues of the store', () => {
  let world: LockWorld;
  let a: Instance;
  let b: Instance;

  beforeEach(() => {
    world = new LockWorld();
    a = world.instance('a');
    b = world.instance('b');
  });

  const names = (count: number) => Array.from({ length: count }, (_, index) => `r${index}`);
  const wait = (resource = 'stock', options: LockOptions = {}, { locks } = b) =>
    track(locks.acquire(resource, { waitMs: Infinity, ...options }));
  const sent = (verb: Verb, since = 0) => b.store.sent(verb).filter(({ sentAt }) => sentAt > since);
  /** How many places each command has kept. */
  const sizes = (since = 0) => sent('keep', since).map(({ resource }) => resource.split(',').length);

  /** b waits for resources that a holds, and has been told so. */
  async function waitForMany(count: number, options: LockOptions = {}): Promise<Tracked<unknown>[]> {
    await Promise.all(names(count).map((name) => a.locks.acquire(name)));
    const waiting = names(count).map((name) => wait(name, options));
    await settle();
    return waiting;
  }

  describe('while messages arrive', () => {
    it('are kept by one command in a third of a lease, for the candidates of 20 leaderships', async () => {
      const campaigns = names(20).map((name) => [a, b].map(({ locks }) => locks.campaign(name, {})));
      await world.clock.advance(60_000);
      b.store.commands.length = 0;
      await world.clock.advance(60_000);
      expect(new Set(b.store.commands.map(({ verb }) => verb))).toEqual(new Set(['keep']));
      expect(b.store.commands.length).toBeLessThanOrEqual(12);
      await Promise.all(campaigns.flat().map((campaign) => campaign.resign()));
    });

    it.each([2_500, 5_000, 6_500, 9_000])(
      'soon share a command with those that began to wait %i ms later',
      async (laterMs) => {
        await waitForMany(10);
        await world.clock.advance(laterMs);
        await Promise.all(names(20).map((name) => a.locks.acquire(`later-${name}`)));
        for (const name of names(20)) wait(`later-${name}`);
        await world.clock.advance(30_000);
        const since = world.clock.now();
        await world.clock.advance(60_000);
        expect(new Set(sizes(since))).toEqual(new Set([30]));
      },
    );

    it('are not kept for a short wait', async () => {
      await waitForMany(3, { waitMs: 1_000 });
      await world.clock.advance(60_000);
      expect(b.store.sent('acquire')).toHaveLength(3);
      expect(sent('keep')).toEqual([]);
    });

    it('are kept together where they have one fence, and apart where they have not', async () => {
      b.store.fenceOf = (resource) => `slot ${Number(resource.slice(1)) % 2}`;
      await waitForMany(4, { leaseMs: 3_000 });
      await world.clock.advance(1_250);
      expect(sent('keep').map(({ resource }) => resource.split(',').toSorted().join())).toEqual(
        expect.arrayContaining(['r0,r2', 'r1,r3']),
      );
    });

    it('are relied on for as long as any of them is wanted', async () => {
      const isRelied = () => b.store.hearing!.isRelied;
      const [first, second] = [await a.locks.acquire('r0'), await a.locks.acquire('r1')];
      expect(isRelied()).toBe(false);
      const waiting = [wait('r0'), wait('r1', { waitMs: 3_000 })];
      await settle();
      expect(isRelied()).toBe(true);
      await first.release();
      await settle();
      expect(waiting[0]!.state).toBe('fulfilled');
      expect(isRelied()).toBe(true);
      await world.clock.advance(3_000);
      expect(waiting[1]!.state).toBe('rejected');
      expect(isRelied()).toBe(false);
      await second.release();
    });
  });

  describe('of several processes behind a holder that dies', () => {
    const crowd = (count: number) => Array.from({ length: count }, (_, index) => world.instance(`c${index}`));

    it('are looked at one after another, the first one when the lease is over', async () => {
      await a.locks.acquire('stock', { leaseMs: 3_000, watchdog: false });
      const instances = crowd(50);
      const waiting = [];
      for (const instance of instances) {
        waiting.push(wait('stock', {}, instance));
        await settle();
      }
      const since = world.clock.now();
      await world.clock.advance(3_002);
      expect(waiting[0]!.state).toBe('fulfilled');
      await world.clock.advance(1_500);
      // The first one is told to ask, and the others keep their places.
      const sentThen = (verb: Verb) =>
        instances.map(({ store }) => store.sent(verb).filter(({ sentAt }) => sentAt > since + 2_900));
      expect(sentThen('acquire').map(({ length }) => length)).toEqual([1, ...Array(49).fill(0)]);
      const looked = sentThen('keep');
      expect(looked.map(({ length }) => length)).toEqual(Array(50).fill(1));
      for (const [index, [command]] of looked.entries()) {
        const lateMs = command!.sentAt - since - 3_000;
        expect(lateMs).toBeGreaterThanOrEqual(1 + 10 * index);
        expect(lateMs).toBeLessThanOrEqual((1 + 10 * index) * 1.25);
      }
    });

    it('are asked for when the lease is over, though it was shortened by the process that then died', async () => {
      const lease = await a.locks.acquire('stock', { watchdog: false });
      const waiting = [wait(), wait('stock', {}, world.instance('c'))];
      await settle();
      await lease.extend(1_000);
      await world.clock.advance(900);
      expect(waiting.map(({ state }) => state)).toEqual(['pending', 'pending']);
      await world.clock.advance(200);
      expect(waiting.map(({ state }) => state)).toEqual(['fulfilled', 'pending']);
    });

    it('are asked for when a message said that they are free, though a keep of that moment is not answered', async () => {
      const lease = await a.locks.acquire('stock', { minHoldMs: 20_000 });
      const waiting = wait('stock', { attemptTimeoutMs: 20_000 });
      await settle();
      b.store.next('keep', lostOnTheWay);
      await world.clock.advance(13_000);
      expect(sent('keep')).toHaveLength(1);
      await lease.release();
      await world.clock.advance(6_900);
      expect(waiting.state).toBe('pending');
      await world.clock.advance(200);
      expect(waiting.state).toBe('fulfilled');
    });

    it('are asked for at once where the store has to go on, however many stand before them', async () => {
      await a.locks.acquire('stock');
      const [before, last] = [crowd(50), world.instance('last')];
      for (const instance of before) wait('stock', {}, instance);
      await settle();
      last.store.next('acquire', async (execute) => ({ ...(await execute()), ttlMs: 1 }));
      wait('stock', {}, last);
      await world.clock.advance(3);
      expect(last.store.sent('acquire')).toHaveLength(2);
    });

    it('are asked for soon where a waiter with a short lease is granted, and dies', async () => {
      const [short, ...long] = crowd(3) as [Instance, Instance, Instance];
      const holder = await a.locks.acquire('stock');
      wait('stock', { leaseMs: 1_000 }, short);
      await settle();
      const waiting = long.map((instance) => wait('stock', {}, instance));
      await world.clock.advance(20_000);
      short.store.grantFate = grantLost;
      short.store.all(lostOnTheWay);
      await holder.release();
      await world.clock.advance(1_100);
      expect(waiting.map(({ state }) => state)).toEqual(['fulfilled', 'pending']);
    });

    it('are asked for where the waiter before them was granted, and its message was lost with its process', async () => {
      const [first, second] = crowd(2) as [Instance, Instance];
      const holder = await a.locks.acquire('stock', { leaseMs: 3_000 });
      wait('stock', { leaseMs: 3_000 }, first);
      await settle();
      const waiting = wait('stock', { leaseMs: 3_000 }, second);
      await world.clock.advance(10_000);
      first.store.grantFate = grantLost;
      first.store.all(lostOnTheWay);
      await holder.release();
      await world.clock.advance(3_100);
      expect(waiting.state).toBe('fulfilled');
    });
  });

  it('last from when they were kept, not from when the answer was read: two standstills of the process cost none', async () => {
    const leaseMs = 600;
    const clock = new ProcessClock(world.clock, 0, 1);
    const random = new SeededRandom(1);
    random.fraction = () => 0.99; // a third of a lease, and a quarter more
    b = world.instance('late', { clock, random });
    const holder = await a.locks.acquire('stock');
    const first = wait('stock', { leaseMs });
    await settle();
    const second = wait('stock', { leaseMs }, world.instance('in time'));
    await settle();
    const standStill = (ms: number) => {
      clock.stop();
      world.clock.setTimer(() => clock.continue(), ms);
    };
    // The answer that the place is kept is read late. The next command is due all the same, and late itself.
    b.store.next('keep', async (execute) => {
      const replies = await execute();
      standStill(190);
      await new Promise<void>((resolve) => clock.whenAwake(resolve));
      return replies;
    });
    await world.clock.advance(249 + 190 + 245);
    // Where the time counted from the answer, it would be due in a moment, and the place over before this ends.
    expect(sent('keep')).toHaveLength(2);
    standStill(190);
    await world.clock.advance(180);
    await holder.release();
    await world.clock.advance(20);
    expect([first.state, second.state]).toEqual(['fulfilled', 'pending']);
  });

  describe('where a message was lost', () => {
    /** b has been granted the lock, and does not know. */
    async function loseGrant(options: LockOptions = {}): Promise<Tracked<unknown>> {
      const holder = await a.locks.acquire('stock');
      const waiting = wait('stock', options);
      await settle();
      b.store.nextGrants(grantLost);
      await holder.release();
      await settle();
      expect(waiting.state).toBe('pending');
      return waiting;
    }

    it('are kept within a second once that is known, and the grant is found', async () => {
      const waiting = await loseGrant();
      b.store.hearing!.quietMs = 0;
      b.store.unprove();
      await world.clock.advance(1_000);
      expect(waiting.state).toBe('fulfilled');
    });

    it('are kept every second for as long as it may happen again, and then are left alone', async () => {
      await waitForMany(100, { leaseMs: 30_000 });
      await world.clock.advance(6_000);
      b.store.hearing!.quietMs = 0;
      b.store.unprove();
      await world.clock.advance(1_000);
      let since = world.clock.now();
      await world.clock.advance(10_000);
      expect(sizes(since).reduce((sum, size) => sum + size, 0)).toBeGreaterThanOrEqual(700);
      expect(sizes(since).length).toBeLessThanOrEqual(45);
      expect(b.store.sent('acquire')).toHaveLength(100);
      b.store.hearing!.quietMs = Infinity;
      b.store.reconnect();
      since = world.clock.now() - 1;
      await world.clock.advance(9_999);
      expect(sizes(since).toSorted((x, y) => x - y)).toEqual([36, 64]);
    });

    it('are spread over a second: not all at once', async () => {
      await waitForMany(1_000);
      await world.clock.advance(6_000);
      const since = world.clock.now();
      b.store.hearing!.quietMs = 0;
      b.store.unprove();
      await world.clock.advance(1_000);
      const times = new Set(sent('keep', since).map(({ sentAt }) => Math.floor((sentAt - since) / 100)));
      expect(times.size).toBeGreaterThanOrEqual(3);
    });

    it('are spread also where they are few', async () => {
      await waitForMany(200);
      await world.clock.advance(6_000);
      const since = world.clock.now();
      b.store.hearing!.quietMs = 0;
      b.store.unprove();
      await world.clock.advance(1_000);
      const moments = new Set(sent('keep', since).map(({ sentAt }) => Math.floor((sentAt - since) / 100)));
      expect(moments.size).toBeGreaterThanOrEqual(3);
    });

    it('are kept no sooner than every second where they are a few more than four commands keep', async () => {
      b.store.hearing!.quietMs = 0;
      await waitForMany(257);
      await world.clock.advance(10_000);
      const since = world.clock.now();
      await world.clock.advance(20_000);
      expect(sizes(since).reduce((sum, size) => sum + size, 0)).toBeLessThanOrEqual(257 * 20 * 1.1);
    });

    it('are not calmed by an answer to what was sent before', async () => {
      const reply = gate();
      const holder = await a.locks.acquire('stock');
      b.store.next('acquire', repliedWhen(reply.opened));
      const waiting = wait();
      await settle();
      b.store.nextGrants(grantLost);
      await holder.release();
      b.store.hearing!.quietMs = 5_000;
      b.store.unprove();
      expect(waiting.state).toBe('pending');
      reply.open();
      await world.clock.advance(0);
      expect(waiting.state).toBe('fulfilled');
    });

    it('are not calmed by an answer that keeps them, either', async () => {
      const reply = gate();
      const holder = await a.locks.acquire('stock');
      const waiting = wait('stock', { leaseMs: 3_000 });
      await settle();
      b.store.next('keep', repliedWhen(reply.opened));
      await world.clock.advance(1_250);
      expect(sent('keep')).toHaveLength(1);
      b.store.nextGrants(grantLost);
      await holder.release();
      b.store.hearing!.quietMs = 0;
      b.store.unprove();
      reply.open();
      await world.clock.advance(0);
      expect(waiting.state).toBe('fulfilled');
    });

    it('are kept sooner where that may not be noticed, in a few commands', async () => {
      b.store.hearing!.quietMs = 5_000;
      await waitForMany(100);
      await world.clock.advance(60_000);
      expect(sizes().reduce((sum, size) => sum + size, 0)).toBeGreaterThanOrEqual(11 * 100);
      expect(sizes().length).toBeLessThanOrEqual(13 * 2);
      expect(sent('acquire')).toHaveLength(100);
    });

    it('are kept as soon by those that were not the first when they last heard: they may be by now', async () => {
      b.store.hearing!.quietMs = 5_000;
      const holder = await a.locks.acquire('stock');
      const before = wait('stock', {}, world.instance('c'));
      await settle();
      const { acquire } = b.store;
      b.store.acquire = async (...asked) => {
        const reply = await acquire.apply(b.store, asked);
        return reply.status === 'queued' ? { ...reply, place: 2 } : reply;
      };
      const waiting = wait();
      // Beyond what it asks to tell of a long wait.
      await world.clock.advance(5_500);
      await holder.release();
      await settle();
      b.store.nextGrants(grantLost);
      await (before.value as Lease).release();
      await world.clock.advance(5_100);
      expect(waiting.state).toBe('fulfilled');
    });
  });

  describe('where the store fails', () => {
    it('are tried again together after a pause, and count as a failed attempt', async () => {
      const waiting = await waitForMany(10, { leaseMs: 3_000, waitMs: 10_000 });
      b.store.next('keep', failing('unknown'), failing('notExecuted'));
      await world.clock.advance(1_400);
      expect(sizes()).toEqual([10, 10, 10]);
      b.store.all(failing('notExecuted', 'offline'));
      await world.clock.advance(8_600);
      for (const { error } of waiting) {
        expect(error).toMatchObject({ code: 'LOCK_UNAVAILABLE', lastAttempt: 'failed', cause: { message: 'offline' } });
      }
      expect(sizes().every((size) => size === 10)).toBe(true);
      expect(b.store.sent('acquire')).toHaveLength(10);
    });

    it('are tried again after their pause, though others are tried again sooner', async () => {
      await Promise.all(names(257).map((name) => a.locks.acquire(name)));
      for (const name of names(257)) {
        wait(name);
        await world.clock.advance(40);
      }
      await world.clock.advance(20_000);
      b.store.fates.keep = failing('notExecuted');
      await world.clock.advance(10_000);
      const since = world.clock.now();
      await world.clock.advance(10_000);
      // Each after 500 ms or more, but for those that go along with others.
      expect(sizes(since).length).toBeLessThanOrEqual(100);
    });

    it('are tried again when an answer does not come in time, and a late one still counts', async () => {
      const late = gate();
      const waiting = await waitForMany(2, { leaseMs: 3_000, attemptTimeoutMs: 300 });
      b.store.next('keep', repliedWhen(late.opened), lostOnTheWay, lostOnTheWay);
      await world.clock.advance(2_000);
      expect(sizes().length).toBeGreaterThanOrEqual(2);
      late.open();
      await world.clock.advance(3_000);
      expect(waiting.map(({ state }) => state)).toEqual(['pending', 'pending']);
      expect(world.server.listWaiters('r0')).toEqual(['b']);
    });

    it('are asked for alone where one of them cannot be kept, and where none may be', async () => {
      await waitForMany(3, { leaseMs: 3_000 });
      const keep = b.store.keepPlaces!;
      b.store.keepPlaces = async (places, sentAt): Promise<readonly KeepReply[]> =>
        (await keep(places, sentAt)).map((reply, index) =>
          index === 0 ? new LockStoreError('refused', 'WRONGTYPE') : reply,
        );
      await world.clock.advance(1_250);
      const [first] = sent('keep')[0]!.resource.split(',');
      expect(b.store.sent('acquire').map(({ resource }) => resource)).toEqual(['r0', 'r1', 'r2', first]);
      b.store.keepPlaces = keep;
      b.store.next('keep', failing('refused', 'NOPERM'));
      const before = b.store.sent('acquire').length;
      await world.clock.advance(1_300);
      expect(b.store.sent('acquire').length - before).toBeGreaterThanOrEqual(3);
    });

    it('are asked for alone where the store has forgotten them', async () => {
      const waiting = await waitForMany(3, { leaseMs: 3_000 });
      for (const { owner, resource } of b.store.sent('acquire')) {
        await a.store.release({ resource, id: owner!, mode: 'exclusive' });
      }
      expect(world.server.listWaiters('r1')).toEqual([]);
      await world.clock.advance(1_250);
      expect(world.server.listWaiters('r1')).toEqual(['b']);
      expect(b.store.sent('acquire')).toHaveLength(6);
      expect(waiting.map(({ state }) => state)).toEqual(Array(3).fill('pending'));
    });

    it('are kept by a few commands at a time', async () => {
      const replies = gate();
      await waitForMany(1_000);
      b.store.fates.keep = repliedWhen(replies.opened);
      world.clock.standStill(60_000);
      await world.clock.advance(0);
      expect(sizes()).toEqual([64, 64, 64, 64]);
      replies.open();
      await world.clock.advance(100);
      expect(sizes().length).toBeGreaterThanOrEqual(Math.ceil(1_000 / 64));
      expect(Math.max(...sizes())).toBe(64);
    });
    it('are kept at one server while another one does not answer', async () => {
      // A cluster: each resource is in another slot.
      b.store.fenceOf = (resource) => `slot ${resource}`;
      const isSilent = (resource: string) => Number(resource.slice(1)) % 2 === 0;
      await waitForMany(400, { leaseMs: 3_000 });
      const keep = b.store.keepPlaces!;
      b.store.keepPlaces = (places, sentAt) =>
        isSilent(places[0]!.waiter.resource) ? lostOnTheWay(() => keep(places, sentAt)) : keep(places, sentAt);
      await world.clock.advance(30_000);
      const answering = names(400).filter((name) => !isSilent(name));
      expect(answering.filter((name) => world.server.listWaiters(name).length === 0)).toEqual([]);
      // No place was lost in the meantime.
      expect(b.store.sent('acquire')).toHaveLength(400);
    });

    it('are not kept again because a call among them has no patience', async () => {
      await waitForMany(63, { leaseMs: 3_000 });
      await a.locks.acquire('hasty');
      wait('hasty', { leaseMs: 3_000, attemptTimeoutMs: 10 });
      await settle();
      // Each answer takes 50 ms.
      b.store.fates.keep = async (execute) => {
        const reply = await execute();
        await new Promise<void>((resolve) => world.clock.setTimer(resolve, 50));
        return reply;
      };
      await world.clock.advance(11_000);
      const kept = sent('keep').filter(({ resource }) => resource.split(',').includes('r0'));
      // Three times in a second, which is their period.
      expect(kept.length).toBeLessThanOrEqual(33);
    });
  });

  describe('of a wait that ends while a command keeps them', () => {
    let reply: ReturnType<typeof gate>;

    beforeEach(() => {
      reply = gate();
      b.store.next('keep', repliedWhen(reply.opened));
    });

    it('go on for the next call', async () => {
      await a.locks.acquire('stock');
      const first = wait('stock', { leaseMs: 3_000, waitMs: 1_500 });
      const second = wait('stock', { leaseMs: 3_000 });
      await world.clock.advance(1_500);
      expect(first.state).toBe('rejected');
      reply.open();
      await world.clock.advance(20_000);
      expect(second.state).toBe('pending');
      expect(world.server.listWaiters('stock')).toEqual(['b']);
      expect(b.store.sent('acquire')).toHaveLength(1);
    });

    it('show the label of the next call, which only an attempt changes', async () => {
      await a.locks.acquire('stock');
      const first = wait('stock', { leaseMs: 3_000, waitMs: 1_500, label: { run: 'one' } });
      wait('stock', { leaseMs: 3_000, label: { run: 'two' } });
      await world.clock.advance(1_500);
      expect(first.state).toBe('rejected');
      await world.clock.advance(1);
      expect(b.store.sent('acquire')).toHaveLength(2);
    });

    it('show the label of the next call, though the one before it was given up while it asked', async () => {
      await a.locks.acquire('stock');
      b.store.next('acquire', repliedWhen(reply.opened));
      const stop = new AbortController();
      const first = wait('stock', { label: { run: 'one' }, signal: stop.signal });
      wait('stock', { label: { run: 'two' } });
      await settle();
      stop.abort();
      await settle();
      expect(first.state).toBe('rejected');
      reply.open();
      await world.clock.advance(0);
      const { waiters } = await a.locks.inspect('stock');
      expect(waiters).toMatchObject([{ label: { run: 'two' } }]);
    });
  });

  it('of a call whose holder passes the lock on to it in memory are kept for the call behind it', async () => {
    const options = { mode: 'read', leaseMs: 3_000 } as const;
    const writer = await b.locks.acquire('stock', { mode: 'write', leaseMs: 3_000 });
    const readers = [wait('stock', options), wait('stock', options)];
    await world.clock.advance(2_000);
    await writer.release();
    await settle();
    expect(readers.map(({ state }) => state)).toEqual(['fulfilled', 'fulfilled']);
    expect(b.locks.stats()).toMatchObject({ resources: 1 });
  });

  it('are kept outside the context of any call', async () => {
    const request = new AsyncLocalStorage<string>();
    const seen: (string | undefined)[] = [];
    const keep = b.store.keepPlaces!;
    b.store.keepPlaces = (places, sentAt) => {
      seen.push(request.getStore());
      return keep(places, sentAt);
    };
    await a.locks.acquire('stock');
    request.run('a request', () => wait('stock', { leaseMs: 3_000 }));
    await world.clock.advance(3_000);
    request.run('another request', () => b.store.reconnect());
    await settle();
    expect(seen.length).toBeGreaterThanOrEqual(3);
    expect(new Set(seen)).toEqual(new Set([undefined]));
  });
});

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
  /** The number of places that each command kept. */
  const sizes = (since = 0) => sent('keep', since).map(({ resource }) => resource.split(',').length);

  /** b waits for resources that a holds, and knows the holder. */
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
  });

  describe('of several processes behind a holder that dies', () => {
    const crowd = (count: number) => Array.from({ length: count }, (_, index) => world.instance(`c${index}`));

    it('are checked one after another, the first one when the lease has expired', async () => {
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
      // The first waiter has to ask, and the others keep their places.
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

    it('are requested when the lease has expired, though it was shortened by the process that then died', async () => {
      const lease = await a.locks.acquire('stock', { watchdog: false });
      const waiting = [wait(), wait('stock', {}, world.instance('c'))];
      await settle();
      await lease.extend(1_000);
      await world.clock.advance(900);
      expect(waiting.map(({ state }) => state)).toEqual(['pending', 'pending']);
      await world.clock.advance(200);
      expect(waiting.map(({ state }) => state)).toEqual(['fulfilled', 'pending']);
    });

    it('are requested at once if the store has to act, however many are ahead of them', async () => {
      await a.locks.acquire('stock');
      const [before, last] = [crowd(50), world.instance('last')];
      for (const instance of before) wait('stock', {}, instance);
      await settle();
      last.store.next('acquire', async (execute) => ({ ...(await execute()), ttlMs: 1 }));
      wait('stock', {}, last);
      await world.clock.advance(3);
      expect(last.store.sent('acquire')).toHaveLength(2);
    });

    it('are requested if the waiter ahead of them was granted, and its message was lost with its process', async () => {
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

  it('last from when they were kept, not from the reply: blocking the event loop twice costs none', async () => {
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
    const block = (ms: number) => {
      clock.stop();
      world.clock.setTimer(() => clock.continue(), ms);
    };
    // The answer that the place is kept is read late. The next command is due all the same, and late itself.
    b.store.next('keep', async (execute) => {
      const replies = await execute();
      block(190);
      await new Promise<void>((resolve) => clock.whenAwake(resolve));
      return replies;
    });
    await world.clock.advance(249 + 190 + 245);
    // If the time counted from the reply, the next keep would be due soon, and the place would expire during the block.
    expect(sent('keep')).toHaveLength(2);
    block(190);
    await world.clock.advance(180);
    await holder.release();
    await world.clock.advance(20);
    expect([first.state, second.state]).toEqual(['fulfilled', 'pending']);
  });

  describe('after a lost message', () => {
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

    it('are kept within a second once the loss is known, and the grant is found', async () => {
      const waiting = await loseGrant();
      b.store.hearing!.trustedForMs = 0;
      b.store.unprove();
      await world.clock.advance(1_000);
      expect(waiting.state).toBe('fulfilled');
    });

    it('are kept every second for as long as it may happen again, and then rest', async () => {
      await waitForMany(100, { leaseMs: 30_000 });
      await world.clock.advance(6_000);
      b.store.hearing!.trustedForMs = 0;
      b.store.unprove();
      await world.clock.advance(1_000);
      let since = world.clock.now();
      await world.clock.advance(10_000);
      expect(sizes(since).reduce((sum, size) => sum + size, 0)).toBeGreaterThanOrEqual(700);
      expect(sizes(since).length).toBeLessThanOrEqual(45);
      expect(b.store.sent('acquire')).toHaveLength(100);
      b.store.hearing!.trustedForMs = Infinity;
      b.store.reconnect();
      since = world.clock.now() - 1;
      await world.clock.advance(9_999);
      expect(sizes(since).toSorted((x, y) => x - y)).toEqual([36, 64]);
    });

    it('are spread over a second: not all at once', async () => {
      await waitForMany(1_000);
      await world.clock.advance(6_000);
      const since = world.clock.now();
      b.store.hearing!.trustedForMs = 0;
      b.store.unprove();
      await world.clock.advance(1_000);
      const times = new Set(sent('keep', since).map(({ sentAt }) => Math.floor((sentAt - since) / 100)));
      expect(times.size).toBeGreaterThanOrEqual(3);
    });

    it('ignore a reply to a command from before the loss', async () => {
      const reply = gate();
      const holder = await a.locks.acquire('stock');
      b.store.next('acquire', repliedWhen(reply.opened));
      const waiting = wait();
      await settle();
      b.store.nextGrants(grantLost);
      await holder.release();
      b.store.hearing!.trustedForMs = 5_000;
      b.store.unprove();
      expect(waiting.state).toBe('pending');
      reply.open();
      await world.clock.advance(0);
      expect(waiting.state).toBe('fulfilled');
    });

    it('are kept earlier, in a few commands, if a loss may go unnoticed', async () => {
      b.store.hearing!.trustedForMs = 5_000;
      await waitForMany(100);
      await world.clock.advance(60_000);
      expect(sizes().reduce((sum, size) => sum + size, 0)).toBeGreaterThanOrEqual(11 * 100);
      expect(sizes().length).toBeLessThanOrEqual(13 * 2);
      expect(sent('acquire')).toHaveLength(100);
    });
  });

  describe('if the store fails', () => {
    it('are retried together after a pause, and count as a failed attempt', async () => {
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

    it('are requested alone if one of them cannot be kept, or none may be', async () => {
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
  });

  describe('of a wait that ends while a command keeps them', () => {
    let reply: ReturnType<typeof gate>;

    beforeEach(() => {
      reply = gate();
      b.store.next('keep', repliedWhen(reply.opened));
    });

    it('continue for the next call', async () => {
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
  });
});

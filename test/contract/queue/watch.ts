import assert from 'node:assert/strict';
import type { LockOwner } from '../../../lib/kernel/store/lock-store.js';
import type { Watcher, WatchReply } from '../../../lib/kernel/store/watch-store.js';
import { assertAbove, assertAtMost, assertEquals, assertMatches } from '../asserts.js';
import { eventually } from '../../support/expect/eventually.js';
import type { Peer, QueueWorld, QueueSuite } from '../queue-world.js';
import { everyMode, EXCLUSIVE, LONG_MS, newOwner, PATIENT, permits, SHORT_MS, take } from '../requests.js';
import type { StoreFeatures } from '../subject.js';

/** The watches of one client, and what it hears. */
class Watching {
  /** The marks of the messages, in order; `undefined` where a message is only a reason to ask. */
  readonly heard: (number | undefined)[] = [];

  constructor(
    private readonly world: QueueWorld,
    private readonly peer: Peer,
    /** The number of servers that report one release. */
    private readonly servers: number,
  ) {
    peer.grants.onFreed = ({ resource, mark, isFor }) => {
      if (isFor(this.watcher(resource).id)) this.heard.push(mark);
      assert.equal(isFor(`${peer.store.clientId}/another`), false);
    };
  }

  watcher(resource: string, mark = 0, name = `of ${resource.length}`): Watcher {
    return { resource, id: `${this.peer.store.clientId}/watcher ${name}`, mark };
  }

  /** One more watch of the resource. */
  async add(name: string): Promise<void> {
    await this.peer.store.watch(this.watcher('stock', 0, name), LONG_MS);
  }

  look(mark = 0, watchMs = LONG_MS, resource = 'stock'): Promise<WatchReply> {
    return this.peer.store.watch(this.watcher(resource, mark), watchMs);
  }

  /** Asks once, and subscribes. @returns `true` if the resource is free */
  async begin(mark = 0, watchMs = LONG_MS, resource = 'stock'): Promise<boolean> {
    return (await this.look(mark, watchMs, resource)).isFree;
  }

  /** Has heard of this many releases since this was called last. */
  async hasHeard(...marks: number[]): Promise<void> {
    const expected = marks.flatMap((mark) =>
      Array.from({ length: this.servers }, () => (this.isOne ? mark : undefined)),
    );
    await eventually(() => assertEquals(this.heard, expected));
    this.heard.length = 0;
  }

  /** Fails if a message was sent before now: messages keep their order. */
  async hasHeardNothing(): Promise<void> {
    assert.equal(await this.world.grantBeforeNow(this.peer), undefined);
    assertEquals(this.heard, []);
  }

  private get isOne(): boolean {
    return this.servers === 1;
  }
}

/** Contract of lock stores: waiting until a resource is free, without taking it. */
export function describeWatch(suite: QueueSuite, features: StoreFeatures): void {
  const { servers } = features;
  const { it } = suite.with(({ world, a, b }) => ({
    one: new Watching(world, a, servers),
    two: new Watching(world, b, servers),
  }));

  it('sees at once that a resource is free, and leaves nothing', async ({ subject, one }) => {
    assertEquals(await one.look(), { isFree: true, ttlMs: 0 });
    assert.equal(await subject.isEmpty(), true);
  });

  for (const wish of everyMode(features)) {
    it.onEveryServer(
      `is told once when the last holder has gone, and nothing is left, in ${wish.mode} mode`,
      async ({ subject, world, holder, b, one, two }) => {
        const isShared = wish.mode === 'read' || wish.permits !== undefined;
        const holders = [await world.holding(world.holder, wish)];
        if (isShared) holders.push(await world.holding(b, { ...wish, ...(wish.permits && permits(1, 3)) }));
        const { isFree, ttlMs, seen } = await one.look(7);
        assertMatches(seen, { holderCount: holders.length });
        assertEquals(seen!.holders.map(({ instanceId }) => instanceId).sort(), isShared ? ['b', 'holder'] : ['holder']);
        assert.equal(isFree, false);
        assertAbove(ttlMs, LONG_MS / 2);
        assertAtMost(ttlMs, LONG_MS);
        assert.equal(await two.begin(999), false);
        const last = holders.pop()!;
        for (const owner of holders) await holder.release(owner);
        if (isShared) {
          await one.hasHeardNothing();
          await b.store.release(last);
        } else await holder.release(last);
        await one.hasHeard(7);
        await two.hasHeard(999);
        assert.equal(await subject.isEmpty(), true);
        await holder.release(await world.held());
        await one.hasHeardNothing();
      },
    );
  }

  it.onEveryServer(
    'is notified with the mark that it sent last, once for each resource',
    async ({ world, holder, one }) => {
      const [stock, orders] = [await world.held(), await world.held('orders')];
      await one.begin(1);
      await one.begin(2);
      await one.begin(3, LONG_MS, 'orders');
      await holder.release(stock);
      await one.hasHeard(2);
      await holder.release(orders);
      await one.hasHeard(3);
    },
  );

  it('is notified when an operator ends the lease', async ({ world, holder, one }) => {
    await world.held();
    await one.begin();
    const { holders } = await holder.inspect('stock');
    assert.equal(await holder.forceRelease('stock', holders[0]!.fencingToken), true);
    await one.hasHeard(0);
  });

  it('is not told while the resource goes from holder to waiter', async ({ world, holder, b, one }) => {
    const owner = await world.held();
    const waiter = await world.waiting(b);
    await one.begin();
    await holder.release(owner);
    await world.granted(b, waiter);
    const next = newOwner(b.store, 'stock');
    await b.store.rotate(waiter, next, LONG_MS, PATIENT);
    await one.hasHeardNothing();
    assert.equal(await one.begin(), false);
    await b.store.release(next);
    await one.hasHeard(0);
  });

  it('only looks where it says so, and that ends its watch', async ({ subject, world, holder, one, two }) => {
    const owner = await world.held();
    await one.begin();
    assert.equal(await one.begin(0, 0), false);
    assert.equal(await two.begin(0, 0), false);
    await holder.release(owner);
    await one.hasHeardNothing();
    assert.equal(await one.begin(0, 0), true);
    assert.equal(await subject.isEmpty(), true);
  });

  it.onEveryServer(
    'is told nothing when its watch is over, or when its process has died',
    async ({ subject, world, holder, one, two }) => {
      const owner = await world.held();
      await one.begin(0, SHORT_MS);
      await two.begin(0);
      await subject.kill('b');
      await world.expire();
      await holder.release(owner);
      await one.hasHeardNothing();
      assertEquals(two.heard, []);
      assert.equal(await subject.isEmpty(), true);
    },
  );

  it('is notified by the next caller after the lease has expired', async ({ world, b, one }) => {
    const owner = await world.held();
    await one.begin(5);
    await world.leaseEnds(owner);
    await take(b.store, newOwner(b.store, 'stock'));
    await one.hasHeard(5);
    assert.equal(await one.begin(), false);
  });

  it.onEveryServer(
    'finds out itself that the lease has ended, and tells the others',
    async ({ subject, world, two, one }) => {
      const owner = await world.held();
      await two.begin(5);
      await world.leaseEnds(owner);
      assert.equal(await one.begin(), true);
      await two.hasHeard(5);
      assert.equal(await subject.isEmpty(), true);
    },
  );

  it('grants the waiters what a dead holder has left', async ({ world, b, one }) => {
    const owner = await world.held();
    const waiter = await world.waiting(b);
    await world.leaseEnds(owner);
    assert.equal(await one.begin(), false);
    await world.granted(b, waiter);
    assertEquals(await world.holders(), ['b']);
    await b.store.release(waiter);
    await one.hasHeard(0);
  });

  for (const many of [1, 6]) {
    it(`is no waiter: it is not shown, does not count, and changes no order: ${many} of them`, async ({
      subject,
      world,
      holder,
      b,
      one,
    }) => {
      const owner = await world.held();
      for (let number = 0; number < many; number++) {
        await one.add(`${number}`);
      }
      const waiters: LockOwner[] = [];
      for (let number = 1; number <= 7; number++) {
        const waiter = newOwner(b.store, 'stock');
        const queueing = { sentAt: 0, maxWaiters: number };
        assertMatches(await b.store.acquire(waiter, LONG_MS, queueing), { status: 'queued' });
        assertMatches(await world.ask(b, EXCLUSIVE, queueing), { status: 'full' });
        waiters.push(waiter);
        assertEquals(
          await world.queue(),
          waiters.map(() => 'b'),
        );
      }
      assertEquals(await holder.list('', 10), ['stock']);
      await holder.release(owner);
      for (const waiter of waiters) {
        await world.granted(b, waiter);
        await b.store.release(waiter);
      }
      assert.equal(await subject.isEmpty(), true);
    });
  }

  it('keeps no place from newcomers if the queue has watchers alone', async ({ subject, world, holder, b, one }) => {
    const owner = await world.held();
    for (const number of [1, 2, 3]) {
      await one.add(`${number}`);
      assertEquals(await world.queue(), []);
      const waiter = await world.waiting(b);
      await b.store.release(waiter);
      assertEquals(await world.queue(), []);
    }
    await holder.release(owner);
    assert.equal(await subject.isEmpty(), true);
  });

  it.onEveryServer('is notified of the resource by its name, for any name', async ({ holder, one }) => {
    for (const resource of ['1 2 stock', ' ', '%7B', '{a}', 'line\nbreak', 'free 0 x', '🔒']) {
      const owner = newOwner(holder, resource);
      await take(holder, owner);
      await one.begin(0, LONG_MS, resource);
      await holder.release(owner);
      await one.hasHeard(0);
    }
  });
}

import type { LockOwner, LockStore } from '../../../lib/core/store/lock-store.js';
import type { Watcher } from '../../../lib/core/store/watch-store.js';
import { eventually } from '../../support/expect/eventually.js';
import { type Peer, type QueueWorld, useQueueWorld } from '../subjects/queue-world.js';
import {
  newOwner,
  EVERYTHING,
  EXCLUSIVE,
  LONG_MS,
  PATIENT,
  permits,
  possible,
  READ,
  REENTRANT,
  SHORT_MS,
  type Subject,
  take,
  WRITE,
} from '../subjects/subject.js';

/** The watches of one client, and what it hears. */
class Watching {
  /** The marks of the messages, in order; `undefined` where a message is only a reason to ask. */
  readonly heard: (number | undefined)[] = [];

  constructor(
    readonly store: LockStore,
    /** How many servers tell it of one release. */
    private readonly servers: number,
  ) {
    store.listenForFreed({
      freed: ({ resource, mark, isFor }) => {
        if (isFor(this.watcher(resource).id)) this.heard.push(mark);
        expect(isFor(`${store.clientId}/another`)).toBe(false);
      },
      reconnected: () => {},
    });
  }

  watcher(resource: string, mark = 0): Watcher {
    return { resource, id: `${this.store.clientId}/watcher of ${resource.length}`, mark };
  }

  /** Looks, and is told from now on. @returns whether the resource is free */
  async begin(mark = 0, watchMs = LONG_MS, resource = 'stock'): Promise<boolean> {
    return (await this.store.watch(this.watcher(resource, mark), watchMs)).isFree;
  }

  /** Has heard of so many releases since it was asked last. */
  async hasHeard(...marks: number[]): Promise<void> {
    const expected = marks.flatMap((mark) =>
      Array.from({ length: this.servers }, () => (this.isOne ? mark : undefined)),
    );
    await eventually(() => expect(this.heard).toEqual(expected));
    this.heard.length = 0;
  }

  private get isOne(): boolean {
    return this.servers === 1;
  }
}

/**
 * What every lock store keeps to: who waits until a resource is free, without taking it.
 *
 * @param servers how many servers tell a watcher of one release
 */
export function describeWatch(createSubject: () => Promise<Subject>, features = EVERYTHING, servers = 1): void {
  let subject: Subject;
  let world: QueueWorld;
  let holder: LockStore;
  let a: Peer;
  let b: Peer;
  let one: Watching;
  let two: Watching;

  useQueueWorld(createSubject, (here) => ({ subject, world, holder, a, b } = here));
  beforeEach(() => {
    one = new Watching(a.store, servers);
    two = new Watching(b.store, servers);
  });

  /** Nothing was told before now: messages keep their order. */
  const hasHeardNothing = async (watching: Watching, peer: Peer) => {
    expect(await world.grantBeforeNow(peer)).toBeUndefined();
    expect(watching.heard).toEqual([]);
  };

  it('sees at once that a resource is free, and leaves nothing', async () => {
    expect(await one.store.watch(one.watcher('stock'), LONG_MS)).toEqual({ isFree: true, ttlMs: 0 });
    expect(await subject.isEmpty()).toBe(true);
  });

  it('hears of one listener only: a second one is refused', () => {
    expect(() => new Watching(a.store, servers)).toThrow('this store already has a listener');
  });

  it.each(possible(features, EXCLUSIVE, REENTRANT, WRITE, READ, permits(2, 3)))(
    'is told once when the last one has gone, and nothing is left: %p',
    async (wish) => {
      const isShared = wish.mode === 'read' || wish.permits !== undefined;
      const holders = [await world.holding(world.holder, wish)];
      if (isShared) holders.push(await world.holding(b, { ...wish, ...(wish.permits && permits(1, 3)) }));
      const { isFree, ttlMs, seen } = await one.store.watch(one.watcher('stock', 7), LONG_MS);
      expect(seen).toMatchObject({ count: holders.length });
      expect(seen!.list.map(({ instanceId }) => instanceId).sort()).toEqual(isShared ? ['b', 'holder'] : ['holder']);
      expect(isFree).toBe(false);
      expect(ttlMs).toBeGreaterThan(LONG_MS / 2);
      expect(ttlMs).toBeLessThanOrEqual(LONG_MS);
      expect(await two.begin(999)).toBe(false);
      const last = holders.pop()!;
      for (const owner of holders) await holder.release(owner);
      if (isShared) {
        await hasHeardNothing(one, a);
        await b.store.release(last);
      } else await holder.release(last);
      await one.hasHeard(7);
      await two.hasHeard(999);
      expect(await subject.isEmpty()).toBe(true);
      await holder.release(await world.held());
      await hasHeardNothing(one, a);
    },
  );

  it('is told by the mark that it sent last, once for each resource', async () => {
    const [stock, orders] = [await world.held(), await world.held('orders')];
    await one.begin(1);
    await one.begin(2);
    await one.begin(3, LONG_MS, 'orders');
    await holder.release(stock);
    await one.hasHeard(2);
    await holder.release(orders);
    await one.hasHeard(3);
  });

  it('is told when an operator ends the lease', async () => {
    await world.held();
    await one.begin();
    const { holders } = await holder.inspect('stock');
    expect(await holder.forceRelease('stock', holders[0]!.fencingToken)).toBe(true);
    await one.hasHeard(0);
  });

  it('is not told while the resource goes from holder to waiter', async () => {
    const owner = await world.held();
    const waiter = await world.waiting(b);
    await one.begin();
    await holder.release(owner);
    await world.granted(b, waiter);
    const next = newOwner(b.store, 'stock');
    await b.store.rotate(waiter, next, LONG_MS, PATIENT);
    await hasHeardNothing(one, a);
    expect(await one.begin()).toBe(false);
    await b.store.release(next);
    await one.hasHeard(0);
  });

  it('only looks where it says so, and that ends its watch', async () => {
    const owner = await world.held();
    await one.begin();
    expect(await one.begin(0, 0)).toBe(false);
    expect(await two.begin(0, 0)).toBe(false);
    await holder.release(owner);
    await hasHeardNothing(one, a);
    expect(await one.begin(0, 0)).toBe(true);
    expect(await subject.isEmpty()).toBe(true);
  });

  it('is told nothing when its watch is over, or when its process has died', async () => {
    const owner = await world.held();
    await one.begin(0, SHORT_MS);
    await two.begin(0);
    await subject.kill('b');
    await world.expire();
    await holder.release(owner);
    await hasHeardNothing(one, a);
    expect(two.heard).toEqual([]);
    expect(await subject.isEmpty()).toBe(true);
  });

  it('is told when the lease has ended, by the next caller', async () => {
    const owner = await world.held();
    await one.begin(5);
    await world.leaseEnds(owner);
    await take(b.store, newOwner(b.store, 'stock'));
    await one.hasHeard(5);
    expect(await one.begin()).toBe(false);
  });

  it('finds out itself that the lease has ended, and tells the others', async () => {
    const owner = await world.held();
    await two.begin(5);
    await world.leaseEnds(owner);
    expect(await one.begin()).toBe(true);
    await two.hasHeard(5);
    expect(await subject.isEmpty()).toBe(true);
  });

  it('lets those who wait have what a dead holder has left', async () => {
    const owner = await world.held();
    const waiter = await world.waiting(b);
    await world.leaseEnds(owner);
    expect(await one.begin()).toBe(false);
    await world.granted(b, waiter);
    expect(await world.holders()).toEqual(['b']);
    await b.store.release(waiter);
    await one.hasHeard(0);
  });

  it.each([1, 2, 3, 4, 6])(
    'is no waiter: it is not shown, does not count, and changes no order: %i of them',
    async (many) => {
      const owner = await world.held();
      for (let number = 0; number < many; number++) {
        await a.store.watch({ resource: 'stock', id: `${a.store.clientId}/watcher ${number}`, mark: 0 }, LONG_MS);
      }
      const waiters: LockOwner[] = [];
      for (let number = 1; number <= 7; number++) {
        const waiter = newOwner(b.store, 'stock');
        const queueing = { sentAt: 0, maxWaiters: number };
        expect(await b.store.acquire(waiter, LONG_MS, queueing)).toMatchObject({ status: 'queued' });
        expect(await world.ask(b, EXCLUSIVE, queueing)).toMatchObject({ status: 'full' });
        waiters.push(waiter);
        expect(await world.queue()).toEqual(waiters.map(() => 'b'));
      }
      expect(await holder.list('', 10)).toEqual(['stock']);
      await holder.release(owner);
      for (const waiter of waiters) {
        await world.granted(b, waiter);
        await b.store.release(waiter);
      }
      expect(await subject.isEmpty()).toBe(true);
    },
  );

  it('does not keep a place from those who come when the queue has watchers alone', async () => {
    const owner = await world.held();
    for (const number of [1, 2, 3]) {
      await a.store.watch({ resource: 'stock', id: `${a.store.clientId}/watcher ${number}`, mark: 0 }, LONG_MS);
      expect(await world.queue()).toEqual([]);
      const waiter = await world.waiting(b);
      await b.store.release(waiter);
      expect(await world.queue()).toEqual([]);
    }
    await holder.release(owner);
    expect(await subject.isEmpty()).toBe(true);
  });

  it('is told of the resource by its name, whatever that is', async () => {
    for (const resource of ['1 2 stock', ' ', '%7B', '{a}', 'line\nbreak', 'free 0 x', '🔒']) {
      const owner = newOwner(holder, resource);
      await take(holder, owner);
      await one.begin(0, LONG_MS, resource);
      await holder.release(owner);
      await one.hasHeard(0);
    }
  });
}

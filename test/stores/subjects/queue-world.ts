import { randomUUID } from 'node:crypto';
import type { AcquireReply, LockStore, LockOwner, Queueing } from '../../../lib/core/store/lock-store.js';
import type { TickStore } from '../../../lib/core/store/tick-store.js';
import { GrantLog, type OwnedGrant } from '../../support/expect/grant-log.js';
import { instancesOf } from '../../support/redis/instances-of.js';
import { newOwner, enqueue, LONG_MS, SHORT_MS, type Subject, take, type Wish } from './subject.js';

/** One instance, and the grants that it is told of. */
export interface Peer {
  readonly store: LockStore;
  readonly tickStore: TickStore;
  readonly grants: GrantLog;
}

/** Three instances that want the same things: one that holds them, and two that wait. */
export class QueueWorld {
  static async open(subject: Subject): Promise<QueueWorld> {
    const peer = async (instanceId: string): Promise<Peer> => {
      const { store, tickStore } = await subject.open(instanceId);
      return { store, tickStore, grants: new GrantLog(store) };
    };
    return new QueueWorld(subject, await peer('holder'), await peer('a'), await peer('b'));
  }

  private constructor(
    readonly subject: Subject,
    readonly holder: Peer,
    readonly a: Peer,
    readonly b: Peer,
  ) {}

  /** The holder holds the resource. */
  async held(resource = 'stock', mode: LockOwner['mode'] = 'exclusive'): Promise<LockOwner> {
    const owner = newOwner(this.holder.store, resource, mode);
    await take(this.holder.store, owner);
    return owner;
  }

  /** A new owner of this instance stands at the end of the queue. */
  async waiting({ store }: Peer, resource = 'stock', how?: Parameters<typeof enqueue>[2]): Promise<LockOwner> {
    const waiter = newOwner(store, resource);
    await enqueue(store, waiter, how);
    return waiter;
  }

  /** A new owner of this instance has what it asks for, alone or with others. */
  async holding({ store }: Peer, wish: Wish, leaseMs?: number): Promise<LockOwner> {
    const owner = { ...newOwner(store, 'stock'), ...wish };
    await take(store, owner, leaseMs);
    return owner;
  }

  /** A new owner of this instance stands at the end of the queue, for what it asks for. */
  async queued({ store }: Peer, wish: Wish, how?: Parameters<typeof enqueue>[2]): Promise<LockOwner> {
    const waiter = { ...newOwner(store, 'stock'), ...wish };
    await enqueue(store, waiter, how);
    return waiter;
  }

  /** What a new owner is answered who asks for this, without queueing unless it says how. */
  ask({ store }: Peer, wish: Wish, queueing?: Queueing): Promise<AcquireReply> {
    return store.acquire({ ...newOwner(store, 'stock'), ...wish }, LONG_MS, queueing);
  }

  /** Waits until these have been granted what they waited for, by messages in this order. */
  async granted(peer: Peer, ...waiters: LockOwner[]): Promise<void> {
    for (const { id: owner } of waiters) expect((await peer.grants.next()).owner).toBe(owner);
  }

  /** The same, by messages in any order. */
  async grantedInAnyOrder(peer: Peer, ...waiters: LockOwner[]): Promise<void> {
    const granted: string[] = [];
    while (granted.length < waiters.length) granted.push((await peer.grants.next()).owner);
    expect(granted.sort()).toEqual(waiters.map(({ id: owner }) => owner).sort());
  }

  /** Nobody was granted anything that no test has waited for. */
  async nobodyElseIsGranted(): Promise<void> {
    for (const peer of [this.holder, this.a, this.b]) expect(await this.grantBeforeNow(peer)).toBeUndefined();
  }

  /** Time passes in which every waiter with a short lease expires. */
  expire(): Promise<void> {
    return this.subject.pass(2 * SHORT_MS);
  }

  /** The holder does not renew any more, and his lease ends. */
  async leaseEnds(owner: LockOwner): Promise<void> {
    await this.holder.store.renew(owner, SHORT_MS, true);
    await this.expire();
  }

  /** The instances in the queue, the first one first. */
  async queue(resource = 'stock'): Promise<string[]> {
    return instancesOf((await this.holder.store.inspect(resource)).waiters);
  }

  /** The instances that hold the resource, in the order of their tokens. */
  async holders(resource = 'stock'): Promise<string[]> {
    const { holders } = await this.holder.store.inspect(resource);
    return holders.map(({ instanceId }) => instanceId);
  }

  /**
   * The next grant that the instance is told of, though one is sent to it now that is known to come. Messages keep their
   * order: `undefined` says that nothing was sent before it.
   */
  async grantBeforeNow({ store, grants }: Peer): Promise<OwnedGrant | undefined> {
    const resource = `known to come ${randomUUID()}`;
    const [owner, next] = [newOwner(store, resource), newOwner(store, resource)];
    await take(store, owner);
    await enqueue(store, next);
    await store.release(owner);
    const grant = await grants.next();
    await store.release(next);
    return grant.resource === resource ? undefined : grant;
  }
}

/** Opens a world before each test, for whoever says what it wants of it, and closes it after that. */
export function useQueueWorld(
  createSubject: () => Promise<Subject>,
  enter: (here: { subject: Subject; world: QueueWorld; holder: LockStore; a: Peer; b: Peer }) => void,
): void {
  let subject: Subject;
  beforeEach(async () => {
    subject = await createSubject();
    const world = await QueueWorld.open(subject);
    const { a, b } = world;
    enter({ subject, world, holder: world.holder.store, a, b });
  });
  afterEach(() => subject.close());
}

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { AcquireReply, LockOwner, LockStore, Queueing } from '../../lib/kernel/store/lock-store.js';
import type { JobStore } from '../../lib/features/jobs/core/job-store.js';
import { GrantLog, type OwnedGrant } from './grant-log.js';
import { enqueue, LONG_MS, newOwner, SHORT_MS, take, type Wish } from './requests.js';
import type { StoreSubject } from './subject.js';
import type { Base, Suite } from './suite.js';

/** One instance, and the grants that it receives. */
export class Peer {
  readonly grants: GrantLog;

  constructor(
    readonly store: LockStore,
    readonly jobs: JobStore,
  ) {
    this.grants = new GrantLog(store);
  }
}

/** Three instances that want the same things: one that holds them, and two that wait. */
export class QueueWorld {
  static async open(subject: StoreSubject): Promise<QueueWorld> {
    const peer = async (instanceId: string): Promise<Peer> => {
      const { locks, jobs } = await subject.open(instanceId);
      return new Peer(locks, jobs);
    };
    return new QueueWorld(subject, await peer('holder'), await peer('a'), await peer('b'));
  }

  private constructor(
    readonly subject: StoreSubject,
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

  /** The answer to a new owner that asks for this; without queueing unless it is given. */
  ask({ store }: Peer, wish: Wish, queueing?: Queueing): Promise<AcquireReply> {
    return store.acquire({ ...newOwner(store, 'stock'), ...wish }, LONG_MS, queueing);
  }

  /** Waits until these have been granted what they waited for, by messages in this order. */
  async granted(peer: Peer, ...waiters: LockOwner[]): Promise<void> {
    for (const { id } of waiters) assert.equal((await peer.grants.next()).owner, id);
  }

  /** The same, by messages in any order. */
  async grantedInAnyOrder(peer: Peer, ...waiters: LockOwner[]): Promise<void> {
    const granted: string[] = [];
    while (granted.length < waiters.length) granted.push((await peer.grants.next()).owner);
    assert.deepEqual(granted.sort(), waiters.map(({ id }) => id).sort());
  }

  /** Fails if a grant arrived that no test has waited for. */
  async noOtherIsGranted(): Promise<void> {
    for (const peer of [this.holder, this.a, this.b]) assert.equal(await this.grantBeforeNow(peer), undefined);
  }

  /** Time passes in which every waiter with a short lease expires. */
  expire(): Promise<void> {
    return this.subject.pass(2 * SHORT_MS);
  }

  /** The holder does not renew any more, and its lease ends. */
  async leaseEnds(owner: LockOwner): Promise<void> {
    await this.holder.store.renew(owner, SHORT_MS, true);
    await this.expire();
  }

  /** The instances in the queue, the first one first. */
  async queue(resource = 'stock'): Promise<string[]> {
    const { waiters } = await this.holder.store.inspect(resource);
    return waiters.map(({ instanceId }) => instanceId);
  }

  /** The instances that hold the resource, in the order of their tokens. */
  async holders(resource = 'stock'): Promise<string[]> {
    const { holders } = await this.holder.store.inspect(resource);
    return holders.map(({ instanceId }) => instanceId);
  }

  /**
   * The next grant of the instance before a new one that is sent now. Messages keep their order, so `undefined` means
   * that none was sent before it.
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

/** A world for each test. */
export async function openQueueWorld({ subject }: Base) {
  const world = await QueueWorld.open(subject);
  const { a, b } = world;
  return { world, holder: world.holder.store, a, b };
}

/** Tests that each have a world of their own. */
export type QueueSuite = Suite<Base & Awaited<ReturnType<typeof openQueueWorld>>>;

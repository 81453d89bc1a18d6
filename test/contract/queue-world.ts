import { randomUUID } from 'node:crypto';
import type { LockStore, Ownership, PushedGrant } from '../../lib/core/lock-store.js';
import type { TickLedger } from '../../lib/core/tick-ledger.js';
import { GrantLog } from '../support/grant-log.js';
import { contender, enqueue, SHORT_MS, type Subject, take } from './subject.js';

/** One instance, and the grants that it is told of. */
export interface Peer {
  readonly store: LockStore;
  readonly ledger: TickLedger;
  readonly grants: GrantLog;
}

/** Three instances that want the same things: one that holds them, and two that wait. */
export class QueueWorld {
  static async open(subject: Subject): Promise<QueueWorld> {
    const peer = async (instanceId: string): Promise<Peer> => {
      const { store, ledger } = await subject.open(instanceId);
      return { store, ledger, grants: new GrantLog(store) };
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
  async held(resource = 'stock', mode: Ownership['mode'] = 'exclusive'): Promise<Ownership> {
    const owner = contender(this.holder.store, resource, mode);
    await take(this.holder.store, owner);
    return owner;
  }

  /** A new contender of this instance stands at the end of the queue. */
  async waiting({ store }: Peer, resource = 'stock', how?: Parameters<typeof enqueue>[2]): Promise<Ownership> {
    const waiter = contender(store, resource);
    await enqueue(store, waiter, how);
    return waiter;
  }

  /** Time passes in which every waiter with a short lease expires. */
  expire(): Promise<void> {
    return this.subject.pass(2 * SHORT_MS);
  }

  /** The holder does not renew any more, and his lease ends. */
  async leaseEnds(owner: Ownership): Promise<void> {
    await this.holder.store.renew(owner, SHORT_MS, true);
    await this.expire();
  }

  /** The instances in the queue, the first one first. */
  async queue(resource = 'stock'): Promise<readonly string[]> {
    return (await this.holder.store.inspect(resource)).waiters;
  }

  /** The instances that hold the resource: one or none. */
  async holders(resource = 'stock'): Promise<string[]> {
    const { holders } = await this.holder.store.inspect(resource);
    return holders.map(({ instanceId }) => instanceId);
  }

  /**
   * The next grant that the instance is told of, though one is sent to it now that is known to come. Messages keep their
   * order: `undefined` says that nothing was sent before it.
   */
  async grantBeforeNow({ store, grants }: Peer): Promise<PushedGrant | undefined> {
    const resource = `known to come ${randomUUID()}`;
    const owner = contender(store, resource);
    await take(store, owner);
    await enqueue(store, contender(store, resource));
    await store.release(owner);
    const grant = await grants.next();
    return grant.resource === resource ? undefined : grant;
  }
}

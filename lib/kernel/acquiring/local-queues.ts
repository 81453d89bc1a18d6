import { aborted } from './acquire-errors.js';
import { type NestedCall, PendingCall } from './pending-call.js';
import type { Grant, Hold } from '../holding/hold.js';
import { liveHolds } from './deadlocks.js';
import { LocalQueue } from './local-queue.js';
import { isExpectedToWait } from './waits.js';
import type { ResolvedLockOptions } from '../api/lock-options.js';
import type { PushedGrant, PushedNotice } from '../store/message-health.js';
import { Poller } from './polling.js';
import type { Runtime } from '../holding/runtime.js';
import type { SeveralParts } from '../holding/several-parts.js';
import type { LocalHolder, StoreLease } from '../holding/store-lease.js';

/** Settles the promise of a call. An object of closures would take twice as much memory while the call waits. */
class Outcome<T> {
  constructor(
    private readonly take: (grant: Grant) => T,
    private readonly resolve: (value: T) => void,
    readonly failed: (error: Error) => void,
  ) {}

  succeeded(grant: Grant): void {
    this.resolve(this.take(grant));
  }
}

/** A call that waits, and the resource that it waits for. */
export interface WaitingNow {
  readonly call: PendingCall;
  readonly resource: string;
  readonly holds: readonly Hold[];
  /** Its place in the store's queue, if known. */
  readonly place?: number | undefined;
}

/** Decides which call of this process gets which resource: a queue for each resource, and the calls that poll. */
export class LocalQueues {
  readonly #queues = new Map<string, LocalQueue>();
  /** The calls that poll and wait between two attempts. */
  readonly #pausing = new Map<PendingCall, string>();

  constructor(private readonly deps: Runtime) {
    for (const end of [deps.closing, deps.drained]) {
      end.addEventListener('abort', () => {
        for (const queue of this.#queues.values()) queue.close(end);
      });
    }
  }

  get size(): number {
    return this.#queues.size;
  }

  /** Counts pending calls, without the candidates of leaderships. Visits every queue. */
  countWaiting(): number {
    let waiting = this.#pausing.size;
    for (const { resource, size } of this.#queues.values()) if (!isExpectedToWait(resource)) waiting += size;
    return waiting;
  }

  /** Returns every waiting call, without the candidates of leaderships. Visits every queue. */
  *waits(): Generator<WaitingNow> {
    for (const { resource, calls, placeOfFirst } of this.#queues.values()) {
      if (isExpectedToWait(resource)) continue;
      for (const [index, call] of calls.entries()) {
        yield { call, resource, holds: liveHolds(call), place: index === 0 ? placeOfFirst : undefined };
      }
    }
    for (const [call, resource] of this.#pausing) yield { call, resource, holds: liveHolds(call) };
  }

  /** Counts pending calls by resource, without polling ones. Visits every queue. */
  waitingByResource(): Map<string, number> {
    return new Map([...this.#queues].map(([resource, { size }]) => [resource, size]));
  }

  /** @param several the other resources that the call wants, and may already have */
  acquire<T>(
    resource: string,
    options: ResolvedLockOptions,
    take: (grant: Grant) => T,
    several?: SeveralParts,
  ): Promise<T> {
    const isPolled = options.waitMs === 0 || Boolean(options.retry);
    const closing = this.deps.shutdownSignal();
    const isInWork = closing === this.deps.drained;
    const nested = options.waitMs > 0 ? this.#nested(resource, options, isInWork, several) : undefined;
    if (several !== undefined) {
      const storeLease = several.take(resource, options.label);
      if (storeLease) return this.#taken(storeLease, take, isPolled);
    }
    const { clock, alarms } = this.deps;
    return new Promise((resolve, reject) => {
      if (options.signal?.aborted) return reject(aborted(resource, closing, options.signal));
      const queue = isPolled ? this.#pollerOf(resource, options) : this.#queueOf(resource);
      const call = new PendingCall(options, clock.now(), new Outcome(take, resolve, reject), alarms, queue);
      call.isInWork = isInWork;
      if (nested !== undefined) call.nested = nested;
      if (several !== undefined) call.several = several;
      queue.join(call);
    });
  }

  #nested(
    resource: string,
    { mode }: ResolvedLockOptions,
    isInWork: boolean,
    several: SeveralParts | undefined,
  ): NestedCall | undefined {
    const { lockOrder, currentHolds } = this.deps;
    const part = several !== undefined && lockOrder.hasEdges ? several.leases.at(-1) : undefined;
    if (!isInWork && part === undefined) return undefined;
    if (part !== undefined) lockOrder.note([part.hold], { resource, mode, isOfSeveral: true });
    if (!isInWork) return undefined;
    const holds = currentHolds();
    lockOrder.note(holds, { resource, mode });
    return { holds, origin: lockOrder.recordOrigin() };
  }

  /** Returns true if no call of this process holds the resource or waits for it in a queue. */
  isIdle(resource: string): boolean {
    return !this.#queues.has(resource);
  }

  async #taken<T>(storeLease: StoreLease, take: (grant: Grant) => T, isPolled: boolean): Promise<T> {
    if (!isPolled) this.#queueOf(storeLease.owner.resource).addGranted(storeLease);
    return take({ storeLease, attempts: 1, waitedMs: 0 });
  }

  /** @param onHandedOver called before the next call is granted, if the store is not asked */
  release(hold: Hold, onHandedOver: () => void): Promise<boolean> | undefined {
    const queue = this.#queues.get(hold.owner.resource);
    if (queue?.hasGranted(hold)) return queue.release(hold, onHandedOver);
    // It was lost, for example at a shutdown. Other holders of the store lease may not have ended their work yet.
    if (hold.storeLease.removeHolder(hold)) {
      onHandedOver();
      return undefined;
    }
    return this.deps.orphanReleases.release(hold.storeLease, hold.options.backgroundRelease);
  }

  lost(hold: Hold): void {
    const queue = this.#queues.get(hold.owner.resource);
    if (queue?.hasGranted(hold)) queue.lost(hold);
  }

  downgraded(hold: Hold): void {
    const queue = this.#queues.get(hold.owner.resource);
    if (queue?.hasGranted(hold)) queue.downgraded();
  }

  /** Returns the first call of this process that waits for the resource, and the number of such calls. */
  waitingFor(resource: string): { readonly first: PendingCall; readonly calls: number } | undefined {
    const queue = this.#queues.get(resource);
    const first = queue?.firstWaiting;
    return first && { first, calls: queue!.size };
  }

  /**
   * Returns the holder of the lease with this token in this process, or of one that counts up from it, unless it was
   * polled for.
   */
  holderOf(resource: string, fencingToken: number): LocalHolder | undefined {
    return this.#queues.get(resource)?.holderOf(fencingToken);
  }

  doubt(resource: string): void {
    this.#queues.get(resource)?.doubt();
  }

  granted(grant: PushedGrant): void {
    const queue = this.#queues.get(grant.resource);
    if (!queue?.onGrant(grant)) this.deps.orphanReleases.hear(grant, (owner) => queue?.holds(owner) ?? false);
  }

  retained(notice: PushedNotice): void {
    this.#queues.get(notice.resource)?.onRetained(notice);
  }

  deliveryUncertain(): void {
    this.deps.places.deliveryUncertain();
    // Often because Redis is unreachable.
    for (const queue of this.#queues.values()) queue.checkReachable();
  }

  reconnected(): void {
    this.deps.places.reconnected();
    for (const queue of this.#queues.values()) queue.reconnected();
  }

  #pollerOf(resource: string, options: ResolvedLockOptions): Poller {
    return new Poller(resource, options, this.deps, this.#queues, this.#pausing);
  }

  #queueOf(resource: string): LocalQueue {
    let queue = this.#queues.get(resource);
    if (queue === undefined) {
      queue = new LocalQueue(resource, this.deps, this.#queues);
      this.#queues.set(resource, queue);
    }
    return queue;
  }
}

import { aborted } from './acquire-errors.js';
import { PendingCall } from './pending-call.js';
import type { Grant, Hold } from '../holding/hold.js';
import { LocalQueue, type LocalQueueDeps } from './local-queue.js';
import type { ResolvedLockOptions } from '../api/lock-options.js';
import type { GrantListener, PushedGrant } from '../store/lock-store.js';
import { Polling } from './polling.js';

/** Who gets which resource in this process: the local lines, and those who ask without standing in one. */
export class LocalQueues implements GrantListener {
  readonly #lines = new Map<string, LocalQueue>();
  readonly #polling: Polling;

  constructor(private readonly deps: LocalQueueDeps) {
    this.#polling = new Polling(deps);
    deps.store.listen(this);
    deps.closing.addEventListener('abort', () => {
      for (const line of this.#lines.values()) line.close();
    });
  }

  /** How many resources are held through a line, or waited for. */
  get size(): number {
    return this.#lines.size;
  }

  /**
   * @param take what to make of the grant; called in the moment it is known
   * @throws LockError of the kind that says why the resource was not granted
   */
  acquire<T>(resource: string, options: ResolvedLockOptions, take: (grant: Grant) => T): Promise<T> {
    if (options.waitMs === 0 || options.retry) return this.#polling.acquire(resource, options, take);
    const { clock, alarms, closing } = this.deps;
    return new Promise((resolve, reject) => {
      if (options.signal?.aborted) return reject(aborted(resource, closing, options.signal));
      const outcome = { granted: (grant: Grant) => resolve(take(grant)), failed: reject };
      this.#line(resource).join(new PendingCall(options, clock.now(), outcome, alarms));
    });
  }

  /**
   * The holder is done: tells the store, and gives whether the lock was still held; or hands it to the next local call.
   *
   * @param onPassed called before the next one is granted, in place of asking the store
   */
  giveBack(hold: Hold, onPassed: () => void): Promise<boolean> | undefined {
    const line = this.#lines.get(hold.ownership.resource);
    if (line?.isStoreLeaseOf(hold)) return line.passOn(hold, onPassed);
    // Lost, as at a shutdown. The work of others who share it may not have ended yet.
    if (hold.storeLease.leave(hold)) {
      onPassed();
      return undefined;
    }
    return this.deps.store.release(hold.ownership, hold.backgroundRelease);
  }

  /** The holder has lost the lock: others may try. */
  lost(hold: Hold): void {
    const line = this.#lines.get(hold.ownership.resource);
    if (line?.isStoreLeaseOf(hold)) line.lost(hold);
  }

  /** The holder has handed the lock on to somebody else. */
  handedOn(hold: Hold, hasShared: boolean): void {
    const line = this.#lines.get(hold.ownership.resource);
    if (line?.isStoreLeaseOf(hold)) line.handedOn(hold, hasShared);
    if (!hasShared && hold.storeLease.mayComeBack) this.deps.orphanReleases.start(hold.ownership, hold);
  }

  /** A writer became a reader: others may read beside it. */
  downgraded(hold: Hold): void {
    const line = this.#lines.get(hold.ownership.resource);
    if (line?.isStoreLeaseOf(hold)) line.downgraded();
  }

  /** What the first call of this process that waits for the resource has asked for. */
  firstWaiting(resource: string): ResolvedLockOptions | undefined {
    return this.#lines.get(resource)?.firstWaiting?.options;
  }

  /** The lock may be about to end in the store, whoever has it. */
  doubt(resource: string): void {
    this.#lines.get(resource)?.doubt();
  }

  granted(grant: PushedGrant): void {
    const line = this.#lines.get(grant.resource);
    if (!line?.hear(grant)) this.deps.orphanReleases.hear(grant, (ownership) => line?.holds(ownership) ?? false);
  }

  reconnected(): void {
    for (const line of this.#lines.values()) line.reconnected();
  }

  #line(resource: string): LocalQueue {
    let line = this.#lines.get(resource);
    if (line === undefined) {
      line = new LocalQueue(resource, this.deps, this.#lines);
      this.#lines.set(resource, line);
    }
    return line;
  }
}

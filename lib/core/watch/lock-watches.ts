import { aborted } from '../acquiring/acquire-errors.js';
import { checkWaitUntilFree, checkWatched, type WaitUntilFreeOptions } from './wait-until-free.js';
import { createOwnerId } from '../store/owner-id.js';
import { LockReentryError } from '../api/lease-errors.js';
import { LockTimeoutError } from '../api/errors.js';
import { LockWatch } from './lock-watch.js';
import { lookOnce } from '../acquiring/shared-wait.js';
import { PendingCall } from '../acquiring/pending-call.js';
import type { FreedListener, FreedMessage } from '../store/watch-store.js';
import type { LeaseDeps } from '../lease/lease-deps.js';

/** The resources that calls of this process wait for without taking them. */
export class LockWatches implements FreedListener {
  readonly #watches = new Map<string, LockWatch>();

  constructor(private readonly deps: LeaseDeps) {
    deps.store.listenForFreed(this);
    for (const end of [deps.closing, deps.drained]) {
      end.addEventListener('abort', () => {
        for (const watch of this.#watches.values()) watch.close(end);
      });
    }
  }

  /** How many resources calls of this process wait for. */
  get size(): number {
    return this.#watches.size;
  }

  async waitUntilFree(name: unknown, options?: WaitUntilFreeOptions): Promise<void> {
    const { clock, random, alarms, defaults, drained, context, store } = this.deps;
    const closing = this.deps.closingHere();
    const resource = checkWatched(name);
    const { waitMs = defaults.waitMs, signal } = checkWaitUntilFree(options);
    const abortedBy = () => aborted(resource, closing, signal);
    if (closing.aborted || signal?.aborted) throw abortedBy();
    const held = context.hold(resource);
    if (held) throw LockReentryError.waitingUntilFree(resource, held.mode);
    if (waitMs === 0) {
      const watcher = { resource, id: createOwnerId(store.clientId, random), mark: 0 };
      const { isFree, ttlMs, seen } = await lookOnce(resource, this.deps, signal, () => store.watch(watcher, 0));
      if (!isFree) throw new LockTimeoutError(resource, 0, 1, ttlMs, seen);
      return;
    }
    await new Promise<void>((resolve, reject) => {
      const outcome = { succeeded: resolve, failed: reject };
      const watch = this.#watch(resource);
      const { unavailableMs } = defaults;
      const call = new PendingCall({ waitMs, unavailableMs, signal }, clock.now(), outcome, alarms, watch);
      call.isInWork = closing === drained;
      watch.join(call, abortedBy);
    });
  }

  freed(message: FreedMessage): void {
    this.#watches.get(message.resource)?.freed(message);
  }

  reconnected(): void {
    for (const watch of this.#watches.values()) watch.ask();
  }

  #watch(resource: string): LockWatch {
    let watch = this.#watches.get(resource);
    if (watch === undefined) {
      watch = new LockWatch(resource, this.deps, () => this.#watches.delete(resource));
      this.#watches.set(resource, watch);
    }
    return watch;
  }
}

import { checkWaitUntilFree, checkWatched, type WaitUntilFreeOptions } from './wait-until-free.js';
import { createOwnerId } from '../store/owner-id.js';
import { LockReentryError } from '../api/lease-errors.js';
import { LockTimeoutError } from '../api/errors.js';
import { LockWatch } from './lock-watch.js';
import { completed } from '../acquiring/failed-calls.js';
import { lookOnce, SharedWaits } from '../acquiring/shared-wait.js';
import type { FreedMessage } from '../store/watch-store.js';
import type { LeaseDeps } from '../lease/lease-deps.js';

/** The resources that calls of this process wait for without taking them. */
export class LockWatches {
  readonly #waits: SharedWaits<LockWatch>;

  constructor(private readonly deps: LeaseDeps) {
    this.#waits = new SharedWaits(deps);
  }

  /** How many resources calls of this process wait for. */
  get size(): number {
    return this.#waits.size;
  }

  waitUntilFree(name: unknown, options?: WaitUntilFreeOptions): Promise<void> {
    return completed(() => this.#wait(name, options), this.deps);
  }

  async #wait(name: unknown, options?: WaitUntilFreeOptions): Promise<void> {
    const { random, defaults, context, store } = this.deps;
    const resource = checkWatched(name);
    const { waitMs = defaults.waitMs, signal } = checkWaitUntilFree(options);
    const wait = { name: resource, waitMs, signal };
    this.#waits.checkMayWait(wait);
    const held = context.hold(resource);
    if (held) throw LockReentryError.waitingUntilFree(resource, held.mode);
    if (waitMs > 0) return this.#waits.join(resource, wait, (onEnd) => new LockWatch(resource, this.deps, onEnd));
    const watcher = { resource, id: createOwnerId(store.clientId, random), mark: 0 };
    const { isFree, ttlMs, seen } = await lookOnce(resource, this.deps, signal, () => store.watch(watcher, 0));
    if (!isFree) throw new LockTimeoutError(resource, 0, 1, ttlMs, seen);
  }

  freed(message: FreedMessage): void {
    this.#waits.get(message.resource)?.freed(message);
  }

  reconnected(): void {
    this.#waits.reconnected();
  }
}

import { aborted, unavailable } from '../../../kernel/acquiring/acquire-errors.js';
import { completed } from '../../../kernel/acquiring/failed-calls.js';
import { PendingCall, type WaitLimits } from '../../../kernel/acquiring/pending-call.js';
import { InvalidLockOptionsError } from '../../../kernel/api/errors.js';
import { LockReentryError } from '../../../kernel/api/lease-errors.js';
import { checkResource } from '../../../kernel/api/resource.js';
import { Option, type OptionsOf, OptionTable } from '../../../kernel/api/validation.js';
import type { KernelParts } from '../../../kernel/lease/kernel-parts.js';
import { AttemptLog, createOwnerId, withTimeout } from '../../../kernel/store/ask.js';
import type { FreedMessage } from '../../../kernel/store/watch-store.js';
import { mergeSignals } from '../../../kernel/util/signals.js';
import { LockWatch } from './lock-watch.js';
import { LockTimeoutError } from '../../../kernel/api/busy-errors.js';

/** Options of `locks.waitUntilFree()`. */
export interface WaitUntilFreeOptions {
  /**
   * Time to wait. 0 only checks once; `Infinity` waits forever.
   *
   * @allowed 0 ms or more, or `Infinity`
   * @default the module's `waitMs`
   */
  waitMs?: number;
  /** When it aborts, the wait ends with a `LockAbortedError`. @default none */
  signal?: AbortSignal;
}

export const WAIT_UNTIL_FREE_OPTIONS = new OptionTable({
  waitMs: Option.durationOrInfinity(),
  signal: Option.abortSignal(),
} satisfies OptionsOf<WaitUntilFreeOptions>);

/** A resource of a job or of a leadership may be waited for: nothing is taken. */
function checkWatched(resource: unknown): string {
  if (!Array.isArray(resource)) return checkResource(resource, 'waitUntilFree');
  throw new InvalidLockOptionsError(
    'waitUntilFree() takes one resource, not an array: several resources are free at different moments. To see ' +
      'each of them free once, pass one call for each to Promise.all(). To have all of them at once, acquire them.',
    'resource',
  );
}

/** The resources that calls of this process wait for without taking them. */
export class LockWatches {
  readonly #watches = new Map<string, LockWatch>();

  constructor(private readonly deps: KernelParts) {
    for (const end of [deps.closing, deps.drained]) {
      end.addEventListener('abort', () => {
        for (const watch of this.#watches.values()) watch.close(end);
      });
    }
  }

  /** The number of resources that calls of this process wait for. */
  get size(): number {
    return this.#watches.size;
  }

  waitUntilFree(name: unknown, options?: WaitUntilFreeOptions): Promise<void> {
    return completed(() => this.#wait(name, options), this.deps);
  }

  freed(message: FreedMessage): void {
    this.#watches.get(message.resource)?.freed(message);
  }

  /** Messages may have been missed. */
  reconnected(): void {
    for (const watch of this.#watches.values()) watch.ask();
  }

  async #wait(name: unknown, options: WaitUntilFreeOptions = {}): Promise<void> {
    const { context, defaults, shutdownSignal } = this.deps;
    const resource = checkWatched(name);
    WAIT_UNTIL_FREE_OPTIONS.check('waitUntilFree', options);
    const { waitMs = defaults.waitMs, signal } = options;
    const held = context.hold(resource);
    if (held) throw LockReentryError.waitingUntilFree(resource, held.mode);
    const closing = shutdownSignal();
    if (closing.aborted || signal?.aborted) throw aborted(resource, closing, signal);
    return waitMs > 0 ? this.#join(resource, { waitMs, signal }, closing) : this.#look(resource, signal, closing);
  }

  #join(resource: string, limits: Pick<WaitLimits, 'waitMs' | 'signal'>, closing: AbortSignal): Promise<void> {
    const { clock, alarms, defaults, drained } = this.deps;
    const { unavailableMs } = defaults;
    return new Promise((resolve, reject) => {
      const outcome = { succeeded: resolve, failed: reject };
      let watch = this.#watches.get(resource);
      if (watch === undefined) {
        watch = new LockWatch(resource, this.deps, () => this.#watches.delete(resource));
        this.#watches.set(resource, watch);
      }
      const call = new PendingCall({ ...limits, unavailableMs }, clock.now(), outcome, alarms, watch);
      call.isInWork = closing === drained;
      watch.join(call, () => aborted(resource, closing, limits.signal));
    });
  }

  /** Asks once, without waiting. */
  async #look(resource: string, own: AbortSignal | undefined, closing: AbortSignal): Promise<void> {
    const { clock, random, alarms, defaults, store } = this.deps;
    const { signal, dispose } = mergeSignals(closing, own);
    const log = new AttemptLog();
    log.sent(clock.now());
    const watcher = { resource, id: createOwnerId(store.clientId, random), mark: 0 };
    const answer = await withTimeout(alarms, store.watch(watcher, 0), defaults.attemptTimeoutMs, signal);
    dispose();
    if (answer.outcome === 'answered') {
      const { isFree, ttlMs, seen } = answer.value;
      if (isFree) return;
      throw new LockTimeoutError(resource, { waitedMs: 0, attempts: 1, retryAfterMs: ttlMs, seen });
    }
    if (answer.outcome === 'aborted') throw aborted(resource, closing, own);
    if (answer.outcome === 'failed') log.failed(answer.error);
    else log.unanswered(answer.error);
    throw unavailable(resource, log, 'wait for');
  }
}

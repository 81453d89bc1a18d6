import { createOwnerId } from '../store/ask.js';
import { LockReentryError } from '../api/lease-errors.js';
import { InvalidLockOptionsError, LockTimeoutError } from '../api/errors.js';
import { completed } from '../acquiring/failed-calls.js';
import {
  lookOnce,
  PLACE_MS,
  SharedWait,
  SharedWaits,
  type WaitDeps,
  type WaitingCall,
} from '../acquiring/shared-wait.js';
import { type FreedMessage, MARKS, type WatchReply } from '../store/watch-store.js';
import type { LeaseDeps } from '../lease/lease-deps.js';
import { heartbeatPause } from '../places/asking.js';
import type { LockStore } from '../store/lock-store.js';
import { abortSignal, type OptionsOf, OptionTable, patience } from '../api/validation.js';
import { checkResource } from '../api/resource.js';

/** How `locks.waitUntilFree()` waits. */
export interface WaitUntilFreeOptions {
  /**
   * How long to wait. With 0, the call only looks. With `Infinity`, it never gives up.
   *
   * @allowed 0 ms and more, or `Infinity`
   * @default that of the module
   */
  waitMs?: number;
  /** Ends the wait with `LockAbortedError` when it aborts. @default none */
  signal?: AbortSignal;
}

export const WAIT_UNTIL_FREE_OPTIONS = new OptionTable({
  waitMs: patience(),
  signal: abortSignal(),
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

type WatchDeps = WaitDeps & { readonly store: LockStore };

/** A question to the store: as which watcher it was sent, and when. */
interface Question {
  readonly id: string;
  readonly sentAt: number;
}

/**
 * All calls of this process that wait until one resource is free. A call ends when the resource was free at a moment
 * after the call began: by an answer to a question that was sent after that, or by a message about such a question.
 */
class LockWatch extends SharedWait<WatchReply> {
  #id: string;
  /** The last questions, by their marks. */
  readonly #questions: Question[] = [];
  #asked = 0;
  /** Whether the store still has this process among the watchers, as far as is known. */
  #isWatching = false;

  constructor(
    resource: string,
    protected readonly deps: WatchDeps,
    onEnd: () => void,
  ) {
    super(resource, onEnd);
    this.#id = createOwnerId(deps.store.clientId, deps.random);
  }

  /** The resource may be free already, unnoticed: a lease has ended since the last question. */
  override join(call: WaitingCall, abortedBy: () => Error): void {
    super.join(call, abortedBy);
    if (this.calls.size > 1) this.lookSoon();
  }

  /** The message proves that the resource was free, unless it says nothing of when this process asked. */
  freed({ mark, isFor }: FreedMessage): void {
    const question = mark === undefined ? undefined : this.#questions[mark];
    if (!isFor(question?.id ?? this.#id)) return;
    this.#isWatching = false;
    if (question) this.#succeed(question.sentAt);
    if (!this.isOver) this.look();
  }

  protected send(sentAt: number): Promise<WatchReply> {
    const mark = this.#asked++ % MARKS;
    // No mark comes twice with one id: otherwise a copy of an old message would count for a new question. The watch of
    // the old id ends by itself.
    if (mark === 0 && this.#asked > 1) this.#id = createOwnerId(this.deps.store.clientId, this.deps.random);
    this.#questions[mark] = { id: this.#id, sentAt };
    return this.deps.store.watch({ resource: this.name, id: this.#id, mark }, PLACE_MS);
  }

  protected onReply(attempt: number, reply: WatchReply, sentAt: number): void {
    const { isFree, ttlMs } = reply;
    this.#isWatching = !isFree;
    if (this.isOver) return this.#withdraw();
    this.log.busy(reply, this.deps.clock.now());
    if (isFree) this.#succeed(sentAt);
    if (this.isOver || !this.isLatest(attempt)) return;
    // A call that began after the question was sent needs another one.
    if (isFree) this.ask();
    else this.askLater(heartbeatPause(ttlMs, PLACE_MS, this.deps.random));
  }

  protected inVain(waitedMs: number, attempts: number, now: number): Error {
    // A question that was sent just before the call was answered for it, too.
    return new LockTimeoutError(
      this.name,
      waitedMs,
      Math.max(1, attempts),
      this.log.holderTtlMs,
      this.log.holders(now),
    );
  }

  protected override stop(): void {
    super.stop();
    this.#withdraw();
  }

  /** @param since the resource was free at a time after this */
  #succeed(since: number): void {
    for (const call of this.calls) {
      if (call.startedAt > since) continue;
      this.calls.delete(call);
      call.succeed();
    }
    if (this.calls.size === 0) this.end(() => {});
  }

  /** No call waits any more. If this command is lost, the watch ends by itself. */
  #withdraw(): void {
    if (!this.#isWatching) return;
    this.#isWatching = false;
    this.deps.store.watch({ resource: this.name, id: this.#id, mark: 0 }, 0).catch(() => {});
  }
}

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

  async #wait(name: unknown, options: WaitUntilFreeOptions = {}): Promise<void> {
    const { random, defaults, context, store } = this.deps;
    const resource = checkWatched(name);
    WAIT_UNTIL_FREE_OPTIONS.check('waitUntilFree', options);
    const { waitMs = defaults.waitMs, signal } = options;
    const held = context.hold(resource);
    if (held) throw LockReentryError.waitingUntilFree(resource, held.mode);
    const wait = { name: resource, waitMs, signal };
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

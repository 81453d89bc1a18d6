import { heartbeatPause } from '../places/attempts.js';
import { createOwnerId } from '../store/owner-id.js';
import { LockTimeoutError } from '../api/errors.js';
import type { LockStore } from '../store/lock-store.js';
import { type FreedMessage, MARKS, type WatchReply } from '../store/watch-store.js';
import { PLACE_MS, SharedWait, type WaitDeps, type WaitingCall } from '../acquiring/shared-wait.js';

export type WatchDeps = WaitDeps & { readonly store: LockStore };

/** A question to the store: as which watcher it was sent, and when. */
interface Question {
  readonly id: string;
  readonly sentAt: number;
}

/**
 * All calls of this process that wait until one resource is free. A call ends when the resource was free at a moment
 * after the call began: by an answer to a question that was sent after that, or by a message about such a question.
 */
export class LockWatch extends SharedWait<WatchReply> {
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

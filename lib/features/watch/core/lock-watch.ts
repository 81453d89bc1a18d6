import { unavailable, waitedForStore } from '../../../kernel/acquiring/acquire-errors.js';
import { LockShutdownError } from '../../../kernel/api/errors.js';
import { Asker, AttemptLog, createOwnerId, heartbeatPause } from '../../../kernel/store/ask.js';
import { type WatchReply, type FreedMessage, MARKS } from '../../../kernel/store/watch-store.js';
import type { PendingCall, WaitLimits, WaitingTogether } from '../../../kernel/acquiring/pending-call.js';
import type { KernelParts } from '../../../kernel/lease/kernel-parts.js';
import { LockTimeoutError } from '../../../kernel/api/busy-errors.js';

/**
 * The time for which a client counts as waiting after it has asked. Longer than it takes to notice a dead connection
 * and to make a new one.
 */
const PLACE_MS = 10_000;

/** A message makes this process ask at most this often: any client with access to the channels can send more. */
const LOOK_EVERY_MS = 100;

type WatchDeps = Pick<
  KernelParts,
  'clock' | 'random' | 'alarms' | 'defaults' | 'closing' | 'drained' | 'shutdownSignal' | 'store'
>;

type WaitingCall = PendingCall<void, WaitLimits>;

/**
 * The calls of this process that wait until one resource is free, without taking it. They ask the store together, so a
 * thousand calls cost Redis no more than one. Each question renews the place of this process among those that are
 * notified, and finds a message lost.
 *
 * A call ends when the resource was free at a moment after the call began: by an answer to a question that was sent
 * after that, or by a message about such a question.
 */
export class LockWatch extends Asker<WatchReply> implements WaitingTogether {
  /** Shared by all calls. */
  readonly log = new AttemptLog();
  readonly #calls = new Set<WaitingCall>();
  #id: string;
  /** The last questions to the store, by their marks: as which watcher they were sent, and when. */
  readonly #questions: { readonly id: string; readonly sentAt: number }[] = [];
  #asked = 0;
  /** `true` if the store still has this process among the watchers, as far as is known. */
  #isWatching = false;
  /** When a message last made this process ask. */
  #lookedAt = -Infinity;
  /** `true` if another message has come since. */
  #isLookDue = false;

  /** @param onEnd called when no call waits any more */
  constructor(
    private readonly resource: string,
    protected readonly deps: WatchDeps,
    private readonly onEnd: () => void,
  ) {
    super();
    this.#id = createOwnerId(deps.store.clientId, deps.random);
  }

  protected get attemptTimeoutMs(): number {
    return this.deps.defaults.attemptTimeoutMs;
  }

  /** @param abortedBy what the call fails with when its signal aborts */
  join(call: WaitingCall, abortedBy: () => Error): void {
    const attemptsBefore = this.log.attempts;
    this.#calls.add(call);
    call.onGivingUp(() => this.#dismiss(call, this.#outOfTime(call, attemptsBefore)));
    call.onAbort(() => this.#dismiss(call, abortedBy()));
    if (this.#calls.size === 1) this.ask();
    // The resource may be free already, unnoticed: a lease has ended since the last question.
    else this.#lookSoon();
  }

  /** The message proves that the resource was free, unless it predates this process's question. */
  freed({ mark, isFor }: FreedMessage): void {
    const question = mark === undefined ? undefined : this.#questions[mark];
    if (!isFor(question?.id ?? this.#id)) return;
    this.#isWatching = false;
    if (question) this.#succeed(question.sentAt);
    if (!this.isOver) this.#look();
  }

  /** The application shuts down: every call fails, if `end` is what ends it. */
  close(end: AbortSignal): void {
    const { closing, drained } = this.deps;
    for (const call of this.#calls) {
      if ((call.isInWork ? drained : closing) === end) this.#dismiss(call, new LockShutdownError(this.resource));
    }
  }

  checkReachable(): void {
    const { resource, deps, log } = this;
    if (!log.markUnreachable(deps.store.trouble(resource) !== undefined, deps.clock.now())) return;
    for (const call of this.#calls) call.onStoreUnreachable();
  }

  protected override begin(sentAt: number): number {
    if (this.#isLookDue) this.#lookedAt = sentAt;
    this.#isLookDue = false;
    return super.begin(sentAt);
  }

  protected send(sentAt: number): Promise<WatchReply> {
    const mark = this.#asked++ % MARKS;
    // No mark comes twice with one id: otherwise a copy of an old message would count for a new question. The watch of
    // the old id ends by itself.
    if (mark === 0 && this.#asked > 1) this.#id = createOwnerId(this.deps.store.clientId, this.deps.random);
    this.#questions[mark] = { id: this.#id, sentAt };
    return this.deps.store.watch({ resource: this.resource, id: this.#id, mark }, PLACE_MS);
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

  protected refused(): void {
    this.#end((call) => call.fail(unavailable(this.resource, this.log, 'wait for')));
  }

  protected override askAfterFailure(): void {
    this.checkReachable();
    super.askAfterFailure();
  }

  protected setAlarm(nextAt: number): void {
    const { clock, alarms } = this.deps;
    const lookAt = this.#lookedAt + LOOK_EVERY_MS;
    alarms.set(this, this.#isLookDue ? Math.max(clock.now(), Math.min(nextAt, lookAt)) : nextAt);
  }

  protected override stop(): void {
    super.stop();
    this.#withdraw();
  }

  /** A message has come, so the store is asked, but not too often. */
  #look(): void {
    const now = this.deps.clock.now();
    if (now < this.#lookedAt + LOOK_EVERY_MS) return this.#lookSoon();
    this.#lookedAt = now;
    this.ask(now);
  }

  /** The store is asked once more: when the present question is answered, and not too often. */
  #lookSoon(): void {
    const { clock, alarms } = this.deps;
    const lookAt = this.#lookedAt + LOOK_EVERY_MS;
    this.#isLookDue = true;
    if (!this.isAsking && lookAt < this.dueAt) alarms.set(this, Math.max(clock.now(), lookAt));
  }

  /** @param since the resource was free at a time after this */
  #succeed(since: number): void {
    for (const call of this.#calls) {
      if (call.startedAt > since) continue;
      this.#calls.delete(call);
      call.succeed();
    }
    if (this.#calls.size === 0) this.#end(() => {});
  }

  #dismiss(call: WaitingCall, error: Error): void {
    this.#calls.delete(call);
    call.fail(error);
    if (this.#calls.size === 0) this.#end(() => {});
  }

  #end(tell: (call: WaitingCall) => void): void {
    this.stop();
    // First, so that a caller which waits again gets a new watch.
    this.onEnd();
    for (const call of this.#calls) tell(call);
    this.#calls.clear();
  }

  /** No call waits any more. If this command is lost, the watch ends by itself. */
  #withdraw(): void {
    if (!this.#isWatching) return;
    this.#isWatching = false;
    this.deps.store.watch({ resource: this.resource, id: this.#id, mark: 0 }, 0).catch(() => {});
  }

  /** The error names the last known holders, as for a lock. */
  #outOfTime(call: WaitingCall, attemptsBefore: number): Error {
    const { resource, deps, log } = this;
    const now = deps.clock.now();
    log.checkSilence(now, deps.defaults.attemptTimeoutMs);
    log.notice(deps.store.trouble(resource));
    if (log.last !== 'busy') return unavailable(resource, log, 'wait for', waitedForStore(call, now));
    // A question that was sent just before the call was answered for it, too.
    const attempts = Math.max(1, log.attempts - attemptsBefore);
    return new LockTimeoutError(resource, { ...log.facts(now), attempts, waitedMs: call.waitedMs(now) });
  }
}

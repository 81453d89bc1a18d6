import { aborted, unavailable, waitedForStore } from './acquire-errors.js';
import { Asker, AttemptLog } from '../places/asking.js';
import { LockShutdownError } from '../api/errors.js';
import type { LockStoreError } from '../store/store-error.js';
import { PendingCall, type WaitingTogether, type WaitLimits } from './pending-call.js';
import type { Runtime } from '../holding/runtime.js';
import { mergeSignals } from '../util/signals.js';
import { withTimeout } from '../store/ask.js';

/**
 * How long a client counts as waiting after it has asked. Longer than it takes to notice that a connection is dead and
 * to make a new one.
 */
export const PLACE_MS = 10_000;

/** A message makes this process ask at most this often: any client with access to the channels can send more. */
const LOOK_EVERY_MS = 100;

/** What waiting for something that is not taken needs. */
export type WaitDeps = Pick<
  Runtime,
  'clock' | 'random' | 'alarms' | 'defaults' | 'closing' | 'drained' | 'closingHere'
> & {
  readonly store: { trouble(name: string): LockStoreError | undefined };
};

export type WaitingCall = PendingCall<void, WaitLimits>;

/**
 * All calls of this process that wait for the same, and take nothing: for a latch to open, or for a resource to be
 * free. They ask the store together, so a thousand calls cost Redis no more than one. Each question renews the place of
 * this process among those that are told, and finds a message lost.
 */
export abstract class SharedWait<Reply> extends Asker<Reply> implements WaitingTogether {
  protected readonly calls = new Set<WaitingCall>();
  /** Of all attempts, for any of the calls. */
  readonly log = new AttemptLog();
  /** When a message last made this process ask. */
  #lookedAt = -Infinity;
  /** Whether another message came since. */
  #isLookDue = false;

  protected abstract override readonly deps: WaitDeps;

  constructor(
    /** What is waited for. */
    readonly name: string,
    /** Called when no call waits any more. */
    private readonly onEnd: () => void,
  ) {
    super();
  }

  protected get attemptTimeoutMs(): number {
    return this.deps.defaults.attemptTimeoutMs;
  }

  /** The error of a call that has waited for this long in vain. */
  protected abstract inVain(waitedMs: number, attempts: number, now: number): Error;

  /** @param abortedBy what the call fails with when its signal aborts */
  join(call: WaitingCall, abortedBy: () => Error): void {
    const attemptsBefore = this.log.attempts;
    this.calls.add(call);
    call.onGivingUp(() => this.#dismiss(call, this.#outOfTime(call, attemptsBefore)));
    call.onAbort(() => this.#dismiss(call, abortedBy()));
    if (this.calls.size === 1) this.ask();
  }

  /** Something has happened, or a message says so: so the store is asked, but not too often. */
  look(): void {
    const now = this.deps.clock.now();
    if (now < this.#lookedAt + LOOK_EVERY_MS) return this.lookSoon();
    this.#lookedAt = now;
    this.ask(now);
  }

  /** The store is asked once more: when the present question is answered, and not too often. */
  protected lookSoon(): void {
    const { clock, alarms } = this.deps;
    const lookAt = this.#lookedAt + LOOK_EVERY_MS;
    this.#isLookDue = true;
    if (!this.isAsking && lookAt < this.dueAt) alarms.set(this, Math.max(clock.now(), lookAt));
  }

  /** The application shuts down: every call fails, if `end` is what ends it. */
  close(end: AbortSignal): void {
    const { closing, drained } = this.deps;
    for (const call of this.calls) {
      if ((call.isInWork ? drained : closing) === end) this.#dismiss(call, new LockShutdownError(this.name));
    }
  }

  protected override begin(sentAt: number): number {
    if (this.#isLookDue) this.#lookedAt = sentAt;
    this.#isLookDue = false;
    return super.begin(sentAt);
  }

  protected refused(): void {
    this.end((call) => call.fail(unavailable(this.name, this.log, 'wait for')));
  }

  protected setAlarm(nextAt: number): void {
    const { clock, alarms } = this.deps;
    const lookAt = this.#lookedAt + LOOK_EVERY_MS;
    alarms.set(this, this.#isLookDue ? Math.max(clock.now(), Math.min(nextAt, lookAt)) : nextAt);
  }

  protected end(tell: (call: WaitingCall) => void): void {
    this.stop();
    // First, so that a caller which waits again begins anew.
    this.onEnd();
    for (const call of this.calls) tell(call);
    this.calls.clear();
  }

  protected override askAfterFailure(): void {
    this.lookForStore();
    super.askAfterFailure();
  }

  lookForStore(): void {
    const { name, deps, log } = this;
    if (!log.noteAway(deps.store.trouble(name) !== undefined, deps.clock.now())) return;
    for (const call of this.calls) call.storeWentAway();
  }

  /** As for a lock: the error tells what was known last. */
  #outOfTime(call: WaitingCall, attemptsBefore: number): Error {
    const { name, deps, log } = this;
    const now = deps.clock.now();
    log.checkSilence(now, deps.defaults.attemptTimeoutMs);
    log.notice(deps.store.trouble(name));
    if (log.last !== 'busy') return unavailable(name, log, 'wait for', waitedForStore(call, now));
    return this.inVain(call.waitedMs(now), log.attempts - attemptsBefore, now);
  }

  #dismiss(call: WaitingCall, error: Error): void {
    this.calls.delete(call);
    call.fail(error);
    if (this.calls.size === 0) this.end(() => {});
  }
}

interface SharedWaitOptions {
  readonly name: string;
  readonly waitMs: number;
  readonly signal: AbortSignal | undefined;
}

/** All that calls of this process wait for in common. */
export class SharedWaits<Wait extends SharedWait<unknown>> {
  readonly #waits = new Map<string, Wait>();

  constructor(private readonly deps: WaitDeps) {
    for (const end of [deps.closing, deps.drained]) {
      end.addEventListener('abort', () => {
        for (const wait of this.#waits.values()) wait.close(end);
      });
    }
  }

  get size(): number {
    return this.#waits.size;
  }

  get(key: string): Wait | undefined {
    return this.#waits.get(key);
  }

  /** Lets a call wait with those that wait for the same. @param key what is the same */
  join(key: string, { name, waitMs, signal }: SharedWaitOptions, begin: (onEnd: () => void) => Wait): Promise<void> {
    const { clock, alarms, defaults, drained, closingHere } = this.deps;
    const { unavailableMs } = defaults;
    const closing = closingHere();
    if (closing.aborted || signal?.aborted) throw aborted(name, closing, signal);
    return new Promise((resolve, reject) => {
      const outcome = { succeeded: resolve, failed: reject };
      let wait = this.#waits.get(key);
      if (wait === undefined) this.#waits.set(key, (wait = begin(() => this.#waits.delete(key))));
      const call = new PendingCall({ waitMs, unavailableMs, signal }, clock.now(), outcome, alarms, wait);
      call.isInWork = closing === drained;
      wait.join(call, () => aborted(name, closing, signal));
    });
  }

  /** Messages may have been missed. */
  reconnected(): void {
    for (const wait of this.#waits.values()) wait.ask();
  }
}

/** Asks once, without waiting. */
export async function lookOnce<T>(
  name: string,
  { clock, alarms, defaults, closingHere }: WaitDeps,
  own: AbortSignal | undefined,
  send: () => Promise<T>,
): Promise<T> {
  const closing = closingHere();
  if (closing.aborted || own?.aborted) throw aborted(name, closing, own);
  const { signal, dispose } = mergeSignals(closing, own);
  const log = new AttemptLog();
  log.sent(clock.now());
  const answer = await withTimeout(alarms, send(), defaults.attemptTimeoutMs, signal);
  dispose();
  if (answer.outcome === 'answered') return answer.value;
  if (answer.outcome === 'aborted') throw aborted(name, closing, own);
  if (answer.outcome === 'failed') log.failed(answer.error);
  else log.unanswered(answer.error);
  throw unavailable(name, log, 'wait for');
}

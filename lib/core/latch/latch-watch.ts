import { unavailable } from '../acquiring/acquire-errors.js';
import type { Alarm } from '../util/alarms.js';
import { failurePause, heartbeatPause, AttemptLog } from '../store/attempts.js';
import { LockShutdownError } from '../api/errors.js';
import { notOpened, otherCount } from './latch-errors.js';
import type { LatchState, LatchStore, LatchSpec } from '../store/latch-store.js';
import type { PendingCall, WaitLimits } from '../acquiring/pending-call.js';
import type { Runtime } from '../store/runtime.js';
import { asStoreError, LockStoreError } from '../store/lock-store.js';

/**
 * How long a client counts as waiting after it has asked. Longer than it takes to notice that a connection is dead and
 * to make a new one: an open latch that expires stays for this long, for the clients that have not seen it.
 */
export const LATCH_PLACE_MS = 10_000;

/**
 * A message makes this process ask at most this often: a latch opens once, but any client with access to the channels
 * can send more messages.
 */
const LOOK_EVERY_MS = 100;

/** What latches need. */
export type LatchDeps = Pick<Runtime, 'clock' | 'random' | 'alarms' | 'defaults' | 'closing'> & {
  readonly store: LatchStore;
};

export type LatchCall = PendingCall<void, WaitLimits>;

/**
 * All calls of this process that wait for one latch. They ask the store together, so a thousand calls cost Redis no
 * more than one. Each question renews the place of this process among those that are told when the latch opens, and
 * finds a message lost.
 */
export class LatchWatch implements Alarm {
  dueAt = 0;
  heapIndex = -1;
  readonly #calls = new Set<LatchCall>();
  /** Of all attempts, for any of the calls. */
  readonly #log = new AttemptLog();
  #remaining: number;
  /** The number of the last attempt. */
  #latest = 0;
  #isAsking = false;
  /** When a message last made this process ask. */
  #lookedAt = -Infinity;
  /** Whether another message came since. */
  #isLookDue = false;
  #isOver = false;

  constructor(
    readonly spec: LatchSpec,
    private readonly deps: LatchDeps,
    /** Called when no call waits any more. */
    private readonly onEnd: () => void,
  ) {
    this.#remaining = spec.count;
  }

  /** @param abortedBy what the call fails with when its signal aborts */
  join(call: LatchCall, abortedBy: () => Error): void {
    const attemptsBefore = this.#log.attempts;
    this.#calls.add(call);
    call.onGivingUp(() => this.#dismiss(call, this.#outOfTime(call, attemptsBefore)));
    call.onAbort(() => this.#dismiss(call, abortedBy()));
    if (this.#calls.size === 1) this.ask();
  }

  /**
   * A message says that the latch is open. It may be about an earlier latch of this name, or forged: so the store is
   * asked.
   */
  hear(): void {
    const { clock, alarms } = this.deps;
    const lookAt = this.#lookedAt + LOOK_EVERY_MS;
    if (clock.now() >= lookAt) {
      this.#lookedAt = clock.now();
      return this.ask();
    }
    this.#isLookDue = true;
    if (!this.#isAsking && lookAt < this.dueAt) alarms.set(this, lookAt);
  }

  ask(): void {
    const { store, clock, alarms, defaults } = this.deps;
    const attempt = ++this.#latest;
    this.#log.sent(clock.now());
    this.#isAsking = true;
    if (this.#isLookDue) this.#lookedAt = clock.now();
    this.#isLookDue = false;
    alarms.setIn(this, defaults.attemptTimeoutMs);
    store.wait(this.spec, LATCH_PLACE_MS).then(
      (state) => this.#onReply(attempt, state),
      (error: unknown) => this.#onError(attempt, asStoreError(error)),
    );
  }

  /** An attempt timed out, or the next one is due. */
  ring(): void {
    if (!this.#isAsking) return this.ask();
    const { attemptTimeoutMs } = this.deps.defaults;
    this.#log.unanswered(new LockStoreError('unknown', `no answer within ${attemptTimeoutMs} ms`));
    this.#askLater(failurePause(this.#log, this.deps.random));
  }

  /** The application shuts down: every call fails. */
  close(): void {
    this.#end((call) => call.fail(new LockShutdownError(this.spec.name)));
  }

  #onReply(attempt: number, state: LatchState): void {
    if (this.#isOver) return;
    if (state.count !== this.spec.count) {
      this.#end((call) => call.fail(otherCount(this.spec, state)));
    } else if (state.remaining === 0) {
      // An open latch stays open: a late reply is as good.
      this.#end((call) => call.succeed());
    } else {
      this.#log.busy(state.ttlMs);
      this.#remaining = state.remaining;
      if (attempt === this.#latest) this.#askLater(heartbeatPause(Infinity, LATCH_PLACE_MS, this.deps.random));
    }
  }

  #onError(attempt: number, error: LockStoreError): void {
    if (this.#isOver || attempt !== this.#latest) return;
    this.#log.failed(error);
    if (error.failure === 'refused') {
      this.#end((call) => call.fail(unavailable(this.spec.name, this.#log, 'wait for')));
    } else this.#askLater(failurePause(this.#log, this.deps.random));
  }

  #askLater(pauseMs: number): void {
    const { clock, alarms } = this.deps;
    const now = clock.now();
    const askAt = now + pauseMs;
    this.#isAsking = false;
    alarms.set(this, this.#isLookDue ? Math.max(now, Math.min(askAt, this.#lookedAt + LOOK_EVERY_MS)) : askAt);
  }

  /** As for a lock: the error tells what was known last. */
  #outOfTime(call: LatchCall, attemptsBefore: number): Error {
    const { spec, deps } = this;
    const log = this.#log;
    log.checkSilence(deps.clock.now(), deps.defaults.attemptTimeoutMs);
    log.notice(deps.store.trouble(spec.name));
    if (log.last !== 'busy') return unavailable(spec.name, log, 'wait for');
    const waitedMs = call.waitedMs(deps.clock.now());
    return notOpened(spec, this.#remaining, waitedMs, log.attempts - attemptsBefore, log.holderTtlMs);
  }

  #dismiss(call: LatchCall, error: Error): void {
    this.#calls.delete(call);
    call.fail(error);
    if (this.#calls.size === 0) this.#end(() => {});
  }

  #end(tell: (call: LatchCall) => void): void {
    this.#isOver = true;
    this.deps.alarms.cancel(this);
    // First, so that a caller which waits again begins anew.
    this.onEnd();
    for (const call of this.#calls) tell(call);
    this.#calls.clear();
  }
}

import { unavailable } from '../acquiring/acquire-errors.js';
import { Asker, heartbeatPause, AttemptLog } from '../store/attempts.js';
import { LockShutdownError } from '../api/errors.js';
import { notOpened, otherCount } from './latch-errors.js';
import type { LatchState, LatchStore, LatchSpec } from '../store/latch-store.js';
import type { PendingCall, WaitLimits } from '../acquiring/pending-call.js';
import type { Runtime } from '../store/runtime.js';

/**
 * How long a client counts as waiting after it has asked. Longer than it takes to notice that a connection is dead and
 * to make a new one: an open latch that expires stays for this long, for the clients that have not seen it.
 */
const LATCH_PLACE_MS = 10_000;

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
export class LatchWatch extends Asker<LatchState> {
  readonly #calls = new Set<LatchCall>();
  /** Of all attempts, for any of the calls. */
  protected readonly log = new AttemptLog();
  #remaining: number;
  /** When a message last made this process ask. */
  #lookedAt = -Infinity;
  /** Whether another message came since. */
  #isLookDue = false;

  constructor(
    readonly spec: LatchSpec,
    protected readonly deps: LatchDeps,
    /** Called when no call waits any more. */
    private readonly onEnd: () => void,
  ) {
    super();
    this.#remaining = spec.count;
  }

  protected get attemptTimeoutMs(): number {
    return this.deps.defaults.attemptTimeoutMs;
  }

  /** @param abortedBy what the call fails with when its signal aborts */
  join(call: LatchCall, abortedBy: () => Error): void {
    const attemptsBefore = this.log.attempts;
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
    if (!this.isAsking && lookAt < this.dueAt) alarms.set(this, lookAt);
  }

  /** The application shuts down: every call fails. */
  close(): void {
    this.#end((call) => call.fail(new LockShutdownError(this.spec.name)));
  }

  protected send(): Promise<LatchState> {
    return this.deps.store.wait(this.spec, LATCH_PLACE_MS);
  }

  protected override begin(sentAt: number): number {
    if (this.#isLookDue) this.#lookedAt = sentAt;
    this.#isLookDue = false;
    return super.begin(sentAt);
  }

  protected onReply(attempt: number, state: LatchState): void {
    if (this.isOver) return;
    if (state.count !== this.spec.count) {
      this.#end((call) => call.fail(otherCount(this.spec, state)));
    } else if (state.remaining === 0) {
      // An open latch stays open: a late reply is as good.
      this.#end((call) => call.succeed());
    } else {
      this.log.busy(state.ttlMs);
      this.#remaining = state.remaining;
      if (this.isLatest(attempt)) this.askLater(heartbeatPause(Infinity, LATCH_PLACE_MS, this.deps.random));
    }
  }

  protected refused(): void {
    this.#end((call) => call.fail(unavailable(this.spec.name, this.log, 'wait for')));
  }

  protected setAlarm(nextAt: number): void {
    const { clock, alarms } = this.deps;
    const lookAt = this.#lookedAt + LOOK_EVERY_MS;
    alarms.set(this, this.#isLookDue ? Math.max(clock.now(), Math.min(nextAt, lookAt)) : nextAt);
  }

  /** As for a lock: the error tells what was known last. */
  #outOfTime(call: LatchCall, attemptsBefore: number): Error {
    const { spec, deps, log } = this;
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
    this.stop();
    // First, so that a caller which waits again begins anew.
    this.onEnd();
    for (const call of this.#calls) tell(call);
    this.#calls.clear();
  }
}

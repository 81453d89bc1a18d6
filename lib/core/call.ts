import { Alarm, type Alarms } from './alarms.js';
import { AttemptLog } from './attempt-log.js';
import type { Grant } from './hold.js';
import type { ResolvedLockOptions } from './lock-options.js';
import type { Tenure } from './tenure.js';

/** What becomes of a call, for the one who made it. */
export interface CallOutcome {
  granted(grant: Grant): void;
  failed(error: Error): void;
}

/** One call to acquire that may wait, until it is granted or fails. */
export class Call {
  readonly giveUpAt: number;
  readonly log = new AttemptLog();
  #alarm: Alarm | undefined;
  #onAbort: (() => void) | undefined;

  constructor(
    readonly options: ResolvedLockOptions,
    private readonly startedAt: number,
    private readonly outcome: CallOutcome,
    private readonly alarms: Alarms,
  ) {
    this.giveUpAt = startedAt + options.waitMs;
  }

  waitedMs(now: number): number {
    return now - this.startedAt;
  }

  /** Calls back when the caller's signal aborts. */
  onAbort(callback: () => void): void {
    this.#onAbort = callback;
    this.options.signal?.addEventListener('abort', callback, { once: true });
  }

  /** Calls back when `waitMs` is over. */
  onGivingUp(callback: () => void): void {
    if (this.giveUpAt !== Infinity) this.alarms.set((this.#alarm = new Alarm(callback)), this.giveUpAt);
  }

  /** Somebody else sees to it that it gives up in time. */
  stopWatching(): void {
    if (this.#alarm) this.alarms.cancel(this.#alarm);
  }

  grant(tenure: Tenure, now: number): void {
    this.#end();
    this.outcome.granted({ tenure, attempts: this.log.attempts, waitedMs: this.waitedMs(now) });
  }

  fail(error: Error): void {
    this.#end();
    this.outcome.failed(error);
  }

  #end(): void {
    this.stopWatching();
    if (this.#onAbort) this.options.signal?.removeEventListener('abort', this.#onAbort);
  }
}

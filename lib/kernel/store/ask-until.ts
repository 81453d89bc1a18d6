import type { Alarms } from '../util/alarms.js';
import { backoff, type Clock } from '../util/clock.js';
import { pause } from '../util/promises.js';
import { type Answer, withTimeout } from './ask.js';

/** A command that may safely be executed twice, and when to stop sending it. */
interface RepeatedCommand<T> {
  /** @returns `undefined` if the command is no longer needed: the last answer is then final */
  send(): Promise<T> | undefined;
  /** In milliseconds. */
  readonly timeoutMs: number;
  /** The time, on the monotonic clock, from which no attempt starts after one without an answer. */
  readonly giveUpAt: number;
  /** @returns the pause after this many failures in a row, in milliseconds */
  pauseMs(failures: number): number;
  /** Paces the command after a refusal. @default a refusal is final */
  readonly refused?: RefusedCommands;
  /** Called after each attempt without an answer. @returns whether the caller no longer needs the answer */
  unanswered?(answer: Exclude<Answer<T>, { outcome: 'answered' }>, command: Promise<T>): boolean;
  /**
   * Returns true if an answer ends the wait. Otherwise, the command is sent again after a pause, also after `giveUpAt`.
   */
  isFinal?(value: T): boolean;
  readonly signal?: AbortSignal;
}

/**
 * Sends a command again until it is answered, or until `giveUpAt`. A refusal ends that, unless the command has to
 * arrive: then it continues after a longer pause (see {@link RefusedCommands}). @returns the last answer
 */
export async function askUntil<T>(alarms: Alarms, clock: Clock, command: RepeatedCommand<T>): Promise<Answer<T>> {
  const { timeoutMs, giveUpAt, signal, refused } = command;
  let answer: Answer<T> = { outcome: 'aborted' };
  let refusals = 0;
  let failures = 0;
  for (let sent = command.send(); sent !== undefined; sent = command.send()) {
    answer = await withTimeout(alarms, sent, timeoutMs, signal);
    const isRefused = answer.outcome === 'failed' && answer.error.failure === 'refused';
    if (refusals > 0) refused!.answered(isRefused);
    if (answer.outcome === 'answered') {
      if (command.isFinal?.(answer.value) ?? true) return answer;
    } else {
      if (command.unanswered?.(answer, sent) || answer.outcome === 'aborted') return answer;
      if (isRefused && (refused === undefined || refused.isClosed)) return answer;
    }
    refusals = isRefused ? refusals + 1 : 0;
    const pauseMs = isRefused ? refused!.pauseMs(refusals) : command.pauseMs(++failures);
    if (answer.outcome !== 'answered' && clock.now() + pauseMs >= giveUpAt) return answer;
    if (isRefused) await refused!.turn(pauseMs);
    else if ((await pause(clock, pauseMs, signal)) === 'aborted') return { outcome: 'aborted' };
  }
  // The turn of the next one: this one is not sent.
  if (refusals > 0) refused!.answered(true);
  return answer;
}

const PAUSE_MS = { first: 200, longest: 2_000 };

/**
 * Paces the commands that a store refuses and that have to arrive all the same, such as a release while an operator
 * changes the password: nothing else frees the lock before its lease ends. Each is sent again after a pause that
 * doubles, one at a time, because most servers refuse all commands or none. So an answer to one of them, and a new
 * connection, let all of them go at once.
 */
export class RefusedCommands {
  readonly #waiting = new Set<() => void>();
  /** The commands whose pause has ended, in order. */
  #due: (() => void)[] = [];
  #inFlight = 0;
  /** `true` once a refusal is final, because the process is shutting down. */
  isClosed = false;

  constructor(private readonly clock: Clock) {}

  /** @param refusals the number of times in a row that the command was refused */
  pauseMs(refusals: number): number {
    return backoff(PAUSE_MS, refusals);
  }

  /** Resolves when the command may be sent again. Report its outcome to {@link answered}. */
  turn(pauseMs: number): Promise<void> {
    return new Promise((resolve) => {
      const send = (): void => {
        timer.cancel();
        this.#waiting.delete(send);
        this.#inFlight++;
        resolve();
      };
      const due = (): void => {
        if (this.#inFlight === 0) send();
        else this.#due.push(send);
      };
      const timer = this.clock.setTimer(due, pauseMs);
      this.#waiting.add(send);
    });
  }

  /** Ends a command's {@link turn}. */
  answered(isRefused: boolean): void {
    this.#inFlight--;
    if (!isRefused) this.hasten();
    else if (this.#inFlight === 0) this.#due.shift()?.();
  }

  /** Sends all of them now, because the store accepts commands again, or the connection is new. */
  hasten(): void {
    this.#due = [];
    for (const send of this.#waiting) send();
  }

  /** Sends all of them once more, and refusals are final from now on. */
  close(): void {
    this.isClosed = true;
    this.hasten();
  }
}

import { backoff, type Clock } from '../util/clock.js';

const PAUSE_MS = { first: 200, longest: 2_000 };

/**
 * Paces the commands that a store refuses and that have to arrive all the same, such as a release while an operator
 * changes the password: nothing else frees the lock before its lease ends. Each is sent again after a pause that
 * doubles, one at a time, because most servers refuse all commands or none. So an answer to one of them, and a new
 * connection, let all of them go at once.
 */
export class RefusedCommands {
  readonly #waiting = new Set<() => void>();
  /** Those whose pause has ended, in order. */
  #due: (() => void)[] = [];
  #inFlight = 0;
  /** `true` once a refusal is final: the process shuts down, and waits for no mend. */
  isClosed = false;

  constructor(private readonly clock: Clock) {}

  /** @param refusals how often the command was refused in a row */
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

  /** Sends all of them now: the store accepts commands again, or the connection is new. */
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

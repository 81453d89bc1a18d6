import { onAbort } from '../../../kernel/util/signals.js';

/** What ends a process that does not handle it. While `exec` waits, one of them ends the wait. */
const ENDING = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT'] as const;
const OTHERS = ['SIGUSR1', 'SIGUSR2', 'SIGWINCH'] as const;

/** The signals that `exec` gets. They are for its command. */
export class PassedSignals {
  readonly #ending = new AbortController();
  readonly #listeners: (readonly [NodeJS.Signals | 'SIGTSTP', () => void])[] = [];
  #pass: ((signal: NodeJS.Signals) => void) | undefined;
  #endedBy: NodeJS.Signals | undefined;
  #hasPassed = false;

  /** @param note told why Ctrl-Z does nothing */
  constructor(note: (line: string) => void) {
    for (const signal of ENDING) this.#listen(signal, () => this.#end(signal));
    for (const signal of OTHERS) this.#listen(signal, () => this.#pass?.(signal));
    this.#listen('SIGTSTP', () => {
      note(
        'Ctrl-Z is ignored: a stopped process cannot renew its lease, and others would get the lock. To end the command, press Ctrl-C.',
      );
    });
  }

  /** Aborts when a signal ends `exec` before its command has started. */
  get ending(): AbortSignal {
    return this.#ending.signal;
  }

  /** Rejects when a signal ends `exec` before its command has started. */
  get ended(): Promise<never> {
    return new Promise((_, reject) => onAbort(this.ending, () => reject(new Error(`ended by ${this.#endedBy}`))));
  }

  /** Which signal that was. */
  get endedBy(): NodeJS.Signals | undefined {
    return this.#endedBy;
  }

  /** Whether a signal that asks for an end was passed on. */
  get hasPassed(): boolean {
    return this.#hasPassed;
  }

  /** From now on there is a command. A signal that came a moment before is passed on as well. */
  passTo(pass: (signal: NodeJS.Signals) => void): void {
    this.#pass = pass;
    if (this.#endedBy) this.#end(this.#endedBy);
  }

  close(): void {
    for (const [signal, listener] of this.#listeners) process.removeListener(signal, listener);
  }

  #end(signal: NodeJS.Signals): void {
    if (this.#pass) {
      this.#hasPassed = true;
      this.#pass(signal);
      return;
    }
    this.#endedBy ??= signal;
    this.#ending.abort();
  }

  #listen(signal: NodeJS.Signals, listener: () => void): void {
    process.on(signal, listener);
    this.#listeners.push([signal, listener]);
  }
}

import { openSync, readFileSync, writeSync } from 'node:fs';
import { machineNow } from '../../../test/support/expect/machine-now.js';
import type { Entry } from './entries.js';

/** An entry without the time and the name of the process, which the log adds. */
export type Saying = Entry extends infer E
  ? E extends Entry
    ? Omit<E, 'at' | 'process'> & { at?: number }
    : never
  : never;

/** The lines of one process. They are written synchronously: a process that is killed has said all that it did. */
export class HistoryLog {
  readonly #file: number;

  constructor(
    path: string,
    readonly process: string,
  ) {
    this.#file = openSync(path, 'a');
  }

  /** @param saying with `at`, if it happened earlier than this call */
  say(saying: Saying): void {
    writeSync(this.#file, `${JSON.stringify({ at: machineNow(), process: this.process, ...saying })}\n`);
  }

  /** Something went wrong that should not. */
  crash(during: string, error: unknown): void {
    this.say({ type: 'crash', error: `${during}: ${error instanceof Error ? error.stack : String(error)}` });
  }
}

/** Reads what one process said. The last line of one that was killed may be cut short. */
export function readHistory(path: string): Entry[] {
  const lines = readFileSync(path, 'utf8').split('\n');
  if (lines.pop() !== '') process.emitWarning(`${path} ends in the middle of a line`);
  return lines.map((line) => JSON.parse(line) as Entry);
}

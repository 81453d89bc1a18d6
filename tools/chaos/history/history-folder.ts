import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { atExit } from '../../../test/support/process/at-exit.js';
import { machineNow } from '../../../test/support/expect/machine-now.js';
import type { Entry } from './entries.js';
import { GrantCounter } from './grant-counter.js';
import { History } from './history.js';
import { HistoryLog, readHistory } from './history-log.js';

const ENDING = '.jsonl';

/** Where the processes of one world say what they do: a file for each. Gone when it is disposed of, unless it is kept. */
export class HistoryFolder implements Disposable {
  readonly path = mkdtempSync(join(tmpdir(), 'lock-chaos-'));
  readonly #counter = new GrantCounter();
  readonly #calledOff = atExit(() => this[Symbol.dispose]());
  #isKept = false;

  /** The file of a process. */
  fileOf(process: string): string {
    return join(this.path, process + ENDING);
  }

  logOf(process: string): HistoryLog {
    return new HistoryLog(this.fileOf(process), process);
  }

  /** How many leases were granted so far. */
  countGrants(): number {
    return filesIn(this.path).reduce((granted, file) => granted + this.#counter.countIn(file), 0);
  }

  /**
   * What was said so far, while they go on. With an entry it has all that led to it: each is written before its process goes on.
   */
  readSoFar(): History {
    const now = machineNow();
    const entries = filesIn(this.path).flatMap((file) => readHistory(file, { isGrowing: true }));
    return new History(
      entries.filter(({ at }) => at < now),
      now,
    );
  }

  /** It stays after the run, for the person who has to find out what happened. */
  keep(): void {
    this.#isKept = true;
  }

  [Symbol.dispose](): void {
    this.#calledOff();
    if (!this.#isKept) rmSync(this.path, { recursive: true, force: true });
  }
}

/** Everything that was said in such a folder, by processes that have ended. */
export function readFolder(path: string): Entry[] {
  return filesIn(path).flatMap((file) => readHistory(file));
}

function filesIn(path: string): string[] {
  return readdirSync(path)
    .filter((name) => name.endsWith(ENDING))
    .map((name) => join(path, name));
}

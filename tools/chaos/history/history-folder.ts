import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { atExit } from '../../../test/support/process/at-exit.js';
import { machineNow } from '../../../test/support/expect/machine-now.js';
import type { Entry } from './entries.js';
import { GrowingFile } from './growing-file.js';
import { History } from './history.js';
import { HistoryLog, readHistory } from './history-log.js';

const ENDING = '.jsonl';
const GRANTED = '"type":"ok","op":"acquire"';

/** A folder with one log file for each process of a world. Deleted on dispose, unless it is kept. */
export class HistoryFolder implements Disposable {
  readonly path = mkdtempSync(join(tmpdir(), 'lock-chaos-'));
  /** The file of each process, with the grants counted so far. */
  readonly #counted = new Map<string, { readonly file: GrowingFile; granted: number }>();
  readonly #heard = new Map<string, { readonly file: GrowingFile; readonly entries: Entry[] }>();
  readonly #calledOff = atExit(() => this[Symbol.dispose]());
  #isKept = false;

  /** The file of a process. */
  fileOf(process: string): string {
    return join(this.path, process + ENDING);
  }

  logOf(process: string): HistoryLog {
    return new HistoryLog(this.fileOf(process), process);
  }

  /** The number of leases granted so far. */
  countGrants(): number {
    let sum = 0;
    for (const path of filesIn(this.path)) {
      const counted = this.#counted.get(path) ?? { file: new GrowingFile(path), granted: 0 };
      this.#counted.set(path, counted);
      counted.granted += counted.file.newLines().filter((line) => line.includes(GRANTED)).length;
      sum += counted.granted;
    }
    return sum;
  }

  /**
   * Reads the logs of a running world. Each entry is written before its process continues, so its causes are included.
   */
  readSoFar(): History {
    const now = machineNow();
    const entries = filesIn(this.path).flatMap((path) => {
      const heard = this.#heard.get(path) ?? { file: new GrowingFile(path), entries: [] };
      this.#heard.set(path, heard);
      for (const line of heard.file.newLines()) heard.entries.push(JSON.parse(line) as Entry);
      return heard.entries;
    });
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

import { closeSync, fstatSync, openSync, readSync } from 'node:fs';

const GRANTED = '"type":"ok","op":"acquire"';

/** Counts the grants in files that still grow, and reads no byte twice. */
export class GrantCounter {
  readonly #seen = new Map<string, { size: number; granted: number; cutLine: string }>();

  /** Those of one file so far. */
  countIn(path: string): number {
    if (!path.endsWith('.jsonl')) return 0;
    const { size, granted, cutLine } = this.#seen.get(path) ?? { size: 0, granted: 0, cutLine: '' };
    const file = openSync(path, 'r');
    const added = Buffer.alloc(Math.max(0, fstatSync(file).size - size));
    readSync(file, added, 0, added.length, size);
    closeSync(file);
    const lines = (cutLine + added.toString('latin1')).split('\n');
    const now = {
      size: size + added.length,
      cutLine: lines.pop()!,
      granted: granted + lines.filter((line) => line.includes(GRANTED)).length,
    };
    this.#seen.set(path, now);
    return now.granted;
  }
}

import { closeSync, fstatSync, openSync, readSync } from 'node:fs';

const LINE_BREAK = 10;

/** A file that others write to. No byte of it is read twice. */
export class GrowingFile {
  #size = 0;
  #cutLine = Buffer.alloc(0);

  constructor(private readonly path: string) {}

  /** The lines that were completed since this was last asked. */
  newLines(): string[] {
    const file = openSync(this.path, 'r');
    const added = Buffer.alloc(Math.max(0, fstatSync(file).size - this.#size));
    readSync(file, added, 0, added.length, this.#size);
    closeSync(file);
    this.#size += added.length;
    const text = Buffer.concat([this.#cutLine, added]);
    const end = text.lastIndexOf(LINE_BREAK) + 1;
    this.#cutLine = text.subarray(end);
    return text.toString('utf8', 0, end).split('\n').slice(0, -1);
  }
}

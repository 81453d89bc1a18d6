import { longDuration } from '../../../kernel/util/durations.js';
import { escapeText, escapeUnsafe } from '../../../kernel/util/quoted.js';
import type { CliProcess, Terminal } from './terminal.js';

/** The version of all that `--json` prints. It grows when a field is removed or means something else. */
const SCHEMA_VERSION = 1;

/** One cell: for a person, and for a program. */
interface Cell {
  readonly shown: string;
  readonly raw: string;
}

/** What a table may have in a cell. */
export type CellValue = string | number | Cell | undefined;

/** Rows under headings. */
export interface Table {
  readonly columns: readonly string[];
  /** A row may have fewer cells, of which the others are empty; and more, unless it is for a terminal. */
  readonly rows: readonly (readonly CellValue[])[];
  /** Shown on a terminal where there is no row. */
  readonly ifEmpty?: string;
}

/** What a command has found: one and the same in each format. */
export interface Found {
  /** With `--json`. */
  readonly json: object;
  /** Otherwise: tables, and texts of one line. */
  readonly shown: readonly (Table | string)[];
}

/** Milliseconds for a program, words for a person. */
export function durationCell(ms: number | undefined): Cell | undefined {
  return ms === undefined ? undefined : { shown: longDuration(ms), raw: String(Math.round(ms)) };
}

/** A time since 1970: an ISO time for a program, how long ago or in what time for a person. */
export function timeCell(at: number | undefined, now: number): Cell | undefined {
  if (at === undefined) return undefined;
  const shown = at > now ? `in ${longDuration(at - now)}` : `${longDuration(now - at)} ago`;
  return { shown, raw: new Date(at).toISOString() };
}

/** Data goes to stdout, and everything else to stderr. */
export class Output {
  /** `table` on a terminal, `tsv` otherwise, `json` where it is asked for. */
  readonly format: 'table' | 'tsv' | 'json';
  readonly #hasColor: boolean;

  constructor(
    private readonly process: Pick<CliProcess, 'stdout' | 'stderr' | 'env'>,
    private readonly terminal: Terminal,
    isJson: boolean,
  ) {
    const isTerminal = process.stdout.isTTY === true;
    this.format = isJson ? 'json' : isTerminal ? 'table' : 'tsv';
    // https://no-color.org: any value but the empty one.
    this.#hasColor = isTerminal && !process.env['NO_COLOR'] && process.env['TERM'] !== 'dumb';
  }

  /** Prints what was found, in the format that is wanted. */
  print({ json, shown }: Found): void {
    if (this.format === 'json') return this.printJson(json);
    let text = '';
    let wasTable = false;
    for (const each of shown) {
      const isTable = typeof each !== 'string';
      const block = isTable ? this.#tableText(each) : `${escapeText(each)}\n`;
      // On a terminal, an empty line stands around a table.
      if (this.format === 'table' && text !== '' && block !== '' && (isTable || wasTable)) text += '\n';
      text += block;
      wasTable = isTable;
    }
    this.#write(text);
  }

  /** Prints one line of JSON, with the version of its schema. */
  printJson(json: object): void {
    this.#write(`${escapeUnsafe(JSON.stringify({ schemaVersion: SCHEMA_VERSION, ...json }))}\n`);
  }

  /** Prints one line of data. */
  line(text: string): void {
    this.#write(`${escapeText(text)}\n`);
  }

  /** Prints a text of several lines that is the data: a help, a script. */
  text(text: string): void {
    this.#write(text.endsWith('\n') ? text : `${text}\n`);
  }

  /** Prints a message for a person, which is no data. */
  note(text: string): void {
    this.terminal.endProgress();
    this.process.stderr.write(`${escapeText(text)}\n`);
  }

  #tableText({ columns, rows: given, ifEmpty }: Table): string {
    const rows = given.map((row) => [...row, ...columns.slice(row.length).map(() => undefined)]);
    if (this.format === 'tsv') {
      return rows.map((row) => `${row.map((cell) => escapeText(rawOf(cell))).join('\t')}\n`).join('');
    }
    if (rows.length === 0) return ifEmpty === undefined ? '' : `${escapeText(ifEmpty)}\n`;
    const cells = [columns, ...rows.map((row) => row.map((cell) => escapeText(shownOf(cell))))];
    const widths = columns.map((_, index) => Math.max(...cells.map((row) => widthOf(row[index]!))));
    const lines = cells.map((row) =>
      row
        .map((cell, index) => cell + ' '.repeat(widths[index]! - widthOf(cell)))
        .join('  ')
        .trimEnd(),
    );
    lines[0] = this.#bold(lines[0]!);
    return `${lines.join('\n')}\n`;
  }

  #bold(text: string): string {
    return this.#hasColor ? `\u001b[1m${text}\u001b[22m` : text;
  }

  #write(text: string): void {
    this.terminal.endProgress();
    if (text !== '') this.process.stdout.write(text);
  }
}

function shownOf(cell: CellValue): string {
  return typeof cell === 'object' ? cell.shown : String(cell ?? '');
}

function rawOf(cell: CellValue): string {
  return typeof cell === 'object' ? cell.raw : String(cell ?? '');
}

/** In columns of a terminal, about: a character of another script may take two. */
function widthOf(text: string): number {
  return Array.from(text).length;
}

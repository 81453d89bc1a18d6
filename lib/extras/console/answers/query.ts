import { describeValue } from '../../../kernel/api/validation.js';
import { quote, quoteSome } from '../../../kernel/util/quoted.js';
import { Refusal } from './reply.js';

const MAX_ROWS = 1_000;
const MAX_TEXT = 200;
const MAX_NAME = 1_024;

/** Reads the query of an address. A value that cannot be is refused, so that a link never shows something else. */
export class Query {
  constructor(private readonly values: URLSearchParams) {}

  /** @throws Refusal where it is too long */
  text(name: string, fallback = '', longest = MAX_TEXT): string {
    const value = this.values.get(name) ?? fallback;
    if (value.length > longest) throw new Refusal('BAD_REQUEST', `${name} has more than ${longest} characters.`);
    return value;
  }

  /** A name that has to be there. @throws Refusal */
  name(name: string): string {
    const value = this.text(name, '', MAX_NAME);
    if (value === '') throw new Refusal('BAD_REQUEST', `${name} is missing: ?${name}=…`);
    return value;
  }

  /** One of a few words, the first one without it. @throws Refusal */
  oneOf<T extends string>(name: string, allowed: readonly T[], value = this.values.get(name) ?? ''): T {
    if (value === '') return allowed[0]!;
    if ((allowed as readonly string[]).includes(value)) return value as T;
    throw new Refusal('BAD_REQUEST', `${name} must be one of ${quoteSome(allowed, 20)}, not ${quote(value)}.`);
  }

  /**
   * Returns what puts rows in the order of `sort`, and cuts them to `limit`. Without `sort`, the first key counts; with
   * `-` before it, the last come first. What is not set comes last, in both directions.
   *
   * @throws Refusal, so call it before you ask the fleet for the rows
   */
  list<Row>(
    keys: Readonly<Record<string, keyof Row | ((row: Row) => unknown)>>,
    fallbackLimit: number,
  ): (rows: readonly Row[]) => { readonly rows: readonly Row[]; readonly total: number } {
    const text = this.text('sort');
    const sign = text.startsWith('-') ? -1 : 1;
    const by = keys[this.oneOf('sort', Object.keys(keys), text.replace(/^-/, ''))]!;
    const limit = this.#limit(fallbackLimit);
    return (rows) => {
      const keyed = rows.map((row) => ({
        row,
        key: (typeof by === 'function' ? by(row) : row[by]) as string | number | undefined,
      }));
      keyed.sort((a, b) => {
        if (a.key === b.key) return 0;
        if (a.key === undefined) return 1;
        if (b.key === undefined) return -1;
        return a.key < b.key ? -sign : sign;
      });
      return { rows: keyed.slice(0, limit).map(({ row }) => row), total: rows.length };
    };
  }

  #limit(fallback: number): number {
    const text = this.values.get('limit');
    if (text === null || text === '') return fallback;
    const limit = Number(text);
    if (Number.isInteger(limit) && limit >= 1 && limit <= MAX_ROWS) return limit;
    throw new Refusal('BAD_REQUEST', `limit must be 1 to ${MAX_ROWS}, not ${describeValue(text)}.`);
  }
}

/** Whether one of the texts contains the filter, in small letters or large ones. */
export function contains(filter: string, ...texts: readonly (string | undefined)[]): boolean {
  return filter === '' || texts.some((text) => text?.toLowerCase().includes(filter));
}

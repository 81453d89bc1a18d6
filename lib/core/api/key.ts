import { InvalidLockOptionsError, InvalidResourceError } from './errors.js';
import { describeValue } from './validation.js';
import { quote } from '../util/quoted.js';

/** What may stand in a {@link key}: what is written as one clear text. */
export type KeyValue = string | number | bigint | boolean;

/**
 * A tag for the names of resources. It refuses what an ordinary template string would hide: `order:undefined` is one lock for
 * all requests whose parameter is missing.
 *
 * ```ts
 * @DistributedLock((id: string) => key`order:${id}`)
 * await locks.using(key`order:${order.id}`, work);
 * ```
 *
 * @throws InvalidLockOptionsError for undefined, null, NaN, infinity, a symbol, a function or an object
 * @throws InvalidResourceError for an empty string
 */
export function key(texts: TemplateStringsArray, ...values: readonly KeyValue[]): string {
  if (!Array.isArray(texts?.raw)) {
    throw new InvalidLockOptionsError('key is a tag for template strings: key`order:${id}`.', 'key');
  }
  let name = texts[0]!;
  for (const [index, value] of values.entries()) {
    if (!isClear(value)) throw unclear(texts, index, value);
    name += String(value) + texts[index + 1]!;
  }
  return name;
}

function isClear(value: unknown): boolean {
  if (typeof value === 'number') return Number.isFinite(value);
  return typeof value === 'string' ? value !== '' : typeof value === 'bigint' || typeof value === 'boolean';
}

function unclear(texts: readonly string[], index: number, value: unknown): InvalidLockOptionsError {
  const before = texts[index]!.length > 40 ? `...${texts[index]!.slice(-37)}` : texts[index]!;
  // A client can leave a parameter empty; what else is wrong with it, the program has to mend.
  const Kind = value === '' ? InvalidResourceError : InvalidLockOptionsError;
  return new Kind(
    `Value ${index + 1} of a key, after ${quote(before)}, is ${describeValue(value)}. Different calls would share one lock. ` +
      `Give a non-empty string, a finite number, a bigint or a boolean.`,
    'key',
  );
}

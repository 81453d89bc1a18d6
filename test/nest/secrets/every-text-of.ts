import { format, inspect } from 'node:util';

/** All the ways in which a value comes into a log, and what is behind it: causes, parts, what is not enumerable. */
export function everyTextOf(value: unknown, seen = new Set<unknown>()): string[] {
  if (seen.has(value)) return [];
  seen.add(value);
  const texts = [
    inspect(value),
    inspect(value, { depth: Infinity, showHidden: true, maxStringLength: Infinity, maxArrayLength: Infinity }),
    format('%s %o %O %j', value, value, value, value),
    String(value),
    `${JSON.stringify(value)}`,
  ];
  if (value instanceof Error) {
    texts.push(value.stack ?? '', JSON.stringify(Object.getOwnPropertyDescriptors(value)));
    texts.push(...everyTextOf(value.cause, seen));
  }
  if (value instanceof AggregateError) texts.push(...value.errors.flatMap((error) => everyTextOf(error, seen)));
  return texts;
}

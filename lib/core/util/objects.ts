import { isNativeError } from 'node:util/types';

export function isObject(value: unknown): value is object {
  return value !== null && typeof value === 'object';
}

/** Also one of another realm: in Jest, the errors of Node are. */
export function isError(value: unknown): value is Error {
  return value instanceof Error || isNativeError(value);
}

/** The items in groups of this size, the last of which may be smaller. */
export function chunks<T>(items: readonly T[], size: number): T[][] {
  const parts: T[][] = [];
  for (let index = 0; index < items.length; index += size) parts.push(items.slice(index, index + size));
  return parts;
}

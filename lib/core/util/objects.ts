import { isNativeError } from 'node:util/types';

export function isObject(value: unknown): value is object {
  return value !== null && typeof value === 'object';
}

/** Also one of another realm: in Jest, the errors of Node are. */
export function isError(value: unknown): value is Error {
  return value instanceof Error || isNativeError(value);
}

/**
 * What all copies of this package in the process share, even if it is loaded both as an ES module and as CommonJS.
 *
 * @param name says what it is, and its version: another shape needs another one
 */
export function sharedByCopies<T>(name: string, make: () => T): T {
  const shared = globalThis as { [key: symbol]: unknown };
  return (shared[Symbol.for(`nestjs-redis-lock:${name}`)] ??= make()) as T;
}

/** The items in groups of this size, the last of which may be smaller. */
export function chunks<T>(items: readonly T[], size: number): T[][] {
  const parts: T[][] = [];
  for (let index = 0; index < items.length; index += size) parts.push(items.slice(index, index + size));
  return parts;
}

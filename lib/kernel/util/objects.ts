import { isNativeError } from 'node:util/types';

export function isObject(value: unknown): value is object {
  return value !== null && typeof value === 'object';
}

/** Returns true if `await` waits for it: a promise, or a query of a library. */
export function isThenable(value: unknown): value is PromiseLike<unknown> {
  const isLike = isObject(value) || typeof value === 'function';
  return isLike && typeof (value as { then?: unknown }).then === 'function';
}

/** An object, its prototype, the prototype of that, and so on. */
export function prototypesOf(object: object): object[] {
  const parent = Object.getPrototypeOf(object) as object | null;
  return parent === null ? [object] : [object, ...prototypesOf(parent)];
}

/** Also one of another realm: in Jest, the errors of Node are. */
export function isError(value: unknown): value is Error {
  return value instanceof Error || isNativeError(value);
}

/**
 * Returns an object that all copies of this package in the process share, even if it is loaded both as an ES module and
 * as CommonJS.
 *
 * @param name its name and version: another shape needs another one
 */
export function sharedByCopies<T>(name: string, make: () => T): T {
  const shared = globalThis as { [key: symbol]: unknown };
  return (shared[Symbol.for(`nestjs-redis-lock:${name}`)] ??= make()) as T;
}

/** The same object without the properties that are `undefined`: in events and answers, such a property is not set. */
export function defined<T extends object>(given: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  const entries = Object.entries(given).filter(([, value]) => value !== undefined);
  return Object.fromEntries(entries) as { [K in keyof T]?: Exclude<T[K], undefined> };
}

/**
 * Checks the three entries of a map that were not checked for the longest time, and removes ended ones. Called with
 * each new entry, it reaches all of them: beside n living ones, fewer than n ended ones remain.
 */
export function sweep<K, V>(
  entries: Map<K, V>,
  isOver: (value: V) => boolean,
  remove: (key: K, value: V) => void = (key) => entries.delete(key),
): void {
  for (let looks = 0; looks < 3; looks++) {
    const [oldest] = entries;
    if (oldest === undefined) return;
    if (isOver(oldest[1])) {
      remove(...oldest);
      continue;
    }
    entries.delete(oldest[0]);
    entries.set(...oldest);
  }
}

/** Returns the value of a map for this key, which is made now if there is none. */
export function entryOf<K, V>(
  map: { get(key: K): V | undefined; set(key: K, value: V): unknown },
  key: K,
  make: () => V,
): V {
  const known = map.get(key);
  if (known !== undefined) return known;
  const made = make();
  map.set(key, made);
  return made;
}

/** The items in groups of this size, the last of which may be smaller. */
export function chunks<T>(items: readonly T[], size: number): T[][] {
  const parts: T[][] = [];
  for (let index = 0; index < items.length; index += size) parts.push(items.slice(index, index + size));
  return parts;
}

/**
 * Makes `instanceof` work across copies of this package. A process has two copies when it loads the package both as an
 * ES module and as CommonJS. An object of the other copy counts if its class was branded with the same name. Subclasses
 * that an application declares keep the plain meaning of `instanceof`.
 *
 * @param classes by name. A bundler may rename a class, but not the key
 */
export function brand(classes: Readonly<Record<string, { readonly prototype: object }>>): void {
  for (const [name, branded] of Object.entries(classes)) {
    const mark = Symbol.for(`nestjs-redis-lock:${name}`);
    Object.defineProperty(branded.prototype, mark, { value: true });
    Object.defineProperty(branded, Symbol.hasInstance, {
      value(this: unknown, value: unknown): boolean {
        // A subclass inherits this method.
        if (this !== branded) return Function.prototype[Symbol.hasInstance].call(this as () => void, value);
        return value !== null && typeof value === 'object' && mark in value;
      },
    });
  }
}

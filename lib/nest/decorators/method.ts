import 'reflect-metadata';
import { InvalidLockOptionsError } from '../../core/api/errors.js';
import { describeValue } from '../../core/api/validation.js';

/** Any method that a decorator may wrap. */
export type AsyncMethod = (...args: never[]) => Promise<unknown>;

/**
 * Replaces a method by one that looks the same to everybody who reflects on it: name, length, and every metadata key, so
 * that `@Cron`, `@Get`, `@UseGuards` and the like work above and below.
 */
export function wrapMethod(
  descriptor: PropertyDescriptor | undefined,
  where: string,
  wrap: (original: (...args: unknown[]) => unknown) => (this: object, ...args: unknown[]) => unknown,
): void {
  const original = descriptor?.value as unknown;
  // A property, even one with an arrow function in it, has no descriptor.
  if (!descriptor || typeof original !== 'function') {
    throw new InvalidLockOptionsError(
      `${where} is not a method, but ${describeValue(original)}. Put the decorator on a method.`,
      'decorator',
    );
  }
  const wrapped = wrap(original as (...args: unknown[]) => unknown);
  for (const key of Reflect.getOwnMetadataKeys(original)) {
    Reflect.defineMetadata(key, Reflect.getOwnMetadata(key, original), wrapped);
  }
  Object.defineProperty(wrapped, 'name', { value: original.name, configurable: true });
  Object.defineProperty(wrapped, 'length', { value: original.length, configurable: true });
  descriptor.value = wrapped;
}

/**
 * `Class.method`, for messages.
 *
 * @throws InvalidLockOptionsError where a class is decorated in place of a method
 */
export function describeMethod(target: object, propertyKey: string | symbol): string {
  if (propertyKey === undefined) {
    throw new InvalidLockOptionsError(
      `${(target as { name: string }).name} is a class, and the decorator is for methods: give each of them its own.`,
      'decorator',
    );
  }
  return `${target.constructor.name}.${String(propertyKey)}`;
}

import { Inject } from '@nestjs/common';
import 'reflect-metadata';
import { InvalidLockOptionsError, LockModuleMissingError } from '../../core/api/errors.js';
import { describeValue } from '../../core/api/validation.js';
import type { RedisLockService } from '../redis-lock.service.js';
import { DEFAULT_NAME, getRedisLockToken } from '../tokens.js';

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

/**
 * Declares the lock service as an injected property of a class, so that Nest puts the right one on every instance: of any
 * scope, in subclasses, and with several applications in one process. Without the module, the application does not boot.
 *
 * @returns how a method of the class gets at it
 */
export function declareLockService(
  prototype: object,
  name: string = DEFAULT_NAME,
): (instance: object | undefined, where: string) => RedisLockService {
  if (typeof prototype === 'function') {
    throw new InvalidLockOptionsError(
      `A static method of ${prototype.name} cannot be locked: Nest injects the lock service into instances. Make it a method of instances.`,
      'decorator',
    );
  }
  const property = Symbol.for(describeProperty(name));
  if (!Reflect.hasMetadata(property, prototype)) {
    Inject(getRedisLockToken(name))(prototype, property);
    Reflect.defineMetadata(property, true, prototype);
  }
  return (instance, where) => {
    const service = (instance as { [property]?: RedisLockService } | undefined)?.[property];
    if (service) return service;
    throw new LockModuleMissingError(
      (instance === undefined
        ? `${where} was called without its object: call it as a method, or bind it. `
        : `${where} was called on an object that has no lock service. `) +
        `Nest injects the lock service after the constructor: let Nest create the object (as a provider or controller of ` +
        `a module, not by new or in a useFactory), and call the method after the constructor. In a test, use ` +
        `Test.createTestingModule with RedisLockModule.forRoot({ connection: 'memory:' }).`,
      '',
    );
  };
}

/** Nest shows this when it cannot inject the property. */
function describeProperty(name: string): string {
  return name === DEFAULT_NAME
    ? 'RedisLockService: import RedisLockModule.forRoot({ ... }) in your root module'
    : `RedisLockService ${JSON.stringify(name)}: import RedisLockModule.forRoot({ name: ${JSON.stringify(name)}, ... }) in your root module`;
}

import { Inject } from '@nestjs/common';
import 'reflect-metadata';
import { InvalidLockOptionsError, LockModuleMissingError } from '../../core/api/errors.js';
import type { RedisLockService } from '../redis-lock.service.js';
import { DEFAULT_NAME, getRedisLockToken } from '../tokens.js';

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

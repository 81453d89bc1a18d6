import { Inject } from '@nestjs/common';

/** The name of the registration that is meant where none is given. */
export const DEFAULT_NAME = 'default';

/**
 * The injection token of a lock service.
 *
 * @param name the `name` it was registered by; left out for the default one
 */
export function getRedisLockToken(name: string = DEFAULT_NAME): string {
  // A string, and not the class: it is the same in the ES module and the CommonJS copy of this package.
  return `RedisLockService:${name}`;
}

export function getRedisLockOptionsToken(name: string = DEFAULT_NAME): string {
  return `RedisLockModuleOptions:${name}`;
}

export function getRedisLockRegistrationToken(name: string = DEFAULT_NAME): string {
  return `RedisLockModuleRegistration:${name}`;
}

/**
 * Injects the lock service that was registered by this name, or the default one.
 *
 * ```ts
 * constructor(@InjectRedisLock('billing') private readonly locks: RedisLockService) {}
 * ```
 */
export function InjectRedisLock(name?: string): PropertyDecorator & ParameterDecorator {
  return Inject(getRedisLockToken(name));
}

import { Inject } from '@nestjs/common';

/** The name of a registration without a name of its own. */
export const DEFAULT_NAME = 'default';

/**
 * Returns the injection token of a lock service.
 *
 * @param name the `service` of its registration; without it, the default one
 */
export function getRedisLockToken(name: string = DEFAULT_NAME): string {
  // A string, and not the class: the ES module and the CommonJS copy of this package have the same one.
  return `RedisLockService:${name}`;
}

export function getRedisLockOptionsToken(name: string = DEFAULT_NAME): string {
  return `RedisLockModuleOptions:${name}`;
}

export function getRedisLockRegistrationToken(name: string = DEFAULT_NAME): string {
  return `RedisLockModuleRegistration:${name}`;
}

/**
 * What a test puts in place of the stores of every registration; `null` without a test. A symbol of the process, so
 * that both copies of this package have the same one.
 */
export const TEST_STORES = Symbol.for('nestjs-redis-lock:test-stores:1');

/**
 * Returns the injection token of the `SingletonJobs` of a lock service.
 *
 * @param name the `service` of its registration; without it, the default one
 */
export function getSingletonJobsToken(name: string = DEFAULT_NAME): string {
  return `SingletonJobs:${name}`;
}

/**
 * Injects the `SingletonJobs` of the lock service with this name, or of the default one.
 *
 * ```ts
 * constructor(@InjectSingletonJobs('billing') private readonly jobs: SingletonJobs) {}
 * ```
 */
export function InjectSingletonJobs(name?: string): PropertyDecorator & ParameterDecorator {
  return Inject(getSingletonJobsToken(name));
}

/**
 * Injects the lock service with this name, or the default one.
 *
 * ```ts
 * constructor(@InjectRedisLock('billing') private readonly locks: RedisLockService) {}
 * ```
 */
export function InjectRedisLock(name?: string): PropertyDecorator & ParameterDecorator {
  return Inject(getRedisLockToken(name));
}

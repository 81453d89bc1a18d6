import { Inject, type Type } from '@nestjs/common';
import { sharedByCopies } from '../kernel/util/objects.js';

/** The name of a registration without a name of its own. */
export const DEFAULT_NAME = 'default';

/**
 * Returns the injection token of a lock service.
 *
 * @param name the `service` of its registration; without it, the default one
 */
export function getRedisLockToken(name: string = DEFAULT_NAME): string {
  // A string, not the class, because the ES module and the CommonJS copy of this package must share it.
  return `RedisLockService:${name}`;
}

export function getRedisLockOptionsToken(name: string = DEFAULT_NAME): string {
  return `RedisLockModuleOptions:${name}`;
}

export function getRedisLockRegistrationToken(name: string = DEFAULT_NAME): string {
  return `RedisLockModuleRegistration:${name}`;
}

/**
 * The replacement for the stores of every registration in a test, otherwise `null`. A symbol of the process, so that
 * both copies of this package share it.
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

/**
 * The classes that Nest injects, of each copy of this package that the process has loaded, with their names. Nest
 * injects by class, and a CommonJS library in an ES module application has classes of its own.
 */
const names = sharedByCopies('injected-classes:1', () => new Map<Type, string>());

/** @param classes by their names, which are the same in every copy: a minifier may rename the class itself */
export function addInjected(classes: Readonly<Record<string, unknown>>): void {
  for (const [name, each] of Object.entries(classes)) names.set(each as Type, name);
}

/** Returns this class in the other copies that are loaded now. */
export function inOtherCopies(own: unknown): Type[] {
  const ownName = names.get(own as Type);
  return [...names].flatMap(([each, name]) => (name === ownName && each !== own ? [each] : []));
}

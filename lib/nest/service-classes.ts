import type { Type } from '@nestjs/common';

const STORAGE_KEY = Symbol.for('nestjs-redis-lock:service-classes:1');
const shared = globalThis as { [STORAGE_KEY]?: Set<Type> };

/**
 * The `RedisLockService` of each copy of this package that the process has loaded. Nest injects by class, and a
 * CommonJS library in an ES module application has a class of its own.
 */
const serviceClasses = (shared[STORAGE_KEY] ??= new Set());

export function addServiceClass(serviceClass: unknown): void {
  serviceClasses.add(serviceClass as Type);
}

/** Returns the classes of the other copies that are loaded now. */
export function otherServiceClasses(own: unknown): Type[] {
  return [...serviceClasses].filter((each) => each !== own);
}

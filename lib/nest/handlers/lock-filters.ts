import type { DiscoveryService } from '@nestjs/core';
import 'reflect-metadata';
import { LockError } from '../../core/api/errors.js';
import { LockExceptionFilter } from './lock-exception.filter.js';

/** The keys under which Nest keeps the filters of a class or a method, and what a filter catches. */
const FILTERS = '__exceptionFilters__';
const CAUGHT = '__filterCatchExceptions__';

/** Whether the `LockExceptionFilter` is an `APP_FILTER`. Filters of `useGlobalFilters` are not seen: Nest hides them. */
export function hasGlobalLockFilter(providers: ReturnType<DiscoveryService['getProviders']>): boolean {
  return providers.some(({ token, instance, metatype }) => {
    if (!String(token).startsWith('APP_FILTER')) return false;
    return instance instanceof LockExceptionFilter || metatype === LockExceptionFilter;
  });
}

/** Whether a filter on this class or method catches lock errors: those alone, or with others. */
export function answersLockErrors(decorated: object): boolean {
  const filters = (Reflect.getMetadata(FILTERS, decorated) ?? []) as object[];
  return filters.some((filter) => {
    const filterClass = typeof filter === 'function' ? filter : filter.constructor;
    const caught = (Reflect.getMetadata(CAUGHT, filterClass) ?? []) as (new () => unknown)[];
    return caught.length === 0 || caught.some((type) => isKindOf(LockError, type) || isKindOf(type, LockError));
  });
}

function isKindOf(type: object, base: object): boolean {
  for (let each: object | null = type; each; each = Object.getPrototypeOf(each) as object | null) {
    if (each === base) return true;
  }
  return false;
}

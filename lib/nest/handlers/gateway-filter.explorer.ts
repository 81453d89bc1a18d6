import { Logger, type OnModuleInit, type Type } from '@nestjs/common';
import type { DiscoveryService } from '@nestjs/core';
import { LockError } from '../../core/api/errors.js';
import { describeMethod } from '../decorators/method.js';
import { hasMetadataOf, ON_GATEWAYS } from '../request/known-handlers.js';
import { DEFAULT_NAME } from '../tokens.js';
import { lockedMethodsOf } from '../transactions/transaction-order.js';
import { handlerLocksOf, lockedHandlersOf } from './handler-locks.js';
import { LockExceptionFilter } from './lock-exception.filter.js';

/** The keys under which Nest keeps the filters of a class or a method, and what a filter catches. */
const FILTERS = '__exceptionFilters__';
const CAUGHT = '__filterCatchExceptions__';

type InstanceWrapper = ReturnType<DiscoveryService['getProviders']>[number];

/**
 * Warns of locked messages of gateways that only an `APP_FILTER` would answer for, because Nest runs no global filters
 * there. One explorer for each lock service. It cannot see filters of `useGlobalFilters`, because Nest does not inject
 * them.
 */
export class GatewayFilterExplorer implements OnModuleInit {
  readonly #logger = new Logger('RedisLockModule');
  readonly #discovery: DiscoveryService;
  readonly #lockService: string;

  constructor(discovery: DiscoveryService, lockService: string) {
    this.#discovery = discovery;
    this.#lockService = lockService;
  }

  onModuleInit(): void {
    const providers = this.#discovery.getProviders();
    if (!providers.some(isGlobalLockFilter)) return;
    const gateways = new Set(providers.map(({ metatype }) => metatype).filter(isClass));
    for (const gateway of gateways) this.#check(gateway);
  }

  #check(gateway: Type): void {
    if (answersLockErrors(gateway)) return;
    const prototype = gateway.prototype as Record<string | symbol, object>;
    const unanswered = [...this.#lockedMethodsOf(prototype)].filter((name) => {
      const method = prototype[name]!;
      return hasMetadataOf(method, ON_GATEWAYS) && !answersLockErrors(method);
    });
    if (unanswered.length === 0) return;
    const names = unanswered.map((name) => describeMethod(prototype, name)).join(', ');
    this.#logger.warn(
      `No exception filter answers the lock errors of ${names}: Nest runs no global filters for gateways, so the ` +
        `LockExceptionFilter in APP_FILTER does not reach them. Put @UseFilters(LockExceptionFilter) on ` +
        `${gateway.name}. See docs/guide/with-websockets.md.`,
    );
  }

  /** The names of the methods that this lock service locks, inherited ones too. */
  #lockedMethodsOf(prototype: Record<string | symbol, object>): Set<string | symbol> {
    const isOurs = ({ lockService = DEFAULT_NAME }: { lockService?: string | undefined }): boolean =>
      lockService === this.#lockService;
    const names = lockedHandlersOf(prototype).filter((name) => handlerLocksOf(prototype[name]!)?.plans.some(isOurs));
    for (let each: object | null = prototype; each; each = Object.getPrototypeOf(each) as object | null) {
      for (const method of lockedMethodsOf(each)) if (isOurs(method)) names.push(method.name);
    }
    return new Set(names);
  }
}

function isGlobalLockFilter({ token, instance, metatype }: InstanceWrapper): boolean {
  if (!String(token).startsWith('APP_FILTER')) return false;
  return instance instanceof LockExceptionFilter || metatype === LockExceptionFilter;
}

/** Whether a filter on this class or method catches lock errors: those alone, or with others. */
function answersLockErrors(decorated: object): boolean {
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

function isClass(metatype: unknown): metatype is Type {
  return typeof metatype === 'function' && metatype.prototype !== undefined;
}

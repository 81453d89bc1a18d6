import { Logger, type OnModuleInit, type Type } from '@nestjs/common';
import type { DiscoveryService } from '@nestjs/core';
import { describeMethod } from '../decorators/method.js';
import { hasMetadataOf, ON_GATEWAYS } from '../request/known-handlers.js';
import { methodsLockedBy } from './handler-locks.js';
import { answersLockErrors, hasGlobalLockFilter } from './lock-filters.js';

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
    if (!hasGlobalLockFilter(providers)) return;
    const gateways = new Set(providers.map(({ metatype }) => metatype).filter(isClass));
    for (const gateway of gateways) this.#check(gateway);
  }

  #check(gateway: Type): void {
    if (answersLockErrors(gateway)) return;
    const prototype = gateway.prototype as Record<string | symbol, object>;
    const unanswered = methodsLockedBy(this.#lockService, prototype).filter((name) => {
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
}

function isClass(metatype: unknown): metatype is Type {
  return typeof metatype === 'function' && metatype.prototype !== undefined;
}

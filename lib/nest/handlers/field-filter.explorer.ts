import { Logger, type OnModuleInit } from '@nestjs/common';
import type { DiscoveryService } from '@nestjs/core';
import { isObject } from '../../core/util/objects.js';
import { describeMethod } from '../decorators/method.js';
import { FIELD_RESOLVERS, hasMetadataOf } from '../request/known-handlers.js';
import type { InstanceWrapper } from '../prototype-of.js';
import { runsForFields, schemasWith } from './graphql-schemas.js';
import { methodsLockedBy } from './handler-locks.js';
import { answersLockErrors, hasGlobalLockFilter } from './lock-filters.js';
import { maskLockErrors } from './mask-lock-errors.js';

/**
 * Warns of locked field resolvers of GraphQL whose lock errors a filter should answer, but does not: Nest runs filters
 * for field resolvers only where the options of the schema say so. One explorer for each lock service.
 */
export class FieldFilterExplorer implements OnModuleInit {
  readonly #logger = new Logger('RedisLockModule');
  readonly #discovery: DiscoveryService;
  readonly #lockService: string;
  /** The methods that were warned of: one class may be a provider of several modules. */
  readonly #warnedOf = new Set<string>();

  constructor(discovery: DiscoveryService, lockService: string) {
    this.#discovery = discovery;
    this.#lockService = lockService;
  }

  onModuleInit(): void {
    const providers = this.#discovery.getProviders();
    const filtersAll = hasGlobalLockFilter(providers);
    for (const { metatype, host } of providers) {
      if (typeof metatype !== 'function' || !isObject(metatype.prototype)) continue;
      const unanswered = this.#fieldsOf(metatype, filtersAll);
      if (unanswered.length > 0 && showsErrors(host, providers)) unanswered.forEach((where) => this.#warn(where));
    }
  }

  /** The locked field resolvers of a class that a filter should answer for. */
  #fieldsOf(resolver: NonNullable<InstanceWrapper['metatype']>, filtersAll: boolean): readonly string[] {
    const prototype = resolver.prototype as Record<string | symbol, object>;
    const filtersClass = filtersAll || answersLockErrors(resolver);
    return methodsLockedBy(this.#lockService, prototype)
      .filter((name) => {
        const method = prototype[name]!;
        return hasMetadataOf(method, FIELD_RESOLVERS) && (filtersClass || answersLockErrors(method));
      })
      .map((name) => describeMethod(prototype, name));
  }

  #warn(where: string): void {
    if (this.#warnedOf.has(where)) return;
    this.#warnedOf.add(where);
    this.#logger.warn(
      `No exception filter answers the lock errors of ${where}: the method is a field resolver, and GraphQLModule runs ` +
        `no filters for field resolvers. A client would be sent the message of the error, with the resource and ` +
        `perhaps the address of Redis. Set the option fieldResolverEnhancers: ['filters'] of GraphQLModule, or ` +
        `transformSchema: maskLockErrors. See docs/guide/with-graphql.md.`,
    );
  }
}

/** Whether a GraphQL schema with this module sends the errors of field resolvers as they are. */
function showsErrors(module: InstanceWrapper['host'], providers: InstanceWrapper[]): boolean {
  return schemasWith(module?.metatype, providers).some(
    (schema) => !runsForFields(schema, 'filters') && schema.transformSchema !== maskLockErrors,
  );
}

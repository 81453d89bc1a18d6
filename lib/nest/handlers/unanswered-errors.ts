import 'reflect-metadata';
import { Logger, type Type } from '@nestjs/common';
import { LockError } from '../../kernel/api/errors.js';
import { isObject, prototypesOf } from '../../kernel/util/objects.js';
import { describeMethod } from '../decorators/method.js';
import { FIELD_RESOLVERS, hasMetadataOf, ON_GATEWAYS } from '../decorators/known-handlers.js';
import type { InstanceWrapper, Scan } from '../scan.js';
import { LockErrorOrAbort } from './answers.js';
import { methodsLockedBy } from './handler-locks.js';
import { LockExceptionFilter } from './lock-exception.filter.js';
import { maskLockErrors } from './mask-lock-errors.js';

/** The token under which `@nestjs/graphql` provides its options. */
const GRAPHQL_OPTIONS = 'GqlModuleOptions';

/** The part of the options of a `GraphQLModule` that is used here. */
interface GraphqlOptions {
  /** The modules whose resolvers are served. Undefined or an empty list: all. */
  readonly include?: readonly unknown[];
  readonly fieldResolverEnhancers?: readonly string[];
  readonly transformSchema?: unknown;
}

/** Returns the options of each GraphQL schema that serves the resolvers of a module. */
export function schemasWith(module: unknown, providers: readonly InstanceWrapper[]): readonly GraphqlOptions[] {
  return providers
    .filter(({ token }) => token === GRAPHQL_OPTIONS)
    .map(({ instance }) => (instance ?? {}) as GraphqlOptions)
    .filter(({ include }) => !include?.length || include.includes(module));
}

/** Returns true if Nest runs interceptors or filters for the field resolvers of a schema. */
export function runsForFields({ fieldResolverEnhancers }: GraphqlOptions, what: 'interceptors' | 'filters'): boolean {
  return fieldResolverEnhancers?.includes(what) === true;
}

type HandlerMethods = Record<string | symbol, object>;

/**
 * Warns about locked field resolvers and gateway messages without a filter for lock errors: Nest runs filters for field
 * resolvers only if the options of the schema request it, and an `APP_FILTER` for no gateway. Filters of
 * `useGlobalFilters` are invisible, because Nest does not inject them.
 */
export function warnOfUnansweredErrors(scan: Scan): void {
  const { providers } = scan;
  const filtersAll = hasGlobalLockFilter(providers);
  // One class may be a provider of several modules.
  const lines = new Set<string>();
  for (const { metatype, host } of providers) {
    if (!isClass(metatype)) continue;
    const fields = lockedMethods(metatype, FIELD_RESOLVERS, scan).filter(({ isAnswered }) => filtersAll || isAnswered);
    if (fields.length > 0 && showsErrors(host, providers)) for (const { where } of fields) lines.add(ofField(where));
    // Nest runs no global filters for gateways.
    const messages = filtersAll ? lockedMethods(metatype, ON_GATEWAYS, scan).filter((each) => !each.isAnswered) : [];
    if (messages.length > 0) lines.add(ofMessages(messages, metatype));
  }
  const logger = new Logger('RedisLockModule');
  for (const line of lines) logger.warn(line);
}

/** A locked method, and whether a filter of its own or of its class answers lock errors. */
interface LockedHere {
  readonly where: string;
  readonly isAnswered: boolean;
}

/** Returns the locked methods of a class that have one of these metadata keys. */
function lockedMethods(type: Type, keys: readonly string[], scan: Scan): LockedHere[] {
  const prototype = type.prototype as HandlerMethods;
  const names = methodsLockedBy(scan, prototype).filter((name) => hasMetadataOf(prototype[name]!, keys));
  return names.map((name) => ({
    where: describeMethod(prototype, name),
    isAnswered: answersLockErrors(type) || answersLockErrors(prototype[name]!),
  }));
}

/** Returns true if a GraphQL schema with this module sends the errors of field resolvers unmasked. */
function showsErrors(module: InstanceWrapper['host'], providers: Scan['providers']): boolean {
  return schemasWith(module?.metatype, providers).some(
    (schema) => !runsForFields(schema, 'filters') && schema.transformSchema !== maskLockErrors,
  );
}

function isClass(metatype: InstanceWrapper['metatype']): metatype is Type {
  return typeof metatype === 'function' && isObject(metatype.prototype);
}

function ofField(where: string): string {
  return (
    `No exception filter answers the lock errors of ${where}: the method is a field resolver, and GraphQLModule runs ` +
    `no filters for field resolvers. A client would be sent the message of the error, with the resource and ` +
    `perhaps the address of Redis. Set the option fieldResolverEnhancers: ['filters'] of GraphQLModule, or ` +
    `transformSchema: maskLockErrors. See docs/guide/with-graphql.md.`
  );
}

function ofMessages(messages: readonly Pick<LockedHere, 'where'>[], gateway: Type): string {
  return (
    `No exception filter answers the lock errors of ${messages.map(({ where }) => where).join(', ')}: Nest runs no global filters for gateways, ` +
    `so the LockExceptionFilter in APP_FILTER does not reach them. Put @UseFilters(LockExceptionFilter) on ` +
    `${gateway.name}. See docs/guide/with-websockets.md.`
  );
}

/** The metadata keys of Nest for the filters of a class or a method, and for the errors that a filter catches. */
const FILTERS = '__exceptionFilters__';
const CAUGHT = '__filterCatchExceptions__';

/** Returns true if the `LockExceptionFilter` is an `APP_FILTER`. Nest hides filters of `useGlobalFilters`. */
function hasGlobalLockFilter(providers: Scan['providers']): boolean {
  return providers.some(({ token, instance, metatype }) => {
    if (!String(token).startsWith('APP_FILTER')) return false;
    return instance instanceof LockExceptionFilter || metatype === LockExceptionFilter;
  });
}

/** Returns true if a filter on this class or method catches lock errors: only these, or others too. */
function answersLockErrors(decorated: object): boolean {
  const filters = (Reflect.getMetadata(FILTERS, decorated) ?? []) as object[];
  return filters.some((filter) => {
    const filterClass = typeof filter === 'function' ? filter : filter.constructor;
    const caught = (Reflect.getMetadata(CAUGHT, filterClass) ?? []) as (abstract new () => unknown)[];
    return (
      caught.length === 0 ||
      caught.some((type) => type === LockErrorOrAbort || isKindOf(LockError, type) || isKindOf(type, LockError))
    );
  });
}

function isKindOf(type: object, base: object): boolean {
  return prototypesOf(type).includes(base);
}

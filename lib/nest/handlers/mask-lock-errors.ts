import type { ArgumentsHost } from '@nestjs/common';
import { InvalidLockOptionsError } from '../../kernel/api/errors.js';
import { isObject, isThenable } from '../../kernel/util/objects.js';
import { lockErrorOf } from './answers.js';
import { LockExceptionFilter } from './lock-exception.filter.js';

/** The part of a schema of `graphql` that is used here, because this package does not depend on it. */
interface Schema {
  getTypeMap(): Record<string, object>;
}

interface Field {
  readonly name: string;
  resolve?: Resolver | undefined;
  subscribe?: Resolver | undefined;
}

type Resolver = (this: unknown, source: unknown, ...rest: unknown[]) => unknown;

/** Returns the error for the client in place of another. */
type Mask = (error: unknown) => unknown;

/** The part of the host that the filter uses for GraphQL. */
const IN_GRAPHQL = { getType: () => 'graphql' } as unknown as ArgumentsHost;

/**
 * Makes the resolvers of a GraphQL schema report lock errors like the `LockExceptionFilter` does, so that no message
 * with a resource or an address reaches a client. Pass it as `transformSchema` to `GraphQLModule`, with any driver.
 *
 * It also covers errors that Nest's filters never get: from field resolvers without
 * `fieldResolverEnhancers: ['filters']`, from promises in plain properties and in lists, and from a subscription after
 * its first event. Other errors pass through unchanged.
 *
 * A field without a resolver gets the default resolver of `graphql`, so a `fieldResolver` of the driver is ignored.
 * Resolvers that are set later, such as Mercurius `loaders`, are not covered.
 *
 * ```ts
 * GraphQLModule.forRoot<ApolloDriverConfig>({ driver: ApolloDriver, transformSchema: maskLockErrors });
 * ```
 *
 * @returns the same schema
 * @throws InvalidLockOptionsError if it isn't a schema
 */
export function maskLockErrors<S extends { getTypeMap(): object }>(schema: S): S {
  if (typeof (schema as S | undefined)?.getTypeMap !== 'function') {
    throw new InvalidLockOptionsError(
      'maskLockErrors takes a schema of the package graphql. Set transformSchema: maskLockErrors of GraphQLModule.',
      'transformSchema',
    );
  }
  const filter = new LockExceptionFilter();
  const mask: Mask = (error) => {
    const lockError = lockErrorOf(error);
    if (!lockError) return error;
    try {
      // Logs it for the operator.
      return void filter.catch(lockError, IN_GRAPHQL);
    } catch (answer) {
      return answer;
    }
  };
  for (const [name, type] of Object.entries((schema as unknown as Schema).getTypeMap())) {
    if (name.startsWith('__') || !isObjectType(type)) continue;
    for (const field of Object.values(type.getFields())) {
      field.resolve = maskedResolver(field.resolve ?? propertyOf(field.name), mask);
      if (field.subscribe) field.subscribe = maskedResolver(field.subscribe, mask);
    }
  }
  return schema;
}

/** Compares names, because there may be several copies of `graphql`. */
function isObjectType(type: object): type is { getFields(): Record<string, Field> } {
  return Object.prototype.toString.call(type) === '[object GraphQLObjectType]';
}

/** The default resolver of `graphql`. */
function propertyOf(name: string): Resolver {
  return (source, ...rest) => {
    if (source === null || (typeof source !== 'object' && typeof source !== 'function')) return undefined;
    const value = (source as Record<string, unknown>)[name];
    return typeof value === 'function' ? (value.call(source, ...rest) as unknown) : value;
  };
}

function maskedResolver(resolve: Resolver, mask: Mask): Resolver {
  return function (this: unknown, ...args) {
    try {
      return maskedValue(resolve.apply(this, args), mask);
    } catch (error) {
      throw mask(error);
    }
  };
}

/** Returns the value with all errors of its promises and events masked. */
function maskedValue(value: unknown, mask: Mask): unknown {
  if (!isObject(value)) return value;
  if (isThenable(value)) {
    return value.then(
      (settled) => maskedValue(settled, mask),
      (error: unknown) => {
        throw mask(error);
      },
    );
  }
  if (Array.isArray(value)) return value.some(mayFail) ? value.map((each) => maskedValue(each, mask)) : value;
  return Symbol.asyncIterator in value ? maskedEvents(value as AsyncIterable<unknown>, mask) : value;
}

/** Masks the events of a subscription. A generator would let `return()` wait for an event that may never arrive. */
function maskedEvents(events: AsyncIterable<unknown>, mask: Mask): AsyncIterableIterator<unknown> {
  const iterator = events[Symbol.asyncIterator]();
  const masked = async <T>(call: () => Promise<T>): Promise<T> => {
    try {
      return await call();
    } catch (error) {
      throw mask(error);
    }
  };
  return {
    next: () => masked(() => iterator.next()),
    ...(iterator.return && { return: (value?: unknown) => masked(() => iterator.return!(value)) }),
    ...(iterator.throw && { throw: (error?: unknown) => masked(() => iterator.throw!(error)) }),
    [Symbol.asyncIterator]() {
      return this;
    },
  };
}

/** Returns true if an element of a list may still fail. */
function mayFail(element: unknown): boolean {
  return isObject(element) && (Array.isArray(element) || isThenable(element));
}

import { Logger } from '@nestjs/common';
import { InvalidLockOptionsError } from '../../kernel/api/errors.js';
import { runsForFields, schemasWith } from './unanswered-errors.js';
import { handlerLocksOf, hasLostItsLocks, lockedHandlersOf } from './handler-locks.js';
import {
  FIELD_RESOLVERS,
  hasMetadataOf,
  mayBeHandler,
  OF_OTHER_PACKAGES,
  ON_CONTROLLERS,
  ON_GATEWAYS,
  scheduleDecoratorOf,
} from '../decorators/known-handlers.js';
import { describeMethod } from '../decorators/method.js';
import { type InstanceWrapper, prototypeOf, type Scan } from '../scan.js';

const ANYWHERE = [...ON_GATEWAYS, ...OF_OTHER_PACKAGES];

/**
 * Refuses methods with `@LockHandler` for which Nest certainly runs no interceptors, because no lock would be held.
 * Warns if that is uncertain.
 */
export function checkHandlers(scan: Scan): void {
  new HandlerCheck(scan).run();
}

class HandlerCheck {
  readonly #logger = new Logger('RedisLockModule');
  /** The handler methods. A controller may also be a provider, for others to inject. */
  readonly #handlers = new Set<object>();
  /** The methods with a logged warning: one class may be a provider of several modules. */
  readonly #warnedOf = new Set<string>();

  constructor(private readonly scan: Scan) {}

  run(): void {
    for (const wrapper of this.scan.controllers) this.#checkClass(wrapper, [...ON_CONTROLLERS, ...ANYWHERE]);
    for (const wrapper of this.scan.providers) this.#checkClass(wrapper, ANYWHERE);
  }

  #checkClass(wrapper: InstanceWrapper, known: readonly string[]): void {
    const prototype = prototypeOf(wrapper);
    if (!prototype) return;
    for (const name of lockedHandlersOf(prototype)) this.#check(prototype, name, known, wrapper.host?.metatype);
  }

  #check(prototype: object, name: string | symbol, known: readonly string[], module: unknown): void {
    const method = (prototype as Record<string | symbol, object>)[name]!;
    // A test may replace it by a mock, which is no handler.
    if (hasMetadataOf(method, known) && hasLostItsLocks(prototype, name)) {
      throw neverRuns(
        describeMethod(prototype, name),
        'a decorator above it has replaced the method, and has dropped the metadata of the decorators below, ' +
          'such as guards and pipes. Put that decorator below all others, or let it copy the metadata',
      );
    }
    // A subclass may override the method without the decorator.
    const plans = handlerLocksOf(method)?.plans ?? [];
    if (!plans.some(this.scan.isOurs)) return;
    const where = describeMethod(prototype, name);
    if (hasMetadataOf(method, FIELD_RESOLVERS)) return this.#checkFieldResolver(where, module);
    if (hasMetadataOf(method, known)) return void this.#handlers.add(method);
    if (this.#handlers.has(method) || this.#warnedOf.has(where)) return;
    if (hasMetadataOf(method, ON_CONTROLLERS)) {
      throw neverRuns(
        where,
        'the method is a route or a message pattern, but its class is a provider. Add the class to the controllers ' +
          'of its module',
      );
    }
    if (!mayBeHandler(prototype.constructor, method)) {
      const schedule = scheduleDecoratorOf(method);
      if (schedule !== undefined) {
        throw neverRuns(
          where,
          `@nestjs/schedule calls the method, and no request does. To run each tick on one instance, use ` +
            `@Singleton${schedule} of nestjs-redis-lock/schedule in place of both`,
        );
      }
      throw neverRuns(
        where,
        'no decorator makes the method a route or a message pattern of a controller, a message of a gateway, a query ' +
          'or a mutation, and Nest runs interceptors only for these. Add such a decorator, or use @DistributedLock, ' +
          'which locks every call of the method',
      );
    }
    this.#warnedOf.add(where);
    this.#logger.warn(
      `${where} has @LockHandler, but Nest is not known to run interceptors for it: it is not a route of a ` +
        `controller, a message pattern, a message of a gateway, a query or a mutation. No lock is held in that case. ` +
        `Ignore this warning if one of your modules runs interceptors for it, like the modules for RabbitMQ, Discord ` +
        `and Telegram. Otherwise use @DistributedLock, which locks every call of the method.`,
    );
  }

  /** @throws InvalidLockOptionsError if a GraphQL schema with this module runs no interceptors for field resolvers */
  #checkFieldResolver(where: string, module: unknown): void {
    const schemas = schemasWith(module, this.scan.providers);
    if (schemas.length > 0 && schemas.every((schema) => runsForFields(schema, 'interceptors'))) return;
    throw neverRuns(
      where,
      'the method is a field resolver, and GraphQLModule runs no interceptors for field resolvers. Set its option ' +
        "fieldResolverEnhancers: ['interceptors'], or use @DistributedLock",
    );
  }
}

function neverRuns(where: string, why: string): InvalidLockOptionsError {
  return new InvalidLockOptionsError(`${where} has @LockHandler, which would never run: ${why}.`, 'decorator');
}

import 'reflect-metadata';

/** The metadata keys that Nest looks for only in controllers: routes and message patterns. */
export const ON_CONTROLLERS = ['path', 'microservices:pattern'];

/** Metadata keys of gateways. */
export const ON_GATEWAYS = ['websockets:message_mapping'];

/** Metadata keys of GraphQL: queries, mutations and subscriptions. */
export const ON_RESOLVERS = ['graphql:resolver_type'];

/** Metadata keys of other packages: GraphQL; handlers of RabbitMQ and Telegram. */
export const OF_OTHER_PACKAGES = [...ON_RESOLVERS, 'RABBIT_HANDLER', 'LISTENERS_METADATA', 'WIZARD_STEP_METADATA'];

/** Metadata keys of methods that `@nestjs/graphql` runs without interceptors, unless its options request them. */
export const FIELD_RESOLVERS = ['graphql:resolve_property', 'graphql:resolve_reference'];

export type ScheduleDecorator = 'Cron' | 'Interval' | 'Timeout';

/** The metadata keys of the decorators of `@nestjs/schedule`. */
const SCHEDULES: readonly (readonly [string, ScheduleDecorator])[] = [
  ['SCHEDULE_CRON_OPTIONS', 'Cron'],
  ['SCHEDULE_INTERVAL_OPTIONS', 'Interval'],
  ['SCHEDULE_TIMEOUT_OPTIONS', 'Timeout'],
];

/** Returns the decorator of `@nestjs/schedule` on a method. */
export function scheduleDecoratorOf(method: object): ScheduleDecorator | undefined {
  return SCHEDULES.find(([key]) => hasMetadataOf(method, [key]))?.[1];
}

/**
 * Metadata keys on a class or a method that make no handler of it: Nest's own, and of packages that call methods
 * without interceptors. Any other key may belong to a package that runs interceptors.
 */
const NO_HANDLERS = new Set([
  ...ON_CONTROLLERS,
  'method',
  'host',
  'port',
  'scope:options',
  'graphql:resolver_name',
  'graphql:resolver_type',
  'SCHEDULER_NAME',
  'SCHEDULER_TYPE',
  'EVENT_LISTENER_METADATA',
]);
const NO_HANDLERS_PATTERN =
  /^(__\w+__|(design|self|optional):\w+|websockets:\w+|SCHEDULE_\w+|bull(mq)?:\w+|nestjs-redis-lock:.*)$/;

/** Returns true if an unknown decorator has left metadata on the class or the method: it may make a handler of it. */
export function mayBeHandler(constructor: object, method: object): boolean {
  return [constructor, method]
    .flatMap((decorated) => Reflect.getMetadataKeys(decorated) as unknown[])
    .some((key) => !NO_HANDLERS.has(nameOf(key)) && !NO_HANDLERS_PATTERN.test(nameOf(key)));
}

/** Returns true if a decorator has set one of these metadata keys on the method. */
export function hasMetadataOf(method: object, keys: readonly string[]): boolean {
  return Reflect.getMetadataKeys(method).some((key: unknown) => keys.includes(nameOf(key)));
}

function nameOf(key: unknown): string {
  return typeof key === 'symbol' ? (key.description ?? '') : String(key);
}

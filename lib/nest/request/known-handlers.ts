import 'reflect-metadata';

/** The metadata keys that Nest looks for only in controllers: routes and message patterns. */
export const ON_CONTROLLERS = ['path', 'microservices:pattern'];

/** Those that it looks for in gateways. */
export const ON_GATEWAYS = ['websockets:message_mapping'];

/** Those of other packages: queries, mutations and subscriptions of GraphQL; handlers of RabbitMQ and Telegram. */
export const OF_OTHER_PACKAGES = [
  'graphql:resolver_type',
  'RABBIT_HANDLER',
  'LISTENERS_METADATA',
  'WIZARD_STEP_METADATA',
];

/** Those that `@nestjs/graphql` runs without interceptors, unless its options say otherwise. */
export const FIELD_RESOLVERS = ['graphql:resolve_property', 'graphql:resolve_reference'];

/** Whether a decorator has set one of these metadata keys on the method. */
export function hasMetadataOf(method: object, keys: readonly string[]): boolean {
  return Reflect.getMetadataKeys(method).some((key: unknown) =>
    keys.includes(typeof key === 'symbol' ? (key.description ?? '') : String(key)),
  );
}

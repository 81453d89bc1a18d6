import type { InstanceWrapper } from '../scan.js';

/** The token under which `@nestjs/graphql` provides its options. */
const GRAPHQL_OPTIONS = 'GqlModuleOptions';

/** The part of the options of a `GraphQLModule` that is needed here. */
export interface GraphqlOptions {
  /** The modules whose resolvers are served. None or an empty list: all. */
  readonly include?: readonly unknown[];
  readonly fieldResolverEnhancers?: readonly string[];
  readonly transformSchema?: unknown;
}

/** The options of each GraphQL schema that serves the resolvers of a module. */
export function schemasWith(module: unknown, providers: readonly InstanceWrapper[]): readonly GraphqlOptions[] {
  return providers
    .filter(({ token }) => token === GRAPHQL_OPTIONS)
    .map(({ instance }) => (instance ?? {}) as GraphqlOptions)
    .filter(({ include }) => !include?.length || include.includes(module));
}

/** Whether Nest runs interceptors or filters for the field resolvers of a schema. */
export function runsForFields({ fieldResolverEnhancers }: GraphqlOptions, what: 'interceptors' | 'filters'): boolean {
  return fieldResolverEnhancers?.includes(what) === true;
}

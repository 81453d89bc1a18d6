import { Injectable, SetMetadata, UseFilters } from '@nestjs/common';
import { APP_FILTER } from '@nestjs/core';
import { DistributedLock, LockExceptionFilter, LockHandler, maskLockErrors } from 'nestjs-redis-lock';
import { inMemory, useApps } from '../nest-apps.js';

/** The metadata that decorators of `@nestjs/graphql` leave on a method. */
const ResolveField = () => SetMetadata('graphql:resolve_property', true);
const Query = () => SetMetadata('graphql:resolver_type', 'Query');

@Injectable()
class Items {
  @ResolveField()
  @DistributedLock('x')
  async stock(): Promise<void> {}

  @LockHandler('y')
  @ResolveField()
  price(): void {}

  @Query()
  @DistributedLock('z')
  async items(): Promise<void> {}

  @ResolveField()
  notLocked(): void {}
}

@Injectable()
class Inheriting extends Items {}

@Injectable()
class WithFilterOnMethod {
  @ResolveField()
  @UseFilters(LockExceptionFilter)
  @DistributedLock('x')
  async stock(): Promise<void> {}

  @ResolveField()
  @DistributedLock('x')
  async answersInItsOwnWay(): Promise<void> {}
}

class Included {}
class Excluded {}

describe('locked field resolvers of GraphQL', () => {
  const start = useApps();
  const lockFilter = { useClass: LockExceptionFilter };
  const warningsOf = async (resolver: new () => object, filter?: object, ...schemas: object[]): Promise<string[]> => {
    const filters = filter ? [{ provide: APP_FILTER, ...filter } as { provide: string; useValue: unknown }] : [];
    const options = schemas.map((schema) => ({
      module: class {},
      // @LockHandler needs them.
      providers: [{ provide: 'GqlModuleOptions', useValue: { fieldResolverEnhancers: ['interceptors'], ...schema } }],
    }));
    class Resolvers {}
    const resolvers = [Included, Resolvers].map((module) => ({ module, providers: [resolver] }));
    const imports = [inMemory(), inMemory({ service: 'other' }), ...resolvers, ...options];
    return (await start({ imports, providers: filters })).log.at('warn');
  };
  const warning = (where: string): string =>
    `No exception filter answers the lock errors of ${where}: the method is a field resolver, and GraphQLModule runs ` +
    `no filters for field resolvers. A client would be sent the message of the error, with the resource and perhaps ` +
    `the address of Redis. Set the option fieldResolverEnhancers: ['filters'] of GraphQLModule, or transformSchema: ` +
    `maskLockErrors. See docs/guide/with-graphql.md.`;
  const warningsFor = (name: string): string[] => ['price', 'stock'].map((method) => warning(`${name}.${method}`));

  it('are warned of once, if an APP_FILTER would answer for them, but runs for no field', async () => {
    expect((await warningsOf(Items, lockFilter, {})).sort()).toEqual(warningsFor('Items'));
    const instance = { useValue: new LockExceptionFilter() };
    expect((await warningsOf(Inheriting, instance, {})).sort()).toEqual(warningsFor('Inheriting'));
  });

  it('are warned of, if one of several schemas that serve them runs no filters', async () => {
    const filtering = { fieldResolverEnhancers: ['filters', 'interceptors'] };
    expect(await warningsOf(Items, lockFilter, filtering, { include: [Included] })).toHaveLength(2);
    expect(await warningsOf(WithFilterOnMethod, lockFilter, filtering, { include: [Excluded] })).toEqual([]);
  });

  it('are not warned of, if filters run for fields, or the schema masks lock errors', async () => {
    const filtering = { fieldResolverEnhancers: ['filters', 'interceptors'] };
    expect(await warningsOf(Items, lockFilter, filtering)).toEqual([]);
    expect(await warningsOf(Items, lockFilter, { transformSchema: maskLockErrors })).toEqual([]);
    expect(await warningsOf(Items, lockFilter, { transformSchema: (schema: object) => schema })).toHaveLength(2);
  });

  it('are not warned of, if no schema serves them', async () => {
    expect(await warningsOf(WithFilterOnMethod, lockFilter)).toEqual([]);
  });
});

import { Module } from '@nestjs/common';
import { APP_FILTER } from '@nestjs/core';
import { InvalidLockOptionsError, LockExceptionFilter, RedisLockService } from 'nestjs-redis-lock';
import { rejection } from '../../support/expect/eventually.js';
import { inMemory, type RunningApp, useApps } from '../../nest/nest-apps.js';
import { AuthorResolver, ITEMS, Notes } from './items.js';
import { ask, type GraphqlAnswer, SERVERS } from './servers.js';
import { FailingResolver, INSIDES } from './shop.js';

type Enhancers = ('guards' | 'interceptors' | 'filters')[];

describe.each(SERVERS)('field resolvers of %s', (_, { adapter, graphql, graphqlAsync }) => {
  const start = useApps();

  describe('@LockHandler', () => {
    const startWith = (module: ReturnType<typeof graphql>): Promise<RunningApp> =>
      start({ adapter: adapter(), imports: [inMemory(), module], providers: [AuthorResolver] });
    const ways: [string, typeof graphql][] = [
      ['forRoot', graphql],
      ['forRootAsync', graphqlAsync],
    ];

    it.each<[string, Enhancers | undefined]>([
      ['without enhancers', undefined],
      ['with others', ['guards', 'filters']],
    ])('refuses to start %s', async (_with, fieldResolverEnhancers) => {
      for (const [, module] of ways) {
        const error = await rejection(startWith(module(fieldResolverEnhancers && { fieldResolverEnhancers })));
        expect(error).toBeInstanceOf(InvalidLockOptionsError);
        expect(error.message).toContain('AuthorResolver.books has @LockHandler, which would never run');
        expect(error.message).toContain("fieldResolverEnhancers: ['interceptors']");
      }
    });

    it.each(ways)('locks where interceptors run for field resolvers: %s', async (_way, module) => {
      const { url } = await startWith(module({ fieldResolverEnhancers: ['interceptors'] }));
      expect(await ask(url, '{ author { books } }')).toMatchObject({ data: { author: { books: 'books' } } });
    });
  });

  describe('@DistributedLock', () => {
    const startShop = (fieldResolverEnhancers: Enhancers = []): Promise<RunningApp> =>
      start({
        adapter: adapter(),
        imports: [inMemory(), graphql({ fieldResolverEnhancers })],
        providers: [...ITEMS, { provide: APP_FILTER, useClass: LockExceptionFilter }],
      });
    const listOf = (answer: GraphqlAnswer, query: string): unknown => {
      expect(answer.errors).toBeUndefined();
      return (answer.data![query] as object[]).map((item) => Object.values(item)[0] as unknown);
    };

    it('siblings wait for each other, and then the document is answered', async () => {
      const { url, app } = await startShop();
      const stocks = [1, 2, 3, 4, 5].map((id) => `stock of ${id}`);
      expect(listOf(await ask(url, '{ items { stock } }'), 'items')).toEqual(stocks);
      expect(app.get(Notes).mostAtOnce).toBe(1);
    });

    it('the lock of a query has ended when the fields of its result are resolved, with both decorators', async () => {
      const { url } = await startShop();
      for (const query of ['items', 'lockedItems']) {
        const five = (value: string): string[] => Array.from({ length: 5 }, () => value);
        expect(listOf(await ask(url, `{ ${query} { ofBasket } }`), query)).toEqual(five('basket'));
        expect(listOf(await ask(url, `{ ${query} { held } }`), query)).toEqual(five('no lock'));
      }
    });

    it('a field whose promise the query has made is under its lock: the same key again is an error, or joins', async () => {
      const { url, log } = await startShop();
      const again = await ask(url, '{ eager { eagerly } }');
      expect(again).toMatchObject({ data: { eager: { eagerly: null } } });
      expect(again.errors).toHaveLength(1);
      expect(await ask(url, '{ eagerReentrant { eagerly } }')).toMatchObject({
        data: { eagerReentrant: { eagerly: 'joined' } },
      });
      expect(log.at('error')).toEqual([]);
    });

    it('an error is shown as it is, unless filters run for field resolvers', async () => {
      const plain = await startShop();
      const shown = await ask(plain.url, '{ items { busy } }');
      expect(shown.errors).toHaveLength(5);
      expect(shown.errors![0]!.message).toContain('order:7');
      const filtered = await startShop(['filters']);
      const { errors } = await ask(filtered.url, '{ items { busy } }');
      expect(errors!.map(({ extensions }) => extensions!['code'])).toEqual(Array(5).fill('LOCK_BUSY'));
      expect(JSON.stringify(errors!.map(withoutStack))).not.toMatch(INSIDES);
    });
  });

  describe('DataLoader', () => {
    const startShop = (): Promise<RunningApp> =>
      start({
        adapter: adapter(),
        imports: [inMemory(), graphql({ fieldResolverEnhancers: ['filters'] })],
        providers: [...ITEMS, { provide: APP_FILTER, useClass: LockExceptionFilter }],
      });
    const all = [1, 2, 3, 4, 5];
    const loaded = all.map((id) => ({ item: `item ${id}` }));

    it('a lock in the batch function is taken once, for all', async () => {
      const { url, app } = await startShop();
      expect(await ask(url, '{ items { item: batched } }')).toMatchObject({ data: { items: loaded } });
      expect(app.get(Notes).batches).toEqual([all]);
    });

    it('a lock of the field makes a batch of each sibling', async () => {
      const { url, app } = await startShop();
      expect(await ask(url, '{ items { item: oneByOne } }')).toMatchObject({ data: { items: loaded } });
      expect(app.get(Notes).batches).toEqual(all.map((id) => [id]));
    });

    it('a lock of the field that the batch locks again is an error for the whole batch', async () => {
      const { url, app } = await startShop();
      const { data, errors } = await ask(url, '{ items { item: insideOut } }');
      expect(data).toEqual({ items: all.map(() => ({ item: null })) });
      expect(errors!.map(({ extensions }) => extensions!['code'])).toEqual(Array(5).fill('LOCK_REENTRY'));
      expect(app.get(Notes).batches).toEqual([]);
    });

    it('its error is answered by the filter, once for each field', async () => {
      const { url, app } = await startShop();
      await using _held = await app.get(RedisLockService).acquire('order:7');
      const { errors } = await ask(url, '{ items { impatient } }');
      expect(errors!.map(({ extensions }) => extensions!['code'])).toEqual(Array(5).fill('LOCK_BUSY'));
      expect(JSON.stringify(errors!.map(withoutStack))).not.toMatch(INSIDES);
    });
  });
});

// Mercurius serves one schema only.
describe('field resolvers of Apollo, with two GraphQLModules', () => {
  const start = useApps();
  const [[, { adapter, graphql }]] = SERVERS as [(typeof SERVERS)[number]];

  it('@LockHandler needs interceptors in each that serves the resolver', async () => {
    @Module({ providers: [AuthorResolver] })
    class Authors {}
    @Module({ providers: [FailingResolver] })
    class Others {}
    const at = (include: typeof Authors, ...fieldResolverEnhancers: Enhancers) =>
      graphql({ include: [include], path: `/${include.name}`, fieldResolverEnhancers });
    const startBoth = (...modules: ReturnType<typeof at>[]): Promise<RunningApp> =>
      start({ adapter: adapter(), imports: [inMemory(), Authors, Others, ...modules] });
    const error = await rejection(startBoth(at(Authors), at(Others, 'interceptors')));
    expect(error).toBeInstanceOf(InvalidLockOptionsError);
    await startBoth(at(Authors, 'interceptors'), at(Others));
  });
});

function withoutStack({ extensions, ...error }: NonNullable<GraphqlAnswer['errors']>[number]): object {
  const { stacktrace, ...rest } = extensions!;
  expect(stacktrace ?? [`Error: ${error.message}`]).toEqual([`Error: ${error.message}`]);
  return { ...error, ...rest };
}

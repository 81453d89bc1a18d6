import { buildSchema, graphql as execute } from 'graphql';
import { APP_FILTER } from '@nestjs/core';
import {
  InvalidLockOptionsError,
  LockBusyError,
  LockExceptionFilter,
  maskLockErrors,
  RedisLockService,
} from 'nestjs-redis-lock';
import { inMemory, type RunningApp, useApps } from '../../nest/nest-apps.js';
import { EagerResolver, ITEMS } from './items.js';
import { ask, type GraphqlAnswer, SERVERS } from './servers.js';
import { FailingResolver, INSIDES } from './shop.js';

const busy = (): LockBusyError => new LockBusyError('order:7', { attempts: 3, retryAfterMs: 1_200 });

describe.each(SERVERS)('maskLockErrors on %s', (_, { adapter, graphql, graphqlAsync }) => {
  const start = useApps();
  const startShop = (module: ReturnType<typeof graphql>, ...providers: object[]): Promise<RunningApp> =>
    start({
      adapter: adapter(),
      imports: [inMemory(), module],
      providers: [...ITEMS, FailingResolver, ...(providers as (typeof EagerResolver)[])],
    });
  const codesOf = ({ errors }: GraphqlAnswer): string[] =>
    errors!.map(({ extensions }) => extensions!['code'] as string);
  /** All that a client sees. The first line of a stack repeats the message. */
  const shown = ({ errors }: GraphqlAnswer): string =>
    JSON.stringify(
      errors!.map(({ extensions, ...error }) => {
        const { stacktrace, ...rest } = extensions!;
        return [error, rest, (stacktrace as string[] | undefined)?.slice(1)];
      }),
    );

  it('answers the lock errors of every resolver, without a filter, and lets others pass', async () => {
    const { url, app, log } = await startShop(graphql({ transformSchema: maskLockErrors }));
    await using _held = await app.get(RedisLockService).acquire('order:7');
    const fields = await ask(url, '{ items { reserved impatient } failing { eagerly listed } }');
    expect(codesOf(fields)).toEqual(Array(12).fill('LOCK_BUSY'));
    expect(fields.data).toMatchObject({ failing: { eagerly: null, listed: [null, 'ok'] } });
    const queries = await ask(url, '{ busy: fail(kind: "busy") away: fail(kind: "unavailable") }');
    expect(codesOf(queries).sort()).toEqual(['LOCK_BUSY', 'LOCK_UNAVAILABLE']);
    expect(shown(fields) + shown(queries)).not.toMatch(INSIDES);
    expect((await ask(url, '{ fail(kind: "other") }')).errors).toMatchObject([{ message: 'not of a lock' }]);
    // The operator sees what the client does not.
    expect(log.at('warn').join()).toMatch(/order:7.*redis\.internal:6379/);
  });

  it('leaves the answers as they are', async () => {
    const { url } = await startShop(graphql({ transformSchema: maskLockErrors }));
    expect(await ask(url, '{ eagerReentrant { id eagerly } items { id item: batched } }')).toMatchObject({
      data: {
        eagerReentrant: { id: 1, eagerly: 'joined' },
        items: [1, 2, 3, 4, 5].map((id) => ({ id, item: `item ${id}` })),
      },
    });
  });

  it('is one of the two ways to start without a warning of locked field resolvers', async () => {
    const filter = { provide: APP_FILTER, useClass: LockExceptionFilter };
    for (const way of [graphql, graphqlAsync]) {
      const warned = (await startShop(way(), filter)).log.at('warn').join('\n');
      for (const name of ['stock', 'ofBasket', 'reserved']) expect(warned).toContain(`of ItemsResolver.${name}: the`);
      expect(warned).not.toMatch(/lockedItems|EagerResolver/);
    }
    for (const options of [{ transformSchema: maskLockErrors }, { fieldResolverEnhancers: ['filters' as const] }]) {
      expect((await startShop(graphql(options), filter)).log.at('warn')).toEqual([]);
    }
  });
});

describe('maskLockErrors on a schema of graphql', () => {
  const sdl =
    'type Query { plain: String, method(of: Int): String, thrown: String, list: [[String]], part: Part } type Part { one: Int }';

  it('reads fields without a resolver as graphql does, and masks what they throw', async () => {
    const failure = Promise.reject(busy());
    failure.catch(() => undefined);
    const rootValue = {
      plain: failure,
      method: ({ of }: { of: number }) => `of ${of}`,
      thrown() {
        throw busy();
      },
      list: [['a', failure], null],
      part: new (class {
        readonly #one = 1;
        one(): number {
          return this.#one;
        }
      })(),
    };
    const schema = maskLockErrors(buildSchema(sdl));
    const { data, errors } = await execute({
      schema,
      rootValue,
      source: '{ plain method(of: 7) thrown list part { one } __typename }',
    });
    expect({ ...data }).toMatchObject({
      plain: null,
      method: 'of 7',
      thrown: null,
      list: [['a', null], null],
      part: { one: 1 },
      __typename: 'Query',
    });
    expect(errors).toHaveLength(3);
    expect(JSON.stringify(errors)).not.toMatch(INSIDES);
  });

  it('refuses what is no schema', () => {
    expect(() => maskLockErrors(undefined as never)).toThrow(InvalidLockOptionsError);
    expect(() => maskLockErrors({} as never)).toThrow('Set transformSchema: maskLockErrors of GraphQLModule');
  });
});

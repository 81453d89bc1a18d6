import type { INestApplication } from '@nestjs/common';
import { APP_FILTER } from '@nestjs/core';
import { LockExceptionFilter, RedisLockService } from 'nestjs-redis-lock';
import { eventually } from '../../support/expect/eventually.js';
import { inMemory, useApps } from '../../nest/nest-apps.js';
import { OrdersResolver } from './orders.js';
import { ask, askAndLeave, SERVERS } from './servers.js';
import { FailingResolver, FIELDS, FilteredResolver, INSIDES, OPERATIONS, ORDERS, SlowResolver } from './shop.js';

describe.each(SERVERS)('%s', (_, { adapter, graphql }) => {
  const start = useApps();
  const appFilter = { provide: APP_FILTER, useClass: LockExceptionFilter };

  it('locks queries and mutations, above and below the decorators of GraphQL, and guards still guard', async () => {
    const { url } = await start({ adapter: adapter(), imports: [inMemory(), graphql()], providers: ORDERS });
    for (const operation of OPERATIONS) {
      const fields = FIELDS.map((name) => `${operation}${name}(id: 7)`).join(' ');
      const { data, errors } = await ask(url, `${operation} { ${fields} }`, { 'x-user': 'eve' });
      expect(errors).toBeUndefined();
      expect(Object.values(data!)).toEqual(['locked:7', 'locked:7', 'handled:7', 'handled:7', 'locked:7']);
      for (const name of FIELDS) {
        const refused = await ask(url, `${operation} { ${operation}${name}(id: 7) }`);
        expect(refused.errors).toMatchObject([{ message: 'Forbidden resource' }]);
      }
    }
  });

  it('the snippet of the guide', async () => {
    const { url } = await start({ adapter: adapter(), imports: [inMemory(), graphql()], providers: [OrdersResolver] });
    expect(await ask(url, 'mutation { pay(id: "7") }')).toMatchObject({ data: { pay: 'paid 7' } });
    const report = await ask(url, '{ report }', { 'x-tenant': 'acme' });
    expect(report).toMatchObject({ data: { report: 'a long report' } });
  });

  const WAYS = {
    'as APP_FILTER': { field: 'fail', providers: [FailingResolver, appFilter] },
    globally: {
      field: 'fail',
      providers: [FailingResolver],
      configure: (app: INestApplication) => app.useGlobalFilters(new LockExceptionFilter()),
    },
    'by @UseFilters': { field: 'failFiltered', providers: [FilteredResolver] },
  };
  it.each(Object.entries(WAYS))('the filter answers, %s, and shows nothing of our insides', async (_way, way) => {
    const { field, ...rest } = way;
    const { url, log } = await start({ ...rest, adapter: adapter(), imports: [inMemory(), graphql()] });
    const aliases = ['busy', 'unavailable', 'other'].map((kind) => `${kind}: ${field}(kind: "${kind}")`);
    const answer = await ask(url, `{ ${aliases.join(' ')} }`);
    const [busy, away, other] = ['busy', 'unavailable', 'other'].map((name) =>
      answer.errors!.find(({ path }) => path![0] === name),
    );
    expect(answer).toMatchObject({ status: 200, data: { busy: null, unavailable: null, other: null } });
    expect(busy).toMatchObject({
      message: 'Another request is working on this. Try again later.',
      extensions: { code: 'LOCK_BUSY', status: 423, retryAfterMs: 1_200 },
    });
    expect(away).toMatchObject({
      message: 'This cannot be done safely right now. Try again later.',
      extensions: { code: 'LOCK_UNAVAILABLE', status: 503, retryAfterMs: 1_000 },
    });
    expect(other).toMatchObject({ message: 'not of a lock' });
    for (const error of [busy, away]) {
      const { stacktrace, ...extensions } = error!.extensions!;
      expect(stacktrace ?? [`Error: ${error!.message}`]).toEqual([`Error: ${error!.message}`]);
      expect(JSON.stringify({ ...error, extensions })).not.toMatch(INSIDES);
    }
    // The operator sees what the client does not.
    expect(log.at('warn').join()).toMatch(/order:7.*redis\.internal:6379/);
    expect(log.at('error')).toEqual(['RangeError: not of a lock']);
  });

  it('a client that leaves stops waiting, with each of the fields that it asked for', async () => {
    const { url, app, log } = await start({
      adapter: adapter(),
      imports: [inMemory(), graphql()],
      providers: [SlowResolver, appFilter],
    });
    const slow = app.get(SlowResolver);
    const waiters = async (): Promise<number[]> => {
      const locks = ['slow:a', 'slow:b'].map((resource) => app.get(RedisLockService).inspect(resource));
      return (await Promise.all(locks)).map((lock) => lock.waiters.length);
    };
    const first = ask(url, '{ a: slow(who: "first", of: "a") b: slow(who: "first", of: "b") }');
    await eventually(() => expect(slow.events).toEqual(['first began', 'first began']));
    const leave = askAndLeave(url, '{ a: slow(who: "second", of: "a") b: slow(who: "second", of: "b") }');
    await eventually(async () => expect(await waiters()).toEqual([1, 1]));
    leave();
    await eventually(async () => expect(await waiters()).toEqual([0, 0]));
    const third = ask(url, '{ slow(who: "third", of: "a") }');
    await eventually(async () => expect(await waiters()).toEqual([1, 0]));
    slow.finish.open();
    expect(await first).toMatchObject({ data: { a: 'first', b: 'first' } });
    expect(await third).toMatchObject({ data: { slow: 'third' } });
    expect(slow.events).toEqual(['first began', 'first began', 'third began']);
    expect([...log.at('error'), ...log.at('warn')]).toEqual([]);
  });
});

import { once } from 'node:events';
import { Redis, type RedisOptions } from 'ioredis';
import { eventually } from '../../support/expect/eventually.js';
import { instancesOf } from '../../support/redis/instances-of.js';
import { useAdmin, useInstances } from '../../support/redis/lock-instances.js';
import { itAsAnybody } from './it-as-anybody.js';
import { useRedis } from '../../support/redis/redis-server.js';

describe('the client of the user', () => {
  const redis = useRedis();
  const admin = useAdmin(() => redis().url);
  const start = useInstances(() => redis().url);
  const clients: Redis[] = [];
  afterEach(() => clients.splice(0).forEach((client) => client.disconnect()));

  const connect = (options: RedisOptions): Redis => {
    const client = new Redis(redis().url, options);
    clients.push(client);
    return client;
  };

  it('is never changed or closed', async () => {
    const client = connect({ keyPrefix: 'shop:', db: 3, commandTimeout: 4_000, connectionName: 'mine' });
    client.defineCommand('twice', { numberOfKeys: 0, lua: 'return ARGV[1] * 2' });
    client.on('error', () => undefined);
    client.on('ready', () => undefined);
    await once(client, 'ready');
    const describeClient = () => ({
      status: client.status,
      options: { ...client.options },
      properties: Object.keys(client).sort(),
      methods: Object.getOwnPropertyNames(Object.getPrototypeOf(client)).sort(),
      listeners: client.eventNames().map((name) => [name, client.listeners(name)]),
      scripts: Object.keys(client.options.scripts ?? {}),
    });
    const before = describeClient();
    const id = await client.client('ID');

    const { locks } = await start({ connection: client });
    await using lease = await locks.acquire('a');
    expect(await lease.verify()).toBe(true);
    expect(describeClient()).toEqual(before);
    await lease.release();
    await locks.shutdown(0);

    expect(describeClient()).toEqual(before);
    expect(await client.client('ID')).toBe(id);
    expect(await (client as Redis & { twice(n: number): Promise<number> }).twice(21)).toBe(42);
    expect(await client.call('CLIENT', 'GETNAME')).toBe('mine');
  });

  it('a lazy one that never connected stays that way', async () => {
    const client = connect({ lazyConnect: true });
    const { locks } = await start({ connection: client });
    await (await locks.acquire('a')).release();
    await locks.shutdown(0);
    expect(client.status).toBe('wait');
  });

  it('says where the locks are: its db and its keyPrefix, also for waiting and waking', async () => {
    const client = connect({ keyPrefix: 'shop:', db: 3 });
    const inDb3 = connect({ db: 3 });
    const [a, b] = [await start({ connection: client }), await start({ connection: client })];
    const lease = await a.locks.acquire('a', { leaseMs: 60_000 });
    expect(await admin().keys('*')).toEqual([]);
    expect((await inDb3.keys('*')).sort()).toEqual(['shop:lock:fence', 'shop:lock:{a}']);
    expect(await admin().pubsub('CHANNELS', '*')).toEqual(
      expect.arrayContaining([a, b].map(({ store }) => `shop:lock:inbox:${store.clientId}`)),
    );
    const waiting = b.locks.acquire('a');
    await eventually(async () => expect(instancesOf((await a.locks.inspect('a')).waiters)).toEqual([b.instanceId]));
    await lease.release();
    await (await waiting).release();
    expect(await inDb3.keys('*')).toEqual(['shop:lock:fence']);
  });

  it.each<[string, RedisOptions]>([
    ['stringNumbers', { stringNumbers: true }],
    ['readOnly', { readOnly: true }],
    ['a commandTimeout shorter than the network', { commandTimeout: 1 }],
    ['autopipelining', { enableAutoPipelining: true }],
    ['retries and an offline queue', { maxRetriesPerRequest: null, enableOfflineQueue: true }],
    ['no reconnecting', { retryStrategy: null }],
  ])('its options that would break locks do not: %s', async (_name, options) => {
    const client = connect({ ...options, lazyConnect: true });
    const { locks, store } = await start({ connection: client });
    const lease = await locks.acquire('a');
    expect(typeof lease.fencingToken).toBe('number');
    expect(await locks.tryAcquire('a')).toBeNull();
    await store.inspect('a');
    await admin().call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
    await eventually(async () => expect(await lease.verify()).toBe(true));
    await lease.release();
    expect(await admin().keys('*')).toEqual(['lock:fence']);
  });

  itAsAnybody('a URL may carry options too, and they break nothing either', async () => {
    const url = `${redis().url}/2?keyPrefix=app:&enableOfflineQueue=true&maxRetriesPerRequest=9&stringNumbers=true`;
    const { locks, store } = await start({ connection: url });
    const lease = await locks.acquire('a');
    expect(lease.fencingToken).toEqual(expect.any(Number));
    expect(await connect({ db: 2 }).keys('*')).toEqual(expect.arrayContaining(['app:lock:{a}', 'app:lock:fence']));
    expect(store.keys.inbox('me')).toBe('app:lock:inbox:me');
    await lease.release();
  });

  it('valkey:// is a URL like redis://', async () => {
    const { locks } = await start({ connection: redis().url.replace('redis:', 'valkey:') });
    expect((await locks.acquire('a')).isHeld()).toBe(true);
  });
});

import { Cluster } from 'ioredis';
import {
  locationOf,
  type RedisConnectionOption,
  startNodesOf,
  statedConnection,
} from '../../../lib/redis/connection/connection-options.js';
import { RedisLockStore } from '../../../lib/redis/redis-lock-store.js';

const closed: Cluster[] = [];
const clusterOf = (...nodes: string[]): Cluster => {
  const cluster = new Cluster(nodes, { lazyConnect: true });
  closed.push(cluster);
  return cluster;
};
afterEach(() => closed.splice(0).forEach((cluster) => cluster.disconnect()));

describe('the option connection', () => {
  it.each([
    ['a query with an @', 'redis://cache:6379/2?connectionName=svc@eu'],
    ['the name of a primary with an @', { sentinels: [{ host: 'a', port: 1 }], name: 'mymaster@eu' }],
    ['a password with an @', 'redis://:a%40b@cache:6379/2'],
  ])('may have %s', (_, connection) => {
    expect(() => statedConnection(connection).model).not.toThrow();
  });

  it.each(['redis://:hun/ter2@cache', 'redis://user:12/34@cache', 'redis://:hun?ter=2@cache'])(
    'is no URL whose password is not encoded: %s',
    (url) => {
      expect(() => statedConnection(url).model).toThrow('encodeURIComponent');
    },
  );

  it('is read once for a store', async () => {
    let reads = 0;
    const connection = {
      db: 3,
      get host() {
        reads++;
        return 'cache.test';
      },
    };
    const nameOf = { keyPrefix: 'lock', instanceId: 'a', leaseMs: 1_000 };
    const readBy = (action: () => unknown): number => {
      const before = reads;
      action();
      return reads - before;
    };
    const once = readBy(() => statedConnection(connection).model);
    let store!: RedisLockStore;
    expect(readBy(() => (store = new RedisLockStore({ connection, ...nameOf })))).toBe(once);
    expect([store.database, store.location]).toEqual([3, expect.stringContaining('cache.test')]);
    await store.close();
  });

  it('of a Cluster is shown without what may be a part of a password', () => {
    const nodes = ['redis://:hun/ter2@one:1', 'redis://user:12/34@two:2', 'redis://:x@three:3/0?a=b', '//four:4'];
    expect(startNodesOf(clusterOf(...nodes))).toEqual(['a node', 'a node', 'three:3', 'four:4']);
  });
});

describe('the location of the locks', () => {
  const place = (connection: RedisConnectionOption): string => locationOf(statedConnection(connection).model);

  it('is the same for each way to name a server', () => {
    const names = ['redis://one/2', 'redis://:secret@one:6379/2', { host: 'one', db: 2, password: 'other' }];
    expect(new Set(names.map(place)).size).toBe(1);
    expect(place(clusterOf('redis://one:1', 'redis://two:2'))).toBe(
      place({ cluster: ['redis://two:2', 'redis://one:1'] }),
    );
  });

  it('is another one on another server, in another database, and behind another prefix', () => {
    const sentinels = [{ host: 'one', port: 26_379 }];
    const names = [
      'redis://one/2',
      'redis://one/3',
      'redis://two/2',
      'redis://one:1/2',
      { host: 'one', db: 2, keyPrefix: 'stage:' },
      { sentinels, name: 'one' },
      { sentinels, name: 'two' },
      { cluster: ['redis://one:1'] },
      { cluster: ['redis://two:1'] },
      { cluster: ['redis://one:1'], keyPrefix: 'stage:' },
    ];
    expect(new Set(names.map(place)).size).toBe(names.length);
  });
});

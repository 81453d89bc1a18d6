import { NestFactory } from '@nestjs/core';
import { Cluster } from 'ioredis';
import { RedisLockModule } from 'nestjs-redis-lock';
import { LockUnavailableError } from '../../../lib/kernel/api/errors.js';
import { LogBook } from '../../nest/nest-apps.js';
import { eventually, rejection } from '../../support/expect/eventually.js';
import { documentedUser } from '../../support/redis/lock-user.js';
import { take, type TakeOptions } from '../../support/expect/mixed-sections.js';
import { untilQueued, useInstances } from '../../support/redis/lock-instances.js';
import { describeOnMachine } from '../../support/redis/describe-on-machine.js';
import { type ClusterNode, RedisCluster, useRedisCluster } from '../../support/redis/redis-cluster.js';

const WAYS: TakeOptions[] = [{}, { mode: 'reentrant' }, { mode: 'read' }, { mode: 'write' }, { permits: 3, count: 2 }];
const HOSTILE = [
  '{',
  '}',
  '{}',
  '{a}',
  '}{',
  'a}:waiters',
  '{a}{b}',
  '{{a}}',
  '%7Ba%7D',
  'a{b',
  '\0',
  'é🔒',
  'x:fence',
  ' ',
];

describeOnMachine('locks on a cluster of three', () => {
  const cluster = useRedisCluster();
  const start = useInstances(() => cluster().connection);
  beforeEach(() => cluster().flush());

  /** A name whose lock is on that node. */
  const nameOn = async (index: number): Promise<string> => {
    const node = cluster().nodes[index]!;
    for (let i = 0; ; i++) if ((await cluster().primaryOf(`lock:{name ${i}}`)) === node) return `name ${i}`;
  };

  it('keep the keys of each resource in one slot, whatever it is called and however it is locked', async () => {
    const [a, b] = [await start(), await start()];
    for (const name of HOSTILE) {
      for (const way of WAYS) {
        const lease = await take(a.locks, name, way);
        await lease.extend();
        expect(await lease.verify()).toBe(true);
        const next = take(b.locks, name, way.permits ? { permits: 3, count: 3 } : { mode: 'write' });
        await untilQueued(a, name, b);
        await lease.release();
        await (await next).release();
      }
    }
    expect((await cluster().keys()).filter((key) => !key.endsWith(':fence'))).toEqual([]);
  });

  it('are taken together if each is on another node', async () => {
    const { locks } = await start();
    const names = [await nameOn(0), await nameOn(1), await nameOn(2)];
    const lease = await locks.acquire(names);
    expect([...lease.resources].sort()).toEqual([...names].sort());
    for (const name of names) {
      const { holders } = await locks.operators.inspect(name);
      expect(holders).toMatchObject([{ fencingToken: lease.fencingTokenOf(name) }]);
    }
    // The largest may exceed the next token of another resource, whose node has its own clock.
    expect(() => lease.fencingToken).toThrow('fencingTokenOf(resource)');
    expect(Object.keys(JSON.parse(JSON.stringify(lease)).fencingTokens as object)).toEqual(lease.resources);
    expect(await locks.operators.list({ prefix: 'name' })).toHaveLength(3);
    await lease.release();
    expect(await locks.operators.list()).toEqual([]);
  });

  it('in overlapping sets on all nodes never deadlock, and leave nothing behind', async () => {
    const instances = [await start(), await start(), await start()];
    const names = [await nameOn(0), await nameOn(1), await nameOn(2), 'more', 'most'];
    const inUse = new Set<string>();
    const work = async (caller: number): Promise<void> => {
      const { locks } = instances[caller % 3]!;
      for (let round = 0; round < 15; round++) {
        const set = names.filter((_, index) => (caller * 7 + round * 5 + index * 3) % 4 > 0);
        await locks.using(set, { waitMs: 50_000 }, async ({ resources }) => {
          expect(resources.filter((name) => inUse.has(name))).toEqual([]);
          for (const name of resources) inUse.add(name);
          await instances[0]!.store.inspect(names[round % 5]!);
          for (const name of resources) inUse.delete(name);
        });
      }
    };
    await Promise.all([0, 1, 2, 3, 4, 5].map(work));
    await eventually(async () => expect((await cluster().keys()).filter((key) => !key.endsWith(':fence'))).toEqual([]));
    for (const { locks } of instances) expect(locks.stats()).toMatchObject({ resources: 0, leases: 0 });
  });

  it("take the place of the user's own Cluster, which is neither changed nor closed", async () => {
    const own = new Cluster([{ host: '127.0.0.1', port: cluster().nodes[1]!.server.port }], { keyPrefix: '{app}:' });
    const before = { ...own.options };
    const a = await start({ connection: own });
    const b = await start({ connection: own });
    const lease = await a.locks.acquire('x');
    const next = b.locks.acquire('x');
    await untilQueued(a, 'x', b);
    await lease.release();
    await (await next).release();
    expect(await cluster().keys()).toEqual([expect.stringMatching(/^\{app\}:lock:\{\w+\}:fence$/)]);
    await Promise.all([a.locks.shutdown(0), b.locks.shutdown(0)]);
    expect(await own.get('key')).toBeNull();
    expect({ ...own.options }).toEqual(before);
    own.disconnect();
  });

  it.each([
    ['no node', { cluster: [] }, 'a cluster without nodes'],
    ['a URL that is none', { cluster: ['localhost:7000'] }, 'begins with neither redis:// nor rediss://'],
    ['half a hash tag', { cluster: ['redis://127.0.0.1'], keyPrefix: 'a{b:' }, 'one complete hash tag'],
    [
      'an empty hash tag',
      { cluster: ['redis://127.0.0.1'], redisOptions: { keyPrefix: '{}:' } },
      'one complete hash tag',
    ],
  ])('are refused at boot with %s', async (_, connection, why) => {
    const error = await rejection(start({ connection }));
    expect(error.message).toContain(why);
  });

  it('report a connection that names one node as if it were one Redis', async () => {
    const { host, port } = cluster().nodes[0]!.admin.options;
    const { locks, store } = await start({ connection: `redis://${host}:${port}` });
    expect(await store.missingRights()).toEqual([expect.objectContaining({ isOfCluster: true })]);
    const error = await rejection(locks.acquire('x', { waitMs: 300 }));
    expect(error).toBeInstanceOf(LockUnavailableError);
    expect(error.message).toContain('CROSSSLOT');
    expect(error.message).toContain('write { cluster: [...] } with its nodes as the connection');
    const log = new LogBook();
    const app = await NestFactory.createApplicationContext(
      RedisLockModule.forRoot({ connection: `redis://${host}:${port}` }),
      { logger: log },
    );
    await app.close();
    expect(log.at('error')).toEqual([
      expect.stringMatching(/^The Redis at \S+ is a node of a Redis Cluster, and the connection names one Redis/),
    ]);
  });

  it('start with a warning while the cluster is down, and find it later', async () => {
    await using own = await RedisCluster.start();
    for (const { server } of own.nodes) await server.kill();
    const { locks, store } = await start({ connection: own.connection, patienceMs: 0 });
    const error = await rejection(locks.acquire('x', { waitMs: 300 }));
    expect(error).toBeInstanceOf(LockUnavailableError);
    const trouble = /not connected to the Redis Cluster at \S+:\d+(, \S+:\d+)* \(connect ECONNREFUSED \S+:\d+\)/;
    expect(error.message).toMatch(trouble);
    expect(store.connection.describeTrouble()).toMatch(trouble);
    const lease = locks.acquire('x', { waitMs: 45_000 });
    for (const { server } of own.nodes) await server.restart({ keepData: true });
    await (await lease).release();
  });

  it('need no more rights than the documented user has, and two for the cluster', async () => {
    const { name, password, rules } = documentedUser();
    await using own = await RedisCluster.start({
      args: ['--user', name, ...rules, '+cluster|slots', '+asking'],
    });
    const redisOptions = { username: name, password };
    const ports = own.nodes.map(({ server }) => ({ host: '127.0.0.1', port: server.port }));
    const byOptions = await start({ connection: { cluster: ports, redisOptions } });
    // The user of the first node is used for all nodes.
    const byUrl = await start({ connection: { cluster: [`redis://${name}:${password}@127.0.0.1:${ports[0]!.port}`] } });
    for (let i = 0; i < 20; i++) {
      const lease = await byOptions.locks.acquire(`${i}`);
      const next = byUrl.locks.acquire(`${i}`);
      await untilQueued(byOptions, `${i}`, byUrl);
      await lease.release();
      await (await next).release();
    }
    const [{ admin }] = own.nodes as [ClusterNode];
    const { needed, helpful } = (await byOptions.store.missingRights())[0]!;
    expect([needed, helpful]).toEqual([[], []]);
    expect(
      ((await admin.call('ACL', 'LOG')) as string[][]).filter((entry) => !entry.includes('client|setinfo')),
    ).toEqual([]);
  });

  it('ask each node for missing permissions, even a node without a slot of these keys', async () => {
    const { name, password, rules } = documentedUser();
    await using own = await RedisCluster.start({
      args: ['--user', name, ...rules, '+cluster|slots', '+asking'],
    });
    const [first, second] = own.nodes as [ClusterNode, ClusterNode];
    await second.admin.call('ACL', 'SETUSER', name, '-hset', 'resetchannels');
    await first.admin.call('ACL', 'SETUSER', name, '-zadd', 'resetkeys', '~other:*');
    const cluster = [`redis://${name}:${password}@127.0.0.1:${first.server.port}`];
    const { store } = await start({ connection: { cluster } });
    const found = await store.missingRights();
    const lacking = found.filter(({ needed, helpful }) => needed.length + helpful.length > 0);
    expect(found.length).toBeGreaterThan(2);
    expect(lacking.toSorted((a, b) => Number(a.server > b.server))).toEqual(
      [
        { server: `127.0.0.1:${first.server.port}`, needed: ['+zadd', '~lock:*'], helpful: [], isOfCluster: false },
        { server: `127.0.0.1:${second.server.port}`, needed: ['+hset'], helpful: ['&lock:*'], isOfCluster: false },
      ].toSorted((a, b) => Number(a.server > b.server)),
    );
  });

  it('learn of a grant by a message, wherever they listen, and listen elsewhere when that node is gone', async () => {
    await using own = await RedisCluster.start();
    const options = { connection: own.connection, defaults: { leaseMs: 60_000 } };
    const a = await start(options);
    const b = await start(options);
    const listening = () =>
      Promise.all(
        own.nodes.map(async ({ admin }) =>
          Number((await admin.pubsub('NUMSUB', b.store.keys.inbox(b.store.clientId)))[1]),
        ),
      );
    const handOver = async (): Promise<void> => {
      const lease = await a.locks.acquire('x');
      const next = b.locks.acquire('x');
      await untilQueued(a, 'x', b);
      const asked = attempts(b.store.acquire.bind(b.store));
      await lease.release();
      await (await next).release();
      asked.end();
    };
    const attempts = (acquire: typeof b.store.acquire) => {
      let sent = 0;
      b.store.acquire = (...args) => (sent++, acquire(...args));
      return { end: () => (expect(sent).toBe(0), void (b.store.acquire = acquire)) };
    };
    await handOver();
    const at = (await listening()).indexOf(1);
    await own.nodes[at]!.admin.call('CLIENT', 'KILL', 'TYPE', 'pubsub');
    await eventually(async () => {
      const now = await listening();
      expect(now.reduce((sum, count) => sum + count)).toBe(1);
      expect(now[at]).toBe(0);
    });
    await eventually(handOver);
  });
});

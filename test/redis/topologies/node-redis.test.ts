import { createClient, createCluster } from '@redis/client';
import { Redis as Valkey } from 'iovalkey';
import type { Redis } from 'ioredis';
import type { RedisConnectionOption } from '../../../lib/redis/connection/connection-options.js';
import { describeOnMachine } from '../../support/redis/describe-on-machine.js';
import { untilQueued, useInstances } from '../../support/redis/lock-instances.js';
import { RedisCluster } from '../../support/redis/redis-cluster.js';
import { type RedisServer, startRedis } from '../../support/redis/redis-server.js';

/** A client that the application has, and what is left to do with it. */
interface Own {
  readonly client: { readonly isOpen: boolean };
  /** A command of the application, after all. */
  use(): Promise<unknown>;
  close(): Promise<void> | void;
}

describeOnMachine('an application that has a client of another package', () => {
  const servers: RedisServer[] = [];
  const others: AsyncDisposable[] = [];
  afterEach(async () => {
    await Promise.all(servers.splice(0).map((server) => server.stop()));
    await Promise.all(others.splice(0).map((other) => other[Symbol.asyncDispose]()));
  });
  const start = useInstances(() => ({ host: 'unused.invalid' }));

  const owns: [string, () => Promise<Own & { readonly connection: RedisConnectionOption }>][] = [
    [
      'node-redis, with a password',
      async () => {
        const server = await startRedis({ args: ['--requirepass', 'hunter2'] });
        servers.push(server);
        const client = createClient({ url: `redis://:hunter2@127.0.0.1:${server.port}/2` });
        await client.connect();
        return { connection: client, client, use: () => client.set('own', '1'), close: () => client.close() };
      },
    ],
    [
      'node-redis, with a cluster',
      async () => {
        const cluster = await RedisCluster.start();
        others.push(cluster);
        const rootNodes = cluster.nodes.map(({ server }) => ({ socket: { host: '127.0.0.1', port: server.port } }));
        const client = createCluster({ rootNodes });
        await client.connect();
        return { connection: client, client, use: () => client.set('own', '1'), close: () => client.close() };
      },
    ],
    [
      'iovalkey',
      async () => {
        const server = await startRedis();
        servers.push(server);
        const client = new Valkey({ host: '127.0.0.1', port: server.port, db: 3 });
        return {
          connection: client as unknown as Redis,
          client: { isOpen: true },
          use: () => client.set('own', '1'),
          close: () => client.disconnect(),
        };
      },
    ],
  ];

  it.each(owns)('%s: locks have connections of their own, and the client stays as it is', async (_, make) => {
    const { connection, client, use, close } = await make();
    const wasOpen = client.isOpen;
    const [a, b] = await Promise.all([start({ connection }), start({ connection })]);
    const lease = await a.locks.acquire('x', { leaseMs: 60_000 });
    const waiting = b.locks.acquire('x', { leaseMs: 60_000, waitMs: 60_000 });
    await untilQueued(a, 'x', b);
    await lease.release();
    const next = await waiting;
    expect(next.fencingToken).toBeGreaterThan(lease.fencingToken);
    await next.release();
    await Promise.all([a, b].map(({ locks }) => locks.shutdown(0)));
    expect(client.isOpen).toBe(wasOpen);
    await use();
    await close();
  });
});

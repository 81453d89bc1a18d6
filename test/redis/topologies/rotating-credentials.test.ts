import { Redis } from 'ioredis';
import { LockUnavailableError } from '../../../lib/kernel/api/errors.js';
import type { RedisConnectionOption } from '../../../lib/redis/connection/connection-options.js';
import type { RedisCredentials } from '../../../lib/redis/connection/credentials.js';
import { eventually, rejection } from '../../support/expect/eventually.js';
import { describeOnMachine } from '../../support/redis/describe-on-machine.js';
import { untilQueued, useInstances } from '../../support/redis/lock-instances.js';
import { Rotation } from '../../support/redis/rotation.js';
import { RedisCluster } from '../../support/redis/redis-cluster.js';
import { type RedisServer, startRedis } from '../../support/redis/redis-server.js';
import { SentinelSet } from '../../support/redis/sentinel-set.js';

interface Place {
  readonly connection: object;
  readonly rotation: Rotation;
}

describeOnMachine('credentials that change', () => {
  const servers: RedisServer[] = [];
  const others: AsyncDisposable[] = [];
  const admins: Redis[] = [];
  afterEach(async () => {
    admins.splice(0).forEach((admin) => admin.disconnect());
    await Promise.all(servers.splice(0).map((server) => server.stop()));
    await Promise.all(others.splice(0).map((other) => other[Symbol.asyncDispose]()));
  });
  const start = useInstances(() => ({ host: 'unused.invalid' }));
  const adminOf = (port: number): Redis => {
    const admin = new Redis(port, { disconnectTimeout: 0 });
    admin.on('error', () => {});
    admins.push(admin);
    return admin;
  };
  const rotationOn = async (...ports: number[]): Promise<Rotation> => {
    const rotation = new Rotation(ports.map(adminOf));
    await rotation.begin();
    return rotation;
  };

  const places: [string, () => Promise<Place>][] = [
    ['one server', () => onServer({})],
    ['one server that speaks RESP2', () => onServer({ protocol: 2 })],
    [
      'a primary that a sentinel names',
      async () => {
        const set = await SentinelSet.start();
        others.push(set);
        const { username: _, password: __, ...connection } = set.connection as Record<string, unknown>;
        const rotation = new Rotation([set.admin()]);
        await rotation.begin();
        return { connection: { ...connection, credentials: rotation.credentials }, rotation };
      },
    ],
    [
      'a cluster',
      async () => {
        const cluster = await RedisCluster.start();
        others.push(cluster);
        const rotation = await rotationOn(...cluster.nodes.map(({ server }) => server.port));
        for (const { server } of cluster.nodes)
          await adminOf(server.port).call('ACL', 'SETUSER', 'default', 'resetpass');
        const nodes = cluster.nodes.map(({ server }) => ({ host: '127.0.0.1', port: server.port }));
        return { connection: { cluster: nodes, credentials: rotation.credentials }, rotation };
      },
    ],
  ];

  async function onServer(options: object): Promise<Place> {
    const server = await startRedis();
    servers.push(server);
    const rotation = await rotationOn(server.port);
    const connection = { host: '127.0.0.1', port: server.port, ...options, credentials: rotation.credentials };
    return { connection, rotation };
  }

  it.each(places)('on %s are shown on open connections, without a gap', async (_, make) => {
    const { connection, rotation } = await make();
    rotation.lifeMs = 2_000;
    const [holder, waiter] = await Promise.all([
      start({ connection: connection as RedisConnectionOption }),
      start({ connection: connection as RedisConnectionOption }),
    ]);
    const lease = await holder.locks.acquire('x', { leaseMs: 60_000 });
    const waiting = waiter.locks.acquire('x', { leaseMs: 60_000, waitMs: 60_000 });
    await untilQueued(holder, 'x', waiter);
    const before = rotation.returned.length;
    rotation.lifeMs = undefined;
    await rotation.change();
    // Both have asked again, long before the last password ends.
    await eventually(() => expect(rotation.returned.slice(before)).toContain('secret-1'));
    await eventually(() => expect(rotation.returned.slice(before).length).toBeGreaterThan(1));
    await rotation.endLast();
    await lease.release();
    await (await waiting).release();
    await rotation.kill();
    await eventually(async () => (await holder.locks.acquire('y')).release());
    expect(await rotation.refused()).toBe(0);
  });

  it('of a provider that fails: open connections continue, and the log has a line without a password', async () => {
    const { connection, rotation } = await onServer({});
    const lines: string[] = [];
    let isBroken = false;
    let expiresAt = 0;
    const credentials = async (): Promise<RedisCredentials> => {
      if (isBroken) throw new Error('no token for secret-0');
      expiresAt = Date.now() + 1_000;
      return { ...(await rotation.credentials()), expiresAt };
    };
    const { locks, store } = await start({
      connection: { ...connection, credentials },
      warn: (line) => lines.push(line),
    });
    isBroken = true;
    await eventually(() => expect(lines).toHaveLength(1));
    expect(lines[0]).toContain('credentials() of the connection to Redis failed: no token for ***.');
    await (await locks.acquire('x')).release();
    const [problem] = (await locks.health()).problems;
    expect(problem).toMatchObject({ code: 'CREDENTIALS' });
    // The last ones have expired: no connection is made with them.
    await eventually(() => expect(Date.now()).toBeGreaterThan(expiresAt));
    await rotation.kill();
    const error = await rejection<LockUnavailableError>(locks.acquire('x', { waitMs: 1_500 }));
    expect(error).toBeInstanceOf(LockUnavailableError);
    expect(error.message).toContain('no token for ***');
    isBroken = false;
    await eventually(async () => (await locks.acquire('x', { waitMs: 500 })).release());
    expect(store.connection.describeTrouble()).not.toContain('secret');
    expect(lines).toHaveLength(1);
  });
});

import { statSync, truncateSync } from 'node:fs';
import { Redis } from 'ioredis';
import { eventually } from '../../support/expect/eventually.js';
import { TcpProxy } from '../../support/network/tcp-proxy.js';
import { newestLogOf } from '../../support/redis/append-only-log.js';
import { lockConnection } from '../../support/redis/lock-user.js';
import { useQuorum } from '../../support/redis/quorum-servers.js';
import { type RedisServer, startRedis } from '../../support/redis/redis-server.js';

const LEASE_MS = 3_000;

describe('a node with an append-only file that loses power, and with it the last second', () => {
  let servers: RedisServer[] = [];
  beforeAll(async () => {
    const args = ['--appendonly', 'yes', '--appendfsync', 'everysec'];
    servers = await Promise.all([1, 2, 3].map(() => startRedis({ args })));
  });
  afterAll(() => Promise.all(servers.map((server) => server.stop())));
  const start = useQuorum(() => servers);

  it('does not vote for a second holder', async () => {
    const urls = servers.map(({ url }) => lockConnection(url));
    // The first process does not reach the third node.
    await using proxy = await TcpProxy.start(servers[2]!.port);
    const options = { leaseMs: LEASE_MS, restartQuarantineMs: LEASE_MS, nodeTimeoutMs: 400 };
    const one = await start(options, [urls[0]!, urls[1]!, lockConnection(proxy.url)]);
    const two = await start(options, urls);
    // The nodes have just been started: this one waits until they grant something.
    await (await two.acquire('stock', { waitMs: 60_000 })).release();
    const redis = new Redis(servers[1]!.url);
    await eventually(async () => expect(await redis.exists('lock:{stock}')).toBe(0));
    redis.disconnect();
    const log = newestLogOf(servers[1]!);
    const { size } = statSync(log);

    proxy.dropAll();
    const held = await one.acquire('stock', { waitMs: 60_000 });
    await servers[1]!.kill();
    expect(statSync(log).size).toBeGreaterThan(size);
    truncateSync(log, size);
    await servers[1]!.restart({ keepData: true });
    expect(held.isHeld()).toBe(true);
    const next = await two.acquire('stock', { waitMs: 60_000 });
    expect([held.isHeld(), next.isHeld()]).toEqual([false, true]);
    await next.release();
  });
});

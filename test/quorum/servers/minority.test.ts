import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { eventually } from '../../support/expect/eventually.js';
import { useQuorum, useServers } from '../../support/redis/quorum-servers.js';

const LEASE_MS = 2_500;
/** Three of three have to answer in time: longer than a busy machine takes. */
const QUORUM = { leaseMs: LEASE_MS, nodeTimeoutMs: 400 };

describe('with one or two of five nodes in trouble, users notice nothing', () => {
  const servers = useServers(5);
  const start = useQuorum(servers);

  // One of its own for each test: a node that was stopped may execute something of the last one.
  let stock = '';
  let tests = 0;
  beforeEach(() => void (stock = `stock-${++tests}`));

  const troubles = [
    ['killed', 'kill', 'restart'],
    ['stopped', 'pause', 'resume'],
  ] as const;

  it.each(troubles)('%s before: locks are had, held for several leases, and handed over', async (_, harm, heal) => {
    const [one, two] = [await start(QUORUM), await start(QUORUM)];
    const victims = servers().slice(3);
    await Promise.all(victims.map((server) => server[harm]()));
    try {
      const lease = await one.acquire(stock);
      expect(await two.tryAcquire(stock)).toBeNull();
      const next = two.acquire(stock, { waitMs: 20_000 });
      await sleep(1.2 * LEASE_MS);
      lease.assertHeld();
      expect(await lease.verify()).toBe(true);
      expect((await two.inspect(stock)).holders).toMatchObject([{ fencingToken: lease.fencingToken }]);
      await lease.release();
      const handed = await next;
      expect(handed.isHeld()).toBe(true);
      await handed.release();
    } finally {
      await Promise.all(victims.map((server) => server[heal]()));
    }
  });

  it.each(troubles)('%s while a lease runs: it is renewed, and released', async (_, harm, heal) => {
    const locks = await start(QUORUM);
    const lease = await locks.acquire(stock);
    const victims = servers().slice(0, 2);
    await Promise.all(victims.map((server) => server[harm]()));
    try {
      await sleep(1.2 * LEASE_MS);
      lease.assertHeld();
      await lease.release();
      expect(await locks.tryAcquire(stock)).not.toBeNull();
    } finally {
      await Promise.all(victims.map((server) => server[heal]()));
    }
  });

  it('a node that comes back empty has its vote again after a renewal', async () => {
    const locks = await start(QUORUM);
    const lease = await locks.acquire(stock);
    const node = servers()[4]!;
    await node.restart();
    const redis = new Redis(node.url);
    await eventually(async () => expect(await redis.exists(`lock:{${stock}}`)).toBe(1));
    await lease.release();
    await eventually(async () => expect(await redis.exists(`lock:{${stock}}`)).toBe(0));
    redis.disconnect();
  });

  it('a stopped node does not slow the others', async () => {
    const locks = await start({ leaseMs: 30_000 });
    await (await locks.acquire('warm')).release();
    await servers()[0]!.pause();
    try {
      const startedAt = performance.now();
      for (let i = 0; i < 50; i++) await (await locks.acquire(`stock:${i}`)).release();
      // Generous: waiting for the node would take 50 times its time-out of 300 ms.
      expect(performance.now() - startedAt).toBeLessThan(5_000);
    } finally {
      await servers()[0]!.resume();
    }
  });
});

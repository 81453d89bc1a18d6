import { randomUUID } from 'node:crypto';
import { Cluster } from 'ioredis';
import type { ForeignClient } from '../../../lib/core/api/foreign-lock.js';
import { redisson } from '../../../lib/migration/redisson.js';
import { eventually } from '../../support/expect/eventually.js';
import { useRedisCluster } from '../../support/redis/redis-cluster.js';
import { channelOf, RedissonService } from '../../support/redisson/redisson-service.js';

const LONG_MS = 600_000;
const NEVER = new AbortController().signal;
/** One for each node. */
const NAMES = ['stock', 'parcels'];

const cluster = useRedisCluster({ primaries: 2 });

describe.each([
  ['sharded messages, as since Redisson 3.22', true],
  ['plain messages, as before', false],
])('an RLock on a Redis Cluster, with %s', (_what, sharded) => {
  let java: RedissonService;
  let ours: ForeignClient;

  beforeEach(async () => {
    const nodes = cluster().nodes.map(({ server }) => server.port);
    java = new RedissonService(new Cluster(nodes), { watchdogMs: LONG_MS, sharded });
    const context = { instanceId: 'test', now: () => performance.now(), randomId: () => randomUUID() };
    ours = redisson({ client: cluster().connection }).open(context);
    const owners = await Promise.all(NAMES.map((name) => cluster().primaryOf(name)));
    expect(new Set(owners).size).toBe(2);
  });

  afterEach(async () => {
    java.close();
    await ours.close();
    await cluster().flush();
  });

  it.each(NAMES)('each excludes the other, and our release wakes a thread that waits: %s', async (name) => {
    const claim = ours.claim(name);
    await eventually(async () => expect((await claim.tryAcquire(LONG_MS, NEVER)).status).toBe('held'));
    const waiting = java.thread(1).lock(name);
    await untilSubscribed(name);
    expect(await java.thread(2).tryLock(name)).toBe(false);
    await claim.release(0);
    await waiting;
    expect((await claim.tryAcquire(LONG_MS, NEVER)).status).toBe('busy');
  });

  if (!sharded) {
    it.each(NAMES)('an unlock wakes our waiter: %s', async (name) => {
      await java.thread(1).lock(name);
      const claim = ours.claim(name);
      await eventually(async () => expect((await claim.tryAcquire(LONG_MS, NEVER)).status).toBe('busy'));
      await claim.whenFree!(LONG_MS, NEVER);
      await claim.tryAcquire(LONG_MS, NEVER);
      const woken = claim.whenFree!(LONG_MS, NEVER);
      await java.thread(1).unlock(name);
      await woken;
      expect((await claim.tryAcquire(LONG_MS, NEVER)).status).toBe('held');
    });
  }

  async function untilSubscribed(name: string): Promise<void> {
    await eventually(async () => {
      const counts = cluster().nodes.map(({ admin }) =>
        admin.call('PUBSUB', sharded ? 'SHARDNUMSUB' : 'NUMSUB', channelOf(name)),
      );
      const total = (await Promise.all(counts)).reduce(
        (sum: number, reply) => sum + Number((reply as [string, number])[1]),
        0,
      );
      expect(total).toBe(1);
    });
  }
});

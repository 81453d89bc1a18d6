import { eventually, rejection, untilAborted } from '../../support/expect/eventually.js';
import { TcpProxy } from '../../support/network/tcp-proxy.js';
import { useInstances } from '../../support/redis/lock-instances.js';
import { ReplicatedRedis } from '../../support/redis/replicated-redis.js';

/** Tests the promises of docs/operations/topologies.md about a primary with two replicas. */
describe('durability after a fail-over, with two replicas', () => {
  let servers: ReplicatedRedis[];
  let primary: ReplicatedRedis;
  let front: TcpProxy;
  const start = useInstances(() => ({ host: '127.0.0.1', port: front.port, password: undefined }));

  beforeEach(async () => {
    servers = await Promise.all([0, 1, 2].map(() => ReplicatedRedis.start([])));
    [primary] = servers as [ReplicatedRedis];
    for (const replica of servers.slice(1)) {
      await replica.follow(primary);
      await replica.untilCaughtUp(primary);
    }
    front = await TcpProxy.start(() => primary.port);
  });
  afterEach(async () => {
    await front[Symbol.asyncDispose]();
    for (const server of servers) await server[Symbol.asyncDispose]();
  });

  /** The primary dies. One replica takes its place, and the other one follows that. */
  async function failOver(): Promise<ReplicatedRedis> {
    const [dead, next, last] = servers as [ReplicatedRedis, ReplicatedRedis, ReplicatedRedis];
    await dead.kill();
    await next.admin.replicaof('NO', 'ONE');
    await last.follow(next);
    await last.untilCaughtUp(next);
    primary = next;
    front.cut();
    return dead;
  }

  it('replicas: 2 grants nothing until the third server is back, and ends what is held', async () => {
    const { locks } = await start({ durability: { replicas: 2, timeoutMs: 300 }, defaults: { leaseMs: 2_000 } });
    const held = await locks.acquire('held');
    const dead = await failOver();
    await untilAborted(held.signal);
    expect(held.signal.reason).toMatchObject({ reason: 'notRenewed' });
    const refused = await rejection(locks.acquire('a', { waitMs: 5_000 }));
    expect(refused.message).toMatch(/only 1 of 2 replicas have the changes/);

    await dead.restartFollowing(primary);
    await dead.untilCaughtUp(primary);
    await (await locks.acquire('a', { waitMs: 20_000 })).release();
  }, 60_000);

  it('replicas: 1 continues with the remaining replica', async () => {
    const { locks } = await start({ durability: { replicas: 1, timeoutMs: 300 }, defaults: { leaseMs: 9_000 } });
    const held = await locks.acquire('held');
    for (const replica of servers.slice(1)) await replica.untilCaughtUp(primary);
    await failOver();
    await eventually(async () => (await locks.acquire('a', { waitMs: 5_000 })).release());
    await held.extend();
    expect(await held.verify()).toBe(true);
    await held.release();
  }, 60_000);
});

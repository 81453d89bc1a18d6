import { LockUnavailableError } from '../../../lib/kernel/api/errors.js';
import { CriticalSections } from '../../support/expect/critical-sections.js';
import { eventually, rejection } from '../../support/expect/eventually.js';
import { untilQueued, useInstances } from '../../support/redis/lock-instances.js';
import { describeOnMachine } from '../../support/redis/describe-on-machine.js';
import { type ClusterNode, useRedisCluster } from '../../support/redis/redis-cluster.js';

const NODE_TIMEOUT_MS = 1_500;
const PATIENT = { waitMs: 45_000 };

describeOnMachine('a cluster of three primaries and their replicas', () => {
  const cluster = useRedisCluster({ replicas: 1, nodeTimeoutMs: NODE_TIMEOUT_MS });
  const start = useInstances(() => cluster().connection);
  afterEach(async () => {
    for (const { server, admin } of cluster().nodes) {
      await server.resume();
      if ((await admin.ping().catch(() => 'down')) === 'down') await server.restart({ keepData: true });
    }
    await cluster().untilAgreed();
    await cluster().untilReplicated();
    await cluster().flush();
  });

  const replicaOf = async (primary: ClusterNode): Promise<ClusterNode> => {
    const replicas = (await primary.admin.call('CLUSTER', 'REPLICAS', primary.id)) as string[];
    return cluster().nodes.find(({ id }) => replicas[0]!.startsWith(id))!;
  };
  /** The replica has all that the primary has. */
  const untilCurrent = (primary: ClusterNode) =>
    eventually(async () => {
      const [mine, its] = await Promise.all(
        [primary, await replicaOf(primary)].map(({ admin }) => admin.info('replication')),
      );
      expect(/slave_repl_offset:(\d+)/.exec(its!)![1]).toBe(/master_repl_offset:(\d+)/.exec(mine!)![1]);
    });
  /** By command, without a loss. Redis gives it up after 5 s, as on a busy machine. */
  const promote = async (replica: ClusterNode): Promise<void> => {
    for (let isPrimary = false; !isPrimary;) {
      await replica.admin.call('CLUSTER', 'FAILOVER');
      isPrimary = await eventually(async () => {
        expect(await replica.admin.info('replication')).toContain('role:master');
        return true;
      }, 6_000).catch(() => false);
    }
  };
  /** A name in a slot of another primary. */
  const elsewhere = async (than: ClusterNode): Promise<string> => {
    for (let i = 0; ; i++) if ((await cluster().primaryOf(`lock:{${i}}`)) !== than) return `${i}`;
  };

  it('loses a primary: the lease is kept, waiters keep their places, and all continue', async () => {
    const [a, b] = [await start({ defaults: { leaseMs: 20_000 } }), await start({ defaults: { leaseMs: 20_000 } })];
    const lease = await a.locks.acquire('x');
    const next = b.locks.acquire('x', PATIENT);
    await untilQueued(a, 'x', b);
    const primary = await cluster().primaryOf('lock:{x}');
    await untilCurrent(primary);
    await primary.server.kill();
    // Resources on other nodes are not delayed.
    const other = await elsewhere(primary);
    await (await a.locks.acquire(other, { waitMs: 1_000 })).release();
    const third = a.locks.acquire('x2', PATIENT);
    await eventually(async () => expect((await cluster().primaryOf('lock:{x}')).id).not.toBe(primary.id), 30_000);
    await eventually(async () => expect(await lease.verify()).toBe(true));
    await lease.release();
    const second = await next;
    expect(second.fencingToken).toBeGreaterThan(lease.fencingToken);
    await second.release();
    await (await third).release();
  });

  it('changes primaries under load, by command: each gets its lock, one at a time, and none is lost', async () => {
    // The primary blocks its clients until its replica is up to date.
    const defaults = { leaseMs: 30_000, attemptTimeoutMs: 10_000 };
    const instances = [await start({ defaults }), await start({ defaults }), await start({ defaults })];
    const sections = new CriticalSections();
    let isChanging = true;
    const work = instances.flatMap((instance) =>
      Array.from({ length: 4 }, async () => {
        while (isChanging) await sections.call(instance);
      }),
    );
    for (let i = 0; i < 3; i++) {
      const primary = await cluster().primaryOf('lock:{x}');
      const replica = await replicaOf(primary);
      await promote(replica);
      await cluster().untilReplicated();
    }
    await eventually(() => expect(sections.tokens.length).toBeGreaterThan(100), 30_000);
    isChanging = false;
    await Promise.all(work);
    sections.expectSound(sections.tokens.length);
    // A release may have to be sent again in the background: the old primary lets commands wait for up to 10 s.
    expect(instances.flatMap(({ events }) => events.filter(({ type }) => type === 'lost'))).toEqual([]);
  });

  it('has a primary that hangs: the others continue, and its replica takes over', async () => {
    const { locks } = await start();
    await (await locks.acquire('x')).release();
    const primary = await cluster().primaryOf('lock:{x}');
    const other = await elsewhere(primary);
    await untilCurrent(primary);
    await primary.server.pause();
    const lease = locks.acquire('x', PATIENT);
    for (let i = 0; i < 20; i++) await (await locks.acquire(other, { waitMs: 1_000 })).release();
    expect((await lease).isHeld()).toBe(true);
    await (await lease).release();
  });

  describe('with durability', () => {
    const durably = () =>
      start({ durability: { replicas: 1, timeoutMs: 200 }, defaults: { leaseMs: 20_000, attemptTimeoutMs: 10_000 } });

    it('keeps what was just granted when the primary dies in that moment', async () => {
      const [{ locks }, other] = [await durably(), await start()];
      const primary = await cluster().primaryOf('lock:{x}');
      const names: string[] = [];
      for (let i = 0; names.length < 20; i++) {
        if ((await cluster().primaryOf(`lock:{x${i}}`)) === primary) names.push(`x${i}`);
      }
      const leases = await Promise.all(names.map((name) => locks.acquire(name, PATIENT)));
      await primary.server.kill();
      await eventually(async () => expect(await cluster().primaryOf('lock:{x}')).not.toBe(primary), 30_000);
      for (const lease of leases) await eventually(async () => expect(await lease.verify()).toBe(true), 10_000);
      await (await other.locks.acquire('x', PATIENT)).release();
      for (const name of names) expect(await other.locks.tryAcquire(name)).toBeNull();
    });

    it('grants nothing that no replica has, says so, and leaves nothing', async () => {
      const { locks } = await durably();
      await (await locks.acquire('x', PATIENT)).release();
      const primary = await cluster().primaryOf('lock:{x}');
      await (await replicaOf(primary)).server.pause();
      const error = await rejection<LockUnavailableError>(locks.acquire('x', { waitMs: 0 }));
      expect(error).toBeInstanceOf(LockUnavailableError);
      expect(error.message).toContain('only 0 of 1 replicas have the changes after 200 ms');
      await eventually(async () => expect(await primary.admin.exists('lock:{x}')).toBe(0));
      // Others have their own replicas.
      await (await locks.acquire(await elsewhere(primary), { waitMs: 5_000 })).release();
    });
  });
});

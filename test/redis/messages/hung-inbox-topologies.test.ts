import { setTimeout as sleep } from 'node:timers/promises';
import { eventually } from '../../support/expect/eventually.js';
import { commandCounts, type LockInstance, resetCounts, useInstances } from '../../support/redis/lock-instances.js';
import { describeOnMachine } from '../../support/redis/describe-on-machine.js';
import { type ClusterNode, useRedisCluster } from '../../support/redis/redis-cluster.js';
import { SentinelSet } from '../../support/redis/sentinel-set.js';

/** Records the reports of a store about its instance's messages, on which a waiter relies. */
function listen({ store }: LockInstance): string[] {
  const heard: string[] = [];
  store.listen({
    granted: () => {},
    deliveryUncertain: () => heard.push('deliveryUncertain'),
    reconnected: () => heard.push('reconnected'),
  });
  store.hearing.setNeeded(true);
  return heard;
}

describeOnMachine('the inbox of an instance on a cluster of three', () => {
  const cluster = useRedisCluster();
  const start = useInstances(() => cluster().connection);

  const probesAt = async ({ admin }: ClusterNode): Promise<number> => (await commandCounts(admin)).publish ?? 0;
  const listensOn = async ({ admin }: ClusterNode, { store }: LockInstance): Promise<boolean> => {
    const [, count] = await admin.pubsub('NUMSUB', store.keys.inbox(store.clientId));
    return count === 1;
  };
  /** The node that it listens on, and the others. */
  const nodesOf = async (instance: LockInstance): Promise<[ClusterNode, ClusterNode, ClusterNode]> => {
    const nodes: ClusterNode[] = [];
    for (const node of cluster().nodes) {
      if (await listensOn(node, instance)) nodes.unshift(node);
      else nodes.push(node);
    }
    return nodes as [ClusterNode, ClusterNode, ClusterNode];
  };

  it('is proved through each primary', async () => {
    const instance = await start();
    for (const { admin } of cluster().nodes) await resetCounts(admin);
    const heard = listen(instance);
    await eventually(async () => {
      for (const node of cluster().nodes) expect(await probesAt(node)).toBeGreaterThanOrEqual(2);
    });
    expect([heard, instance.store.hearing.trustedForMs]).toEqual([[], 5_000]);
  });

  it('does not count as hung while another primary is unreachable', async () => {
    const instance = await start();
    const heard = listen(instance);
    const [, away, ...others] = await nodesOf(instance);
    await eventually(async () => expect(await probesAt(away)).toBeGreaterThanOrEqual(1));
    await away.server.pause();
    try {
      await sleep(4_000);
      const from = await probesAt(others[0]!);
      await eventually(async () => expect(await probesAt(others[0]!)).toBeGreaterThanOrEqual(from + 2));
      expect([heard.includes('deliveryUncertain'), instance.store.hearing.trustedForMs]).toEqual([false, 5_000]);
      await eventually(() => expect(instance.store.hearing.silentSince).toBeUndefined());
    } finally {
      await away.server.resume();
    }
  });

  it('moves to another node if its own hangs', async () => {
    const instance = await start();
    const heard = listen(instance);
    const [hung, ...others] = await nodesOf(instance);
    await hung.server.pause();
    try {
      await eventually(() => expect(heard[0]).toBe('deliveryUncertain'));
      // It may have tried the one that hangs again.
      await eventually(async () => {
        const listening = await Promise.all(others.map((node) => listensOn(node, instance)));
        expect(listening).toContain(true);
      });
      await eventually(() => expect(instance.store.hearing.trustedForMs).toBe(5_000));
      expect(heard).toContain('reconnected');
    } finally {
      await hung.server.resume();
    }
  });
});

describeOnMachine('the inbox of an instance behind a sentinel', () => {
  let set: SentinelSet;
  beforeAll(async () => void (set = await SentinelSet.start()), 60_000);
  afterAll(() => set?.[Symbol.asyncDispose]());
  const start = useInstances(() => set.connection);

  it('is relied on as that on one server, and with more care for a while after a fail-over', async () => {
    const instance = await start({ defaults: { attemptTimeoutMs: 20_000 } });
    const heard = listen(instance);
    await eventually(async () => expect((await commandCounts(set.admin())).publish).toBeGreaterThanOrEqual(2));
    expect([heard, instance.store.hearing.trustedForMs]).toEqual([[], Infinity]);
    await set.failOver({ lagging: false });
    await eventually(() => expect(heard).toEqual(expect.arrayContaining(['deliveryUncertain', 'reconnected'])));
    await eventually(() => expect(instance.store.hearing.trustedForMs).toBe(5_000), 30_000);
  });
});

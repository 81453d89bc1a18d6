import { setTimeout } from 'node:timers/promises';
import type { LockHealth } from '../../../lib/features/fleet/core/health/health-checks.js';
import { eventually } from '../../support/expect/eventually.js';
import { useInstances } from '../../support/redis/lock-instances.js';
import { useRedisCluster } from '../../support/redis/redis-cluster.js';
import { describeOnMachine } from '../../support/redis/describe-on-machine.js';
import { SentinelSet } from '../../support/redis/sentinel-set.js';
import { ReplicaPair } from '../topologies/replica-pair.js';

const WITHIN = { timeoutMs: 5_000 };
const codesOf = ({ problems }: LockHealth): string[] => problems.map(({ code }) => code);
const patient = { leaseMs: 30_000, attemptTimeoutMs: 10_000 };

describeOnMachine('locks.health() on a primary that sentinels name', () => {
  let set: SentinelSet;
  beforeAll(async () => void (set = await SentinelSet.start()), 60_000);
  afterAll(() => set?.[Symbol.asyncDispose]());
  const start = useInstances(() => set.connection);

  it('is up, down while there is no primary, and up on the next one', async () => {
    const { locks } = await start({ defaults: patient });
    expect(await locks.health(WITHIN)).toMatchObject({ status: 'up', topology: 'sentinel', servers: { total: 1 } });
    const seen = new Set<string>();
    let isOver = false;
    const failOver = set.failOver({ lagging: false }).finally(() => (isOver = true));
    while (!isOver) {
      seen.add((await locks.health({ timeoutMs: 200 })).status);
      // Without a connection, it answers at once.
      await setTimeout(20);
    }
    await failOver;
    expect(seen).toContain('down');
    await eventually(async () => expect(await locks.health(WITHIN)).toMatchObject({ status: 'up', problems: [] }));
    expect(await set.admin().keys('lock:*')).toEqual([]);
  });
});

describe('locks.health() on a cluster', () => {
  const cluster = useRedisCluster({ args: ['--cluster-require-full-coverage', 'no'] });
  const start = useInstances(() => cluster().connection);

  it('is up if every primary with slots accepts a write, and leaves nothing behind', async () => {
    const { locks } = await start({ defaults: patient });
    for (let i = 0; i < 5; i++) {
      expect(await locks.health(WITHIN)).toMatchObject({
        status: 'up',
        topology: 'cluster',
        servers: { total: 3, needed: 3, up: 3 },
      });
    }
    expect(await cluster().keys()).toEqual([]);
  });

  it('is down with one primary away: the locks in its slots could not be taken', async () => {
    const { locks } = await start({ defaults: patient });
    await eventually(async () => expect(await locks.health(WITHIN)).toMatchObject({ status: 'up' }));
    const [, second] = cluster().nodes;
    await second!.server.pause();
    try {
      const hanging = await locks.health({ timeoutMs: 500 });
      expect(hanging).toMatchObject({ status: 'down', servers: { total: 3, needed: 3, up: 2 } });
      expect(codesOf(hanging)).toEqual(['TIMEOUT']);
    } finally {
      await second!.server.resume();
    }
    await eventually(async () => expect(await locks.health(WITHIN)).toMatchObject({ status: 'up', problems: [] }));
  });

  it('is down while no primary has one of the slots, and up once one has it', async () => {
    const { admin } = cluster().nodes[0]!;
    const each = (...words: (string | number)[]) =>
      Promise.all(
        cluster().nodes.map((node) => node.admin.call('CLUSTER', ...(words as [string])).catch(() => undefined)),
      );
    await each('DELSLOTS', 0);
    try {
      // A process that starts now learns of the slots at once.
      const { locks } = await start({ defaults: patient, patienceMs: 0 });
      await eventually(async () => {
        const health = await locks.health(WITHIN);
        expect([health.status, codesOf(health)]).toEqual(['down', ['NO_SERVER']]);
        expect(JSON.stringify(health)).not.toContain('127.0.0.1');
      });
    } finally {
      await admin.call('CLUSTER', 'ADDSLOTS', 0);
      await cluster().untilAgreed();
    }
    const { locks } = await start({ defaults: patient });
    await eventually(async () => expect(await locks.health(WITHIN)).toMatchObject({ status: 'up', problems: [] }));
  });

  it('is down before the nodes are known', async () => {
    const { locks } = await start({ connection: { cluster: ['redis://127.0.0.1:1'] }, patienceMs: 0 });
    const health = await locks.health();
    expect(health).toMatchObject({ status: 'down', roundTripMs: null, servers: { total: 0, needed: 0, up: 0 } });
    expect(health.problems).toHaveLength(1);
  });
});

describe('locks.health() with durability', () => {
  let pair: ReplicaPair;
  beforeAll(async () => void (pair = await ReplicaPair.start()));
  afterAll(() => pair?.[Symbol.asyncDispose]());
  const start = useInstances(() => pair.connection);

  it('is down while too few replicas confirm: no lock would be granted', async () => {
    const { locks } = await start({ durability: { replicas: 1, timeoutMs: 200 }, defaults: patient });
    await eventually(async () => expect(await locks.health(WITHIN)).toMatchObject({ status: 'up', problems: [] }));
    pair.stall();
    try {
      const health = await locks.health(WITHIN);
      expect([health.status, codesOf(health)]).toEqual(['down', ['REPLICAS']]);
    } finally {
      pair.heal();
    }
    await eventually(async () => expect(await locks.health(WITHIN)).toMatchObject({ status: 'up' }));
    expect((await pair.admin.keys('*')).filter((key) => key !== 'lock:fence')).toEqual([]);
  });
});

import { closeInProcess } from '../../support/process/closing-process.js';
import { describeOnMachine } from '../../support/redis/describe-on-machine.js';
import { useRedisCluster } from '../../support/redis/redis-cluster.js';
import { SentinelSet } from '../../support/redis/sentinel-set.js';
import { ReplicaPair } from './replica-pair.js';

describeOnMachine('when app.close() has resolved, no socket and no timer of the library is open', () => {
  const cluster = useRedisCluster();
  let set: SentinelSet;
  beforeAll(async () => void (set = await SentinelSet.start()), 60_000);
  afterAll(() => set?.[Symbol.asyncDispose]());

  it('of a cluster', async () => {
    expect(await closeInProcess({ connection: cluster().connection })).toMatchObject({ left: [] });
  });

  it('of a primary that sentinels name', async () => {
    expect(await closeInProcess({ connection: set.connection })).toMatchObject({ left: [] });
  });

  it('of a primary with durability that hangs, while a command waits for the one before of its lock', async () => {
    const pair = await ReplicaPair.start();
    try {
      const durability = { replicas: 1, timeoutMs: 50 };
      const { left } = await closeInProcess({ connection: pair.connection, durability }, pair.primaryPid);
      expect(left).toEqual([]);
    } finally {
      process.kill(pair.primaryPid, 'SIGCONT');
      await pair[Symbol.asyncDispose]();
    }
  });
});

import { closeInProcess } from '../../support/process/closing-process.js';
import { describeOnMachine } from '../../support/redis/describe-on-machine.js';
import { useRedisCluster } from '../../support/redis/redis-cluster.js';
import { SentinelSet } from '../../support/redis/sentinel-set.js';

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
});

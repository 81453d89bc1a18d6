import { eventually } from '../../support/expect/eventually.js';
import { type LockInstance, useAdmin, useInstances } from '../../support/redis/lock-instances.js';
import { useRedis } from '../../support/redis/redis-server.js';

describe('a campaign on Redis', () => {
  const redis = useRedis();
  useAdmin(() => redis().url); // empties it before each test
  const start = useInstances(() => redis().url);
  const leadersOf = (instances: LockInstance[]): LockInstance[] =>
    instances.filter(({ locks }) => locks.leadership('mailer')?.isLeader());
  const untilElected = (instances: LockInstance[]): Promise<LockInstance> =>
    eventually(() => {
      const [leader, ...more] = leadersOf(instances);
      expect([leader !== undefined, more]).toEqual([true, []]);
      return leader!;
    });

  it('outlives a Redis that restarts without its data', async () => {
    const instances = await Promise.all([1, 2].map(() => start({ defaults: { leaseMs: 900 } })));
    for (const { locks } of instances) locks.campaign('mailer');
    const leader = await untilElected(instances);
    const { fencingToken } = leader.locks.leadership('mailer')!;
    await redis().restart();
    const next = await eventually(() => {
      const [elected] = leadersOf(instances);
      expect(elected?.locks.leadership('mailer')!.fencingToken).toBeGreaterThan(fencingToken!);
      return elected!;
    });
    await eventually(() => expect(leadersOf(instances)).toEqual([next]));
  });
});

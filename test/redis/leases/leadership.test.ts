import { eventually } from '../../support/expect/eventually.js';
import { type LockInstance, useAdmin, useInstances } from '../../support/redis/lock-instances.js';
import { useRedis } from '../../support/redis/redis-server.js';

describe('a campaign on Redis', () => {
  const redis = useRedis();
  const admin = useAdmin(() => redis().url);
  const start = useInstances(() => redis().url);
  const startMany = (count: number): Promise<LockInstance[]> =>
    Promise.all(Array.from({ length: count }, () => start()));
  const leadersOf = (instances: LockInstance[]): LockInstance[] =>
    instances.filter(({ locks }) => locks.leadership('mailer')?.isLeader());
  const untilElected = (instances: LockInstance[]): Promise<LockInstance> =>
    eventually(() => {
      const [leader, ...more] = leadersOf(instances);
      expect([leader !== undefined, more]).toEqual([true, []]);
      return leader!;
    });

  it('has nothing to do with an ordinary lock or a semaphore of its name, and is listed beside them', async () => {
    const [a, b] = (await startMany(2)) as [LockInstance, LockInstance];
    await using _lock = await b.locks.acquire('mailer');
    const leadership = a.locks.campaign('mailer');
    await leadership.whenElected();
    await a.locks.campaign('permits').whenElected();
    await using _permit = await b.locks.semaphore('permits', { permits: 2 }).acquire();
    const listed = await a.locks.operators.list({ prefix: '' });
    const names = listed.map(({ resource }) => resource).sort();
    expect(names).toEqual(['leader:mailer', 'leader:permits', 'mailer', 'permits']);
    await Promise.all([leadership.resign(), a.locks.leadership('permits')!.resign()]);
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

  it('begins while Redis is down, and leads when it is up', async () => {
    await redis().kill();
    const a = await start({ patienceMs: 0 });
    const leadership = a.locks.campaign('mailer');
    expect(leadership.isLeader()).toBe(false);
    await redis().restart();
    await leadership.whenElected();
    expect(a.events.filter(({ type }) => type === 'campaignFailed')).toEqual([]);
  });

  it('that Redis refuses says so, with growing pauses, and leads once it may', async () => {
    const a = await start();
    await admin().hset('lock:{leader:mailer}', 'somebody', 'else'); // no lock of ours
    await admin().call('ACL', 'SETUSER', 'default', '-evalsha', '-eval');
    const leadership = a.locks.campaign('mailer');
    await eventually(() => expect(a.events.filter(({ type }) => type === 'campaignFailed')).toHaveLength(2));
    await admin().call('ACL', 'SETUSER', 'default', '+evalsha', '+eval');
    await admin().del('lock:{leader:mailer}');
    await leadership.whenElected();
    expect(a.events.filter(({ type }) => type === 'campaignFailed').length).toBeLessThan(8);
  });
});

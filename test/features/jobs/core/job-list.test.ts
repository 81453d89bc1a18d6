import type { JobRecords } from '../../../../lib/features/jobs/core/job-records.js';
import { LockClient } from '../../../../lib/kernel/lock-client.js';
import type { JobStore } from '../../../../lib/features/jobs/core/job-store.js';
import { RedisJobStore } from '../../../../lib/features/jobs/redis/redis-job-store.js';
import { MemoryLockStore } from '../../../../lib/memory/memory-lock-store.js';
import { MemoryServer } from '../../../../lib/memory/memory-server.js';
import { FakeClock } from '../../../support/world/fake-clock.js';

describe('the list of jobs', () => {
  let clock: FakeClock;
  let server: MemoryServer;

  beforeEach(() => {
    clock = new FakeClock();
    server = new MemoryServer(clock);
  });

  function instance(instanceId: string): { jobs: JobStore; records: JobRecords } {
    const store = new MemoryLockStore({ instanceId, server });
    const jobs = new RedisJobStore(store);
    return { jobs, records: new LockClient({ store, clock }).jobs.records(jobs) };
  }

  async function startFleet(size: number): Promise<JobRecords> {
    for (let number = 1; number <= size; number++) {
      await clock.advance(1);
      await instance(`app-${number}`).jobs.register([{ resource: 'cron:report' }]);
    }
    return instance('operator').records;
  }

  const namesOf = (from: number, to: number) =>
    Array.from({ length: from - to + 1 }, (_, index) => ({
      instanceId: `app-${from - index}`,
      seenAt: clock.wallNow() - index,
    }));

  it('names the ten instances seen last, and counts all; get() names all', async () => {
    const records = await startFleet(12);
    const [listed] = await records.list(new Set());
    expect(listed).toMatchObject({ instanceCount: 12, instances: namesOf(12, 3) });
    const job = await records.get('report', new Set());
    expect(job).toMatchObject({ instanceCount: 12, instances: namesOf(12, 1) });
  });

  it('says when a job is due, unless it is still paused then', async () => {
    const { jobs, records } = instance('app');
    const next = clock.wallNow() + 60_000;
    await jobs.register([{ resource: 'cron:report', schedule: '0 3 * * * ', next }]);
    const dueAfter = async (pause: Parameters<JobRecords['pause']>[2]) => {
      await records.pause('report', new Set(), pause);
      return (await records.get('report', new Set())).nextDueAt;
    };
    expect(await dueAfter({ until: next - 1_000 })).toBe(next);
    expect(await dueAfter({ until: next + 1_000 })).toBeUndefined();
    expect(await dueAfter({})).toBeUndefined();
    await records.resume('report', new Set());
    expect((await records.get('report', new Set())).nextDueAt).toBe(next);
  });

  it('neither names nor counts this instance if it has removed the job', async () => {
    await startFleet(3);
    const { records } = instance('app-2');
    const [listed] = await records.list(new Set());
    expect(listed!.instances.map((each) => each.instanceId)).toEqual(['app-3', 'app-1']);
    expect(listed!.instanceCount).toBe(2);
    expect((await records.list(new Set(['report'])))[0]!.instanceCount).toBe(3);
  });

  it('sorts many jobs by name, though Redis returns a part of them at a time', async () => {
    const { jobs, records } = instance('app');
    const names = Array.from({ length: 950 }, (_, index) => `job-${index}`);
    await jobs.register(names.map((name) => ({ resource: `cron:${name}` })));
    const listed = await records.list(new Set());
    expect(listed.map(({ name }) => name)).toEqual(names.toSorted());
  });
});

import { RedisResultStore } from '../../lib/features/once/redis/redis-result-store.js';
import { RedisJobStore } from '../../lib/features/jobs/redis/redis-job-store.js';
import { MemoryLockStore } from '../../lib/memory/memory-lock-store.js';
import { MemoryServer } from '../../lib/memory/memory-server.js';
import { FakeClock } from '../support/world/fake-clock.js';
import type { StoreSubject } from '../contract/subject.js';
import { GrantLog } from '../contract/grant-log.js';
import { describeStoreModel } from './histories/store-model.contract.js';
import { enqueue, newOwner, take } from '../contract/requests.js';
import { describeJobStore, describeLockStore, describeResultStore } from '../contract/describe-stores.js';
import { runs } from '../support/simulation/runs.js';
import { jobsOn } from '../support/world/forgetful.js';

async function inMemory(): Promise<StoreSubject> {
  const clock = new FakeClock();
  const server = new MemoryServer(clock);
  const stores: MemoryLockStore[] = [];
  return {
    async open(instanceId) {
      const store = new MemoryLockStore({ instanceId, server });
      stores.push(store);
      return {
        locks: store,
        jobs: new RedisJobStore(store),
        results: new RedisResultStore(store),
      };
    },
    async kill(instanceId) {
      await stores.find((store) => store.instanceId === instanceId)?.close();
    },
    now: async () => clock.wallNow(),
    pass: (ms) => clock.advance(ms),
    isEmpty: async () => server.isEmpty,
    async close() {
      for (const store of stores) await store.close();
    },
  };
}

describe('the in-memory lock store', () => {
  describeLockStore({ describe, it }, inMemory);
  describe('in any history', () => {
    describeStoreModel(inMemory, {
      numRuns: runs(300),
      withTime: true,
      unitMs: 100,
      slackMs: 0,
      hasRoughReplies: true,
    });
  });

  it('stops its time while a script runs, as Redis does: a lock that ends in that time is not kept forever', async () => {
    let [nowMs, stepMs] = [1_000, 0];
    const clock = { now: () => (nowMs += stepMs), wallNow: () => nowMs, setTimer: () => ({ cancel: () => {} }) };
    const server = new MemoryServer(clock);
    const store = new MemoryLockStore({ instanceId: 'one', server });
    const owner = newOwner(store, 'stock');
    await take(store, owner);
    // As where the process is stopped: 5 ms go by from one look at the clock to the next, and 4 are left.
    stepMs = 5;
    await store.retain(owner, { minHoldMs: 10_000, leftMs: 4 });
    stepMs = 0;
    nowMs += 100;
    expect(server.held()).toEqual([]);
  });

  it('tells of a grant later, as a connection would: not within the call that caused it', async () => {
    const store = new MemoryLockStore({ instanceId: 'one' });
    const grants = new GrantLog(store);
    const owner = newOwner(store, 'stock');
    await take(store, owner);
    await enqueue(store, newOwner(store, 'stock'));
    const released = store.release(owner);
    expect(grants.size).toBe(0);
    await released;
    expect((await grants.next()).resource).toBe('stock');
  });
});

describe('the in-memory job store', () => describeJobStore({ describe, it }, inMemory));

describe('the in-memory store of results', () => describeResultStore({ describe, it }, inMemory));

describe('the in-memory server', () => {
  it('keeps tokens growing when the wall clock steps back', async () => {
    const clock = new FakeClock();
    const store = new MemoryLockStore({ instanceId: 'x', server: new MemoryServer(clock) });
    const before = await take(store, newOwner(store, 'a'));
    clock.wallNow = () => 0;
    expect(await take(store, newOwner(store, 'b'))).toBeGreaterThan(before);
  });

  it.each([
    [47, 'weekly UTC'],
    [49, 'hourly UTC'],
  ])(
    'knows after %i hours, in which only instances of another release asked, the schedule %s',
    async (hours, known) => {
      const HOUR_MS = 3_600_000;
      const clock = new FakeClock();
      const server = new MemoryServer(clock);
      const jobs = new RedisJobStore(new MemoryLockStore({ instanceId: 'new', server }));
      await jobs.register([{ resource: 'job', schedule: 'weekly UTC', next: clock.wallNow() + 168 * HOUR_MS }]);
      await clock.advance(hours * HOUR_MS);
      const [at, next] = [clock.wallNow(), clock.wallNow() + HOUR_MS];
      await jobsOn(server).claim(
        { resource: 'job', tick: 'now' },
        {
          owner: { resource: 'job', id: 'old/1', mode: 'exclusive' },
          leaseMs: 50,
          claimTtlMs: 90_000,
          overlap: 'skip',
          takeOver: 'nothing',
          due: { at, earlyMs: 0, lateMs: 1_000 },
          note: { kind: 'tick', historySize: 10, schedule: 'hourly UTC', next },
        },
      );
      expect((await jobs.look(['job'], 0))[0]).toMatchObject({ schedule: known });
    },
  );

  it('keeps no ticks of the past', async () => {
    const clock = new FakeClock();
    const server = new MemoryServer(clock);
    const claims = jobsOn(server);
    for (let minute = 0; minute < 100; minute++) {
      const owner = { resource: 'job', id: `one/${minute}`, mode: 'exclusive' as const };
      const claim = { owner, leaseMs: 50, claimTtlMs: 90_000, overlap: 'skip' as const, takeOver: 'nothing' as const };
      await claims.claim({ resource: 'job', tick: `minute ${minute}` }, claim);
      await clock.advance(60_000);
    }
    expect(server.redis.keys().filter((key) => key.includes(':tick:'))).toHaveLength(1);
  });
});

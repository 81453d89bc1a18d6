import { MemoryJobStore } from '../../lib/memory/memory-job-store.js';
import { MemoryLatchStore } from '../../lib/memory/memory-latch-store.js';
import { MemoryLockStore } from '../../lib/memory/memory-lock-store.js';
import { MemoryServer } from '../../lib/memory/memory-server.js';
import { MemoryTickStore } from '../../lib/memory/memory-tick-store.js';
import { FakeClock } from '../support/world/fake-clock.js';
import { GrantLog } from '../support/expect/grant-log.js';
import { describeDeadHolder } from './contract/dead-holder.contract.js';
import { describeDowngrade } from './contract/downgrade.contract.js';
import { describeGrants, describeGrantTerms } from './contract/grants.contract.js';
import { describeLatchHistories } from './other-ports/latch-histories.contract.js';
import { describeLatchStore } from './other-ports/latch-store.contract.js';
import { describeLockStore } from './contract/lock-store.contract.js';
import { describeOperators } from './contract/operators.contract.js';
import { describeQueue } from './contract/queue.contract.js';
import { describeReadWrite } from './contract/read-write.contract.js';
import { describeRetention } from './contract/retention.contract.js';
import { describeRotation } from './contract/rotation.contract.js';
import { describeLabels } from './contract/label.contract.js';
import { describeSeenHolders } from './contract/seen-holders.contract.js';
import { describeSemaphore } from './contract/semaphore.contract.js';
import { describeSemaphoreSize } from './contract/semaphore-size.contract.js';
import { describeStoreModel } from './histories/store-model.contract.js';
import { newOwner, enqueue, type Subject, take } from './subjects/subject.js';
import { describeJobStore } from './other-ports/job-store.contract.js';
import { describeTickStore } from './other-ports/tick-store.contract.js';
import { describeTransfer } from './contract/transfer.contract.js';
import { describeWatch } from './other-ports/watch.contract.js';
import { describeWriter } from './contract/writer.contract.js';
import { runs } from '../support/simulation/runs.js';

async function inMemory(): Promise<Subject> {
  const clock = new FakeClock();
  const server = new MemoryServer(clock);
  const stores: MemoryLockStore[] = [];
  return {
    async open(instanceId) {
      const store = new MemoryLockStore({ instanceId, server });
      stores.push(store);
      return {
        store,
        tickStore: new MemoryTickStore(server),
        latches: new MemoryLatchStore(store),
        jobs: new MemoryJobStore(store),
      };
    },
    async kill(instanceId) {
      await stores.find((store) => store.instanceId === instanceId)?.close();
    },
    now: async () => clock.wallNow(),
    pass: (ms) => clock.advance(ms),
    async expireLatch(name) {
      server.latches.delete(name);
      server.latchWaiters.delete(name);
    },
    isEmpty: async () => server.isEmpty,
    async close() {
      for (const store of stores) await store.close();
    },
  };
}

describe('the in-memory lock store', () => {
  describeLockStore(inMemory);
  describe('the queue', () => describeQueue(inMemory));
  describe('grants', () => describeGrants(inMemory));
  describe('grants', () => describeGrantTerms(inMemory));
  describe('a dead holder', () => describeDeadHolder(inMemory));
  describe('rotate', () => describeRotation(inMemory));
  describe('what is seen of the holders', () => describeSeenHolders(inMemory));
  describe('the label', () => describeLabels(inMemory));
  describe('a read/write lock', () => describeReadWrite(inMemory));
  describe('a writer', () => describeWriter(inMemory));
  describe('downgrade', () => describeDowngrade(inMemory));
  describe('a semaphore', () => describeSemaphore(inMemory));
  describe('a semaphore', () => describeSemaphoreSize(inMemory));
  describe('retain', () => describeRetention(inMemory));
  describe('transfer', () => describeTransfer(inMemory));
  describe('an operator', () => describeOperators(inMemory));
  describe('a watcher', () => describeWatch(inMemory));
  describe('in any history', () => {
    describeStoreModel(inMemory, {
      numRuns: runs(300),
      withTime: true,
      unitMs: 100,
      slackMs: 0,
      hasRoughReplies: false,
    });
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

describe('the in-memory tick store', () => describeTickStore(inMemory));

describe('the in-memory job store', () => describeJobStore(inMemory));

describe('the in-memory latch store', () => {
  describeLatchStore(inMemory);
  describeLatchHistories(inMemory, runs(300));
});

describe('the in-memory server', () => {
  it('keeps tokens growing when the wall clock steps back', async () => {
    const clock = new FakeClock();
    const server = new MemoryServer(clock);
    const before = server.take({ resource: 'a', id: 'x/1', mode: 'exclusive' }, 1_000);
    clock.wallNow = () => 0;
    expect(server.take({ resource: 'b', id: 'x/2', mode: 'exclusive' }, 1_000)).toBeGreaterThan(before);
  });

  it('keeps no ticks of the past', async () => {
    const clock = new FakeClock();
    const server = new MemoryServer(clock);
    const tickStore = new MemoryTickStore(server);
    for (let minute = 0; minute < 100; minute++) {
      const owner = { resource: 'job', id: `one/${minute}`, mode: 'exclusive' as const };
      const claim = { owner, leaseMs: 50, keepMs: 90_000, overlap: 'skip' as const, takeOver: 'nothing' as const };
      await tickStore.claim({ resource: 'job', tick: `minute ${minute}` }, claim);
      await clock.advance(60_000);
    }
    expect(server.claims.size).toBe(1);
  });
});

import { InMemoryLockStore } from '../../lib/core/in-memory-lock-store.js';
import { InMemoryServer } from '../../lib/core/in-memory-server.js';
import { InMemoryTickLedger } from '../../lib/core/in-memory-tick-ledger.js';
import { FakeClock } from '../support/fake-clock.js';
import { describeLockStore } from './lock-store.contract.js';
import type { Subject } from './subject.js';
import { describeTickLedger } from './tick-ledger.contract.js';
import { describeWakeUps } from './wake-ups.contract.js';

async function inMemory(): Promise<Subject> {
  const clock = new FakeClock();
  const server = new InMemoryServer(clock);
  const stores: InMemoryLockStore[] = [];
  return {
    async open(instanceId) {
      const store = new InMemoryLockStore({ instanceId, server });
      stores.push(store);
      return { store, ledger: new InMemoryTickLedger(server) };
    },
    async kill(instanceId) {
      await stores.find((store) => store.instanceId === instanceId)?.close();
    },
    pass: (ms) => clock.advance(ms),
    async close() {
      for (const store of stores) await store.close();
    },
  };
}

describe('the in-memory lock store', () => {
  describeLockStore(inMemory);
  describe('wake-ups', () => describeWakeUps(inMemory));
});

describe('the in-memory tick ledger', () => describeTickLedger(inMemory));

describe('the in-memory server', () => {
  it('keeps tokens growing when the wall clock steps back', async () => {
    const clock = new FakeClock();
    const server = new InMemoryServer(clock);
    const before = server.take('a', 'x/1', 'exclusive', 1_000);
    clock.wallNow = () => 0;
    expect(server.take('b', 'x/2', 'exclusive', 1_000)).toBeGreaterThan(before);
  });

  it('keeps nothing of a resource after its last release', async () => {
    const server = new InMemoryServer(new FakeClock());
    const store = new InMemoryLockStore({ instanceId: 'one', server });
    const owner = { resource: 'stock', owner: 'one/1', mode: 'exclusive' as const };
    await store.acquire(owner, 1_000, true);
    await store.acquire({ ...owner, owner: 'one/2' }, 1_000, true);
    expect(server.isEmpty).toBe(false);
    await store.release(owner, true);
    expect(server.isEmpty).toBe(true);
  });

  it('keeps no ticks of the past', async () => {
    const clock = new FakeClock();
    const server = new InMemoryServer(clock);
    const ledger = new InMemoryTickLedger(server);
    for (let minute = 0; minute < 100; minute++) {
      const ownership = { resource: 'job', owner: `one/${minute}`, mode: 'exclusive' as const };
      const claim = { ownership, leaseMs: 50, keepMs: 90_000, overlap: 'skip' as const, rescue: false };
      await ledger.claim({ resource: 'job', tick: `minute ${minute}` }, claim);
      await clock.advance(60_000);
    }
    expect(server.claims.size).toBe(1);
  });
});

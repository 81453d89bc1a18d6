// Preloaded into the process that runs the test of docs/guide/own-store.md: the schema that the reader has.
import { MemoryLockStore } from '../../../lib/memory/memory-lock-store.js';
import { MemoryServer } from '../../../lib/memory/memory-server.js';
import { FakeClock } from '../../support/world/fake-clock.js';
import { BROKEN_LOCKS } from './broken-stores.js';
import { jobsOn } from '../../support/world/forgetful.js';

const Locks = process.env['BROKEN'] ? BROKEN_LOCKS[process.env['BROKEN']]!.locks! : MemoryLockStore;

async function createSchema() {
  const clock = new FakeClock();
  const server = new MemoryServer(clock);
  const opened: MemoryLockStore[] = [];
  return {
    async openStores(instanceId: string) {
      const locks = new Locks({ instanceId, server });
      opened.push(locks);
      return { locks, jobs: jobsOn(server) };
    },
    closeStores: async (instanceId: string) => opened.find((one) => one.instanceId === instanceId)?.close(),
    now: async () => clock.wallNow(),
    pass: (ms: number) => clock.advance(ms),
    countRows: async () => (server.isEmpty ? 0 : 1),
    drop: async () => void (await Promise.all(opened.map((locks) => locks.close()))),
  };
}

Object.assign(globalThis, { createSchema });

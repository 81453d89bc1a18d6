import { MemoryJobStore } from '../../memory/memory-job-store.js';
import { MemoryLatchStore } from '../../memory/memory-latch-store.js';
import { MemoryLockStore } from '../../memory/memory-lock-store.js';
import { MemoryServer } from '../../memory/memory-server.js';
import type { StartLog } from '../log/start-log.js';
import type { ResolvedModuleOptions } from './module-options.js';

export function createInMemory({ instanceId }: ResolvedModuleOptions, log: StartLog) {
  if (process.env['NODE_ENV'] === 'production') log.inMemory();
  const server = new MemoryServer();
  const store = new MemoryLockStore({ instanceId, server });
  return {
    locks: store,
    latches: new MemoryLatchStore(store),
    jobs: new MemoryJobStore(store),
  };
}

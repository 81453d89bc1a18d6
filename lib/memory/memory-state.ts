import type { MemoryLock } from './memory-lock.js';
import type { MemoryServer } from './memory-server.js';
import type { LockHolder, LockState, LockWaiter } from '../core/store/lock-store.js';
import { instanceOf } from '../core/store/owner-id.js';

/** What the server knows of one resource, without the secrets of those who hold it or wait for it. */
export function readState({ locks, queues }: MemoryServer, resource: string): LockState {
  const lock = locks.get(resource);
  const waiters = queues.alive(resource).map(({ owner, mode, permits }): LockWaiter => {
    return { instanceId: instanceOf(owner), mode, ...(permits && { permits: permits.count }) };
  });
  if (!lock) return { resource, mode: null, holders: [], ttlMs: 0, waiters };
  const { mode, lastEndMs: ttlMs, total, available } = lock;
  const state = { resource, mode, holders: readHolders(lock), ttlMs, waiters };
  return mode === 'semaphore' ? { ...state, permits: { total, available } } : state;
}

function readHolders(lock: MemoryLock): LockHolder[] {
  return lock.members().map(({ owner, fencingToken, depth, permits }) => {
    const holder = { instanceId: instanceOf(owner), fencingToken, ttlMs: lock.ttlMs(owner), depth };
    return lock.mode === 'semaphore' ? { ...holder, permits } : holder;
  });
}

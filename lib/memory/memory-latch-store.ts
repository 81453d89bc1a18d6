import type { MemoryLockStore } from './memory-lock-store.js';
import type { MemoryLatch, MemoryServer } from './memory-server.js';
import type { LatchState, LatchStore, LatchSpec } from '../core/store/latch-store.js';

/**
 * Latches in the memory of **one process**, for tests without Redis. It uses the server of the lock store and is closed
 * with it.
 */
export class MemoryLatchStore implements LatchStore {
  constructor(private readonly store: MemoryLockStore) {}

  async countDown(spec: LatchSpec, id: string): Promise<LatchState> {
    const server = this.store.connected();
    const latch = existing(server, spec);
    if (latch.count === spec.count && !latch.isOpen) {
      latch.ids.add(id);
      if (latch.ids.size >= latch.count) open(server, spec.name, latch);
    }
    return stateOf(server, spec, latch);
  }

  async wait(spec: LatchSpec, placeMs: number): Promise<LatchState> {
    const server = this.store.connected();
    const latch = existing(server, spec);
    if (latch.count === spec.count && !latch.isOpen) {
      const waiters = server.latchWaiters.get(spec.name) ?? new Map<string, number>();
      waiters.set(this.store.clientId, server.clock.now() + placeMs);
      server.latchWaiters.set(spec.name, waiters, placeMs);
    }
    return stateOf(server, spec, latch);
  }

  async read(spec: LatchSpec): Promise<LatchState> {
    const server = this.store.connected();
    return stateOf(server, spec, server.latches.get(spec.name) ?? created(spec));
  }

  trouble(): undefined {}
}

function created({ count }: LatchSpec): MemoryLatch {
  return { count, ids: new Set(), isOpen: false };
}

function existing(server: MemoryServer, spec: LatchSpec): MemoryLatch {
  let latch = server.latches.get(spec.name);
  if (latch === undefined) server.latches.set(spec.name, (latch = created(spec)), spec.ttlMs);
  return latch;
}

/** Opens the latch and tells its waiters. It is kept at least until the last of their places expires. */
function open(server: MemoryServer, name: string, latch: MemoryLatch): void {
  const now = server.clock.now();
  let ttlMs = server.latches.ttlMs(name);
  for (const [clientId, expiresAt] of server.latchWaiters.get(name) ?? []) {
    if (expiresAt <= now) continue;
    ttlMs = Math.max(ttlMs, expiresAt - now);
    server.tellOpened(clientId, name, latch.count);
  }
  latch.isOpen = true;
  latch.ids.clear();
  server.latchWaiters.delete(name);
  server.latches.set(name, latch, ttlMs);
}

function stateOf(server: MemoryServer, { name }: LatchSpec, latch: MemoryLatch): LatchState {
  const remaining = latch.isOpen ? 0 : latch.count - latch.ids.size;
  return { count: latch.count, remaining, ttlMs: server.latches.ttlMs(name) };
}

import type { LockStoreError } from '../core/store/store-error.js';
import type { LatchState, LatchStore, LatchSpec } from '../core/store/latch-store.js';
import type { ScriptLockStore } from './script-lock-store.js';
import { COUNT_DOWN, READ_LATCH, WAIT_FOR_LATCH } from './script/scripts.js';

/** Latches: a hash for each, and a sorted set of the clients that wait for it. Both expire by themselves. */
export class RedisLatchStore implements LatchStore {
  constructor(private readonly store: ScriptLockStore) {}

  countDown({ name, count, ttlMs }: LatchSpec, id: string): Promise<LatchState> {
    const keys = this.#keys(name);
    const args = [count, ttlMs, id, this.store.keys.inbox('')];
    return this.store.run(COUNT_DOWN, keys, args, (reply) => {
      if (hasMoreToTell(reply)) void this.#tellOthers(keys, args);
      return readState(reply);
    });
  }

  /** The latch is open. One script tells a bounded number of clients. The others find out when they ask again. */
  async #tellOthers(keys: readonly string[], args: readonly (string | number)[]): Promise<void> {
    try {
      while (await this.store.run(COUNT_DOWN, keys, args, hasMoreToTell));
    } catch {
      // Redis does not answer, or the store was closed.
    }
  }

  wait({ name, count, ttlMs }: LatchSpec, placeMs: number): Promise<LatchState> {
    const args = [count, ttlMs, this.store.clientId, placeMs];
    return this.store.run(WAIT_FOR_LATCH, this.#keys(name), args, readState);
  }

  read({ name, count }: LatchSpec): Promise<LatchState> {
    return this.store.run(READ_LATCH, [this.store.keys.latch(name)], [count], readState);
  }

  trouble(name: string): LockStoreError | undefined {
    return this.store.troubleAt(this.store.keys.latch(name));
  }

  #keys(name: string): string[] {
    return [this.store.keys.latch(name), this.store.keys.latchWaiters(name)];
  }
}

function hasMoreToTell(reply: unknown): boolean {
  return (reply as unknown[]).length > 3;
}

function readState(reply: unknown): LatchState {
  const [count, remaining, ttlMs] = reply as [number, number, number];
  return { count, remaining, ttlMs };
}

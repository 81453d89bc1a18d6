import { RedisLatchStore } from '../../../lib/redis/redis-latch-store.js';
import { MemoryLockStore } from '../../../lib/memory/memory-lock-store.js';
import { MemoryServer } from '../../../lib/memory/memory-server.js';
import type { Latches } from '../../../lib/core/latch/latches.js';
import { LockClient, type LockClientOptions } from '../../../lib/core/lock-client.js';
import { FakeClock } from './fake-clock.js';
import { ScriptedLatchStore } from './scripted-latch-store.js';
import { SeededRandom } from './seeded-random.js';

/** One process that uses latches. */
export interface LatchInstance {
  readonly client: LockClient;
  readonly latches: Latches;
  readonly store: ScriptedLatchStore;
}

/** Several instances on one in-memory server, with one clock that the test moves. */
export class LatchWorld {
  readonly clock = new FakeClock();
  readonly server = new MemoryServer(this.clock);
  #instances = 0;

  instance(name: string, options: Partial<LockClientOptions> = {}): LatchInstance {
    const inner = new MemoryLockStore({ instanceId: name, server: this.server });
    const store = new ScriptedLatchStore(new RedisLatchStore(inner), inner, () => this.clock.now());
    const random = new SeededRandom(++this.#instances);
    const client = new LockClient({ store: inner, clock: this.clock, random, ...options });
    return { client, latches: client.latches(store), store };
  }
}

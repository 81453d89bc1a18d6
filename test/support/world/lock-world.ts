import type { LockEvent } from '../../../lib/kernel/events/events.js';
import { MemoryLockStore } from '../../../lib/memory/memory-lock-store.js';
import { MemoryServer } from '../../../lib/memory/memory-server.js';
import { LockClient } from '../../../lib/kernel/lock-client.js';
import type { LockClientOptions } from '../../../lib/kernel/wire.js';
import { FakeClock } from './fake-clock.js';
import { ScriptedStore } from './scripted-store.js';
import { SeededRandom } from './seeded-random.js';

/** One process of the fleet. */
export interface Instance {
  readonly locks: LockClient;
  readonly store: ScriptedStore;
  readonly events: LockEvent[];
}

/** Several instances on one in-memory server, with one clock that the test moves. */
export class LockWorld {
  readonly clock = new FakeClock();
  readonly server = new MemoryServer(this.clock);
  #instances = 0;

  instance(name: string, options: Partial<LockClientOptions> = {}): Instance {
    const inner = new MemoryLockStore({ instanceId: name, server: this.server });
    const store = new ScriptedStore(inner, () => this.clock.now());
    const events: LockEvent[] = [];
    const random = new SeededRandom(++this.#instances);
    const locks = new LockClient({
      store,
      clock: this.clock,
      random,
      observers: [(e) => events.push(e)],
      ...options,
    });
    return { locks, store, events };
  }
}

/** The events of one type. */
export function eventsOf<T extends LockEvent['type']>(
  { events }: Instance,
  type: T,
): Extract<LockEvent, { type: T }>[] {
  return events.filter((event): event is Extract<LockEvent, { type: T }> => event.type === type);
}

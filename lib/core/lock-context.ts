import { AsyncLocalStorage } from 'node:async_hooks';
import type { Hold } from './hold.js';
import type { Lease } from './lease.js';

/** One resource held in an async context, and what was held around it. */
interface ContextEntry {
  /** The lock client it belongs to: applications in one process do not see each other's leases. */
  readonly space: object;
  readonly lease: Lease;
  readonly holds: readonly Hold[];
  readonly outer: ContextEntry | undefined;
}

const STORAGE_KEY = Symbol.for('nestjs-redis-lock:async-context:1');
const shared = globalThis as { [STORAGE_KEY]?: AsyncLocalStorage<ContextEntry> };

/** One for the process, even when the package is loaded both as an ES module and as CommonJS. */
const storage = (shared[STORAGE_KEY] ??= new AsyncLocalStorage<ContextEntry>());

/** Which leases the running async context holds. A lease that was released counts no more, whoever still sees it. */
export class LockContext {
  /** Runs the work so that everything it calls or awaits sees the lease. */
  run<T>(lease: Lease, holds: readonly Hold[], work: () => T): T {
    return storage.run({ space: this, lease, holds, outer: storage.getStore() }, work);
  }

  /** The innermost live hold of this resource. */
  hold(resource: string): Hold | undefined {
    for (const { holds } of this.#entries()) {
      const hold = holds.find(({ ownership }) => ownership.resource === resource);
      if (hold?.isHeld()) return hold;
    }
    return undefined;
  }

  /** Whether this context was entered through the given hold. */
  has(hold: Hold): boolean {
    for (const { holds } of this.#entries()) if (holds.includes(hold)) return true;
    return false;
  }

  /** The innermost lease that is not released, of the resource if one is named. One that was lost is still shown. */
  lease(resource?: string): Lease | undefined {
    for (const { lease, holds } of this.#entries()) {
      if (resource !== undefined && !lease.resources.includes(resource)) continue;
      if (holds.every((hold) => !hold.isReleased)) return lease;
    }
    return undefined;
  }

  *#entries(): Generator<ContextEntry> {
    for (let entry = storage.getStore(); entry; entry = entry.outer) if (entry.space === this) yield entry;
  }
}

import { createHash } from 'node:crypto';
import type { ForeignClient, ForeignContext, ForeignLock, ForeignRun } from '../api/foreign-lock.js';
import { inRootContext } from '../util/async-contexts.js';
import { ForeignHold } from './foreign-hold.js';
import type { Runtime } from './runtime.js';

/** A foreign lock that a call takes beside its own, and its key there. */
export interface AlsoLock {
  readonly lock: ForeignLock;
  readonly key: string;
  /** Whether the call fails as soon as the lock is found to be busy. @default where `waitMs` is 0 */
  readonly isBusyFinal?: boolean;
  /** Whether an old process is waited for as long as it has the lock. `waitMs` then counts from the last answer. */
  readonly isPatient?: boolean;
  /** The fencing token of the run, where a singleton job takes it. */
  readonly runToken?: number;
}

/** The foreign lock of a call; `undefined` where it has none. @throws what the user's function throws */
export function alsoLockOf(lock: ForeignLock | undefined, resource: string): AlsoLock | undefined {
  if (lock === undefined) return undefined;
  const key = lock.keyOf(resource);
  return key === undefined ? undefined : { lock, key };
}

/** The locks of other libraries that this client uses, and has opened. */
export class ForeignLocks {
  readonly #clients = new Map<ForeignLock, ForeignClient>();
  #claims = 0;

  constructor(
    private readonly deps: Pick<Runtime, 'clock' | 'random' | 'store' | 'orphanReleases'>,
    private readonly open: (lock: ForeignLock, context: ForeignContext) => ForeignClient,
  ) {}

  /** A new claim, with an owner value of its own. Sends nothing. */
  claim(resource: string, { lock, key, runToken }: AlsoLock): ForeignHold {
    const { clock, random, store, orphanReleases } = this.deps;
    let client = this.#clients.get(lock);
    if (client === undefined) {
      const context = { instanceId: store.instanceId, now: () => clock.now(), randomId: () => random.id() };
      // Its connections must not keep the data of the caller.
      client = inRootContext(() => this.open(lock, context));
      this.#clients.set(lock, client);
    }
    const run = runToken === undefined ? undefined : { name: this.#nameOf(resource), token: runToken };
    const claim = client.claim(key, run);
    const owner = { resource, id: `alsoLock/${++this.#claims}`, mode: 'exclusive' } as const;
    const foreign = new ForeignHold(owner, lock, key, claim, clock);
    orphanReleases.retain(owner, { releasedBy: foreign });
    return foreign;
  }

  /** A digest: any program that may read the keys of the old code sees it. */
  #nameOf(resource: string): ForeignRun['name'] {
    const names = JSON.stringify([this.deps.store.location ?? '', resource]);
    return `nestjs-redis-lock:${createHash('sha256').update(names).digest('hex').slice(0, 16)}:`;
  }

  /** Closes what was opened. */
  async close(): Promise<void> {
    await Promise.allSettled([...this.#clients.values()].map(async (client) => client.close()));
  }
}

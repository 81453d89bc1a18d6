import { createHash } from 'node:crypto';
import { InvalidLockOptionsError, quoteResource } from '../../core/api/errors.js';
import {
  type ForeignClient,
  type ForeignContext,
  type ForeignLock,
  type ForeignRun,
  isForeignMode,
} from '../../core/api/foreign-lock.js';
import type { Runtime } from '../../core/holding/runtime.js';
import type { SecondLocks } from '../../core/lease/lease-deps.js';
import type { LeaseTransfer } from '../../core/lease/transfer-text.js';
import { inRootContext } from '../../core/util/async-contexts.js';
import { quote } from '../../core/util/quoted.js';
import { AlsoLock } from './also-lock.js';
import { ForeignHold } from './foreign-hold.js';

/** The locks of other libraries that one lock client takes beside its own, and what it has opened for them. */
export class AlsoLocks implements SecondLocks {
  readonly #clients = new Map<ForeignLock, ForeignClient>();
  #claims = 0;

  constructor(
    private readonly deps: Runtime,
    private readonly open = (lock: ForeignLock, context: ForeignContext): ForeignClient => lock.open(context),
  ) {}

  of(lock: ForeignLock, resource: string): AlsoLock | undefined {
    const key = lock.keyOf(resource);
    if (key === undefined) return undefined;
    return new AlsoLock({ resource, lock, key, claim: (runToken) => this.#claim(resource, lock, key, runToken) });
  }

  checkNames(names: readonly string[], lock: ForeignLock): void {
    const keys = new Map<string, string>();
    for (const name of names) {
      const key = lock.keyOf(name);
      if (key === undefined) continue;
      const other = keys.get(key);
      if (other !== undefined) {
        throw new InvalidLockOptionsError(
          `One call cannot lock ${quoteResource(other)} and ${quoteResource(name)}: for both, alsoLock takes the lock ` +
            `${quote(key)} of ${lock.library}, which has one holder. Until all old processes are gone, lock ` +
            'one resource that stands for both.',
          'alsoLock',
        );
      }
      keys.set(key, name);
    }
  }

  checkMayAdopt({ resource, mode }: LeaseTransfer, lock: ForeignLock): void {
    if (!isForeignMode(mode) || lock.keyOf(resource) === undefined) return;
    throw new InvalidLockOptionsError(
      `${quoteResource(resource)} cannot be adopted while the module takes the lock of ${lock.library} too (alsoLock): ` +
        'that lock is not transferred. Let the job acquire the lock itself, or let the key function of alsoLock return ' +
        'undefined for this resource.',
      'alsoLock',
    );
  }

  async close(): Promise<void> {
    await Promise.allSettled([...this.#clients.values()].map(async (client) => client.close()));
  }

  /**
   * A new claim, with an owner value of its own. Sends nothing.
   *
   * @param runToken the fencing token of the run, where a singleton job takes it
   */
  #claim(resource: string, lock: ForeignLock, key: string, runToken: number | undefined): ForeignHold {
    const { clock, random, store, orphanReleases } = this.deps;
    let client = this.#clients.get(lock);
    if (client === undefined) {
      const context = { instanceId: store.instanceId, now: () => clock.now(), randomId: () => random.id() };
      // Its connections must not keep the data of the caller.
      client = inRootContext(() => this.open(lock, context));
      this.#clients.set(lock, client);
    }
    const run = runToken === undefined ? undefined : { name: this.#nameOf(resource), token: runToken };
    const owner = { resource, id: `alsoLock/${++this.#claims}`, mode: 'exclusive' } as const;
    const foreign = new ForeignHold(owner, lock, key, client.claim(key, run), clock);
    orphanReleases.retain(owner, { releasedBy: foreign });
    return foreign;
  }

  /** A digest: any program that may read the keys of the old code sees it. */
  #nameOf(resource: string): ForeignRun['name'] {
    const names = JSON.stringify([this.deps.store.location ?? '', resource]);
    return `nestjs-redis-lock:${createHash('sha256').update(names).digest('hex').slice(0, 16)}:`;
  }
}

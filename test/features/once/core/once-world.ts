import { OnceCalls } from '../../../../lib/features/once/core/once-calls.js';
import type { OnceOptions } from '../../../../lib/features/once/core/once-options.js';
import type { ClaimedResult, ResultStore } from '../../../../lib/features/once/core/result-store.js';
import { RedisResultStore } from '../../../../lib/features/once/redis/redis-result-store.js';
import type { LockedWork } from '../../../../lib/kernel/api/lease.js';
import type { LockClientOptions } from '../../../../lib/kernel/wire.js';
import type { LockOwner } from '../../../../lib/kernel/store/lock-store.js';
import { MemoryLockStore } from '../../../../lib/memory/memory-lock-store.js';
import { type Instance, LockWorld } from '../../../support/world/lock-world.js';
import { answered, type Fate } from '../../../support/world/scripted-store.js';

type Verb = keyof ResultStore;

/** Results in front of others: they note each command, and the test decides what becomes of it. */
class ScriptedResults implements ResultStore {
  readonly sent: Verb[] = [];
  readonly fates: Partial<Record<Verb, Fate>> = {};
  readonly #next: Partial<Record<Verb, Fate[]>> = {};

  constructor(private readonly inner: ResultStore) {}

  /** Sets the fates of the next commands of a kind, in order; they precede `fates`. */
  next(verb: Verb, ...fates: Fate[]): void {
    (this.#next[verb] ??= []).push(...fates);
  }

  read(resource: string): Promise<string | undefined> {
    return this.#send('read', () => this.inner.read(resource));
  }

  claim(owner: LockOwner, leaseMs: number, unreadable?: string): Promise<ClaimedResult> {
    return this.#send('claim', () => this.inner.claim(owner, leaseMs, unreadable));
  }

  keep(owner: LockOwner, result: string, ttlMs: number): Promise<boolean> {
    return this.#send('keep', () => this.inner.keep(owner, result, ttlMs));
  }

  forget(resource: string): Promise<void> {
    return this.#send('forget', () => this.inner.forget(resource));
  }

  #send<T>(verb: Verb, execute: () => Promise<T>): Promise<T> {
    this.sent.push(verb);
    return (this.#next[verb]?.shift() ?? this.fates[verb] ?? answered)(execute);
  }
}

/** One process of the fleet, and its calls of `once`. */
export class OnceInstance {
  readonly results: ScriptedResults;
  readonly once: OnceCalls;

  constructor(
    world: LockWorld,
    readonly instance: Instance,
  ) {
    const { locks, store } = instance;
    const { clientId, instanceId } = store;
    this.results = new ScriptedResults(
      new RedisResultStore(new MemoryLockStore({ instanceId, clientId, server: world.server })),
    );
    this.once = new OnceCalls(locks.deps, locks.leases, locks.watches, this.results);
  }

  /** A call with a TTL of a minute, unless the options say another one. */
  run<T>(work: LockedWork<T>, options: Partial<OnceOptions<T>> = {}, key = 'report:7'): Promise<T> {
    return this.once.run(key, { resultTtlMs: 60_000, ...options }, work);
  }
}

export class OnceWorld extends LockWorld {
  /** The key of the result of `report:7`. */
  readonly resultKey = this.server.keys.result('once:report:7');

  process(name: string, options: Partial<LockClientOptions> = {}): OnceInstance {
    return new OnceInstance(this, this.instance(name, options));
  }

  get result(): string | undefined {
    return this.server.redis.get(this.resultKey);
  }
}

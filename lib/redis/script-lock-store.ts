import type {
  AcquireReply,
  KeepReply,
  KeptPlace,
  LockStore,
  LockOwner,
  Queueing,
  Retention,
  RotateReply,
} from '../kernel/store/lock-store.js';
import { closedStore, type LockStoreError } from '../kernel/store/store-error.js';
import { type MessageHealth, onlyListener, type StoreListener } from '../kernel/store/message-health.js';
import type { LockState } from '../kernel/store/lock-state.js';
import type { Watcher, WatchReply } from '../kernel/store/watch-store.js';
import type { StoreProbe } from '../kernel/store/store-probe.js';
import { RedisRollCalls } from './redis-roll-calls.js';
import { type Keys, newestOf, waitersOf } from './keys.js';
import { keepPlaces, Renewals } from './in-one-script.js';
import { RestartQuarantineError } from './script/restart-quarantine.js';
import * as SCRIPTS from './script/scripts.js';
import type { FlaggedScript } from './script/script.js';
import type { ScriptHost } from './script-host.js';
import {
  hasMore,
  type InspectReply,
  isDone,
  isOne,
  readAcquireReply,
  readRotateReply,
  readState,
  readWatchReply,
  requestOf,
  stamp,
} from './lock-replies.js';

/** No owner: a release that only continues to grant. */
const NO_OWNER = '';

/** What acquire and rotate take for the largest number of waiters if it is left out. */
const USUAL_MAX_WAITERS = 10_000;

/** Locks as the scripts keep them. Each step is one script. */
export abstract class ScriptLockStore implements LockStore, ScriptHost {
  abstract readonly hearing: MessageHealth;
  readonly rollCalls = new RedisRollCalls(this);
  /** Receives what arrives in the inbox of the client. */
  protected readonly messages: Required<StoreListener> = {
    granted: (grant) => this.#listener?.granted(grant),
    retained: (notice) => this.#listener?.retained?.(notice),
    called: (call) => this.#listener?.called?.(call),
    unasked: (isUnasked) => this.#listener?.unasked?.(isUnasked),
    asked: (request) => this.#listener?.asked?.(request),
    freed: (message) => this.#listener?.freed?.(message),
    deliveryUncertain: () => this.#listener?.deliveryUncertain?.(),
    reconnected: () => this.#listener?.reconnected(),
  };
  readonly #renewals = new Renewals(this);
  // Made once, because nearly every command has such a reply.
  readonly #readAcquired = (reply: unknown): AcquireReply => readAcquireReply(reply, this.clientId);
  readonly #readRotated = (reply: unknown): RotateReply => readRotateReply(reply, this.clientId);
  #listener: StoreListener | undefined;
  protected isClosed = false;

  constructor(
    readonly instanceId: string,
    readonly clientId: string,
    readonly keys: Keys,
  ) {}

  abstract run<T>(
    script: FlaggedScript<T>,
    keys: readonly string[],
    args: readonly (string | number)[],
    read?: (reply: unknown) => T,
    lazily?: boolean,
  ): Promise<T>;

  abstract readonly isCluster: boolean;
  abstract readonly database: number;

  /** Why no command about this key can be sent now, if that is known. */
  abstract troubleAt(key: string): LockStoreError | undefined;

  abstract list(prefix: string, limit: number, signal?: AbortSignal): Promise<string[]>;

  abstract probe(): StoreProbe;

  abstract close(): Promise<void>;

  acquire(owner: LockOwner, leaseMs: number, queueing?: Queueing): Promise<AcquireReply> {
    const { resource, id } = owner;
    const keys = this.#lockKeys(resource);
    const args = [id, leaseMs, queueing ? stamp(queueing) : ''];
    pushUnusual(owner, queueing, keys, args);
    return this.run(SCRIPTS.ACQUIRE, keys, args, this.#readAcquired);
  }

  async keepPlaces(places: readonly KeptPlace[], sentAt: number): Promise<readonly KeepReply[]> {
    if (this.isClosed) throw closedStore();
    return keepPlaces(places, sentAt, this);
  }

  async rotate(leaving: LockOwner, next: LockOwner, leaseMs: number, queueing: Queueing): Promise<RotateReply> {
    const keys = this.#lockKeys(next.resource);
    const args = [leaving.id, next.id, leaseMs, stamp(queueing)];
    pushUnusual(next, queueing, keys, args);
    try {
      return await this.run(SCRIPTS.ROTATE, keys, args, this.#readRotated);
    } catch (error) {
      if (!(error instanceof RestartQuarantineError)) throw error;
      return { released: await this.release(leaving), next: error };
    }
  }

  setDepth({ resource, id }: LockOwner, depth: number, leaseMs: number): Promise<boolean> {
    return this.run(SCRIPTS.SET_DEPTH, [this.keys.lock(resource)], [id, depth, leaseMs], isOne);
  }

  renew(owner: LockOwner, leaseMs: number, exactly?: boolean): Promise<boolean> {
    if (!exactly) return this.#renewals.add(owner, leaseMs);
    const lock = this.keys.lock(owner.resource);
    return this.run(SCRIPTS.RENEW_EXACTLY, [lock, waitersOf(lock)], [owner.id, leaseMs], isOne);
  }

  release({ resource, id }: LockOwner, lazily?: boolean): Promise<boolean> {
    return this.passOn(SCRIPTS.RELEASE, resource, [id], lazily);
  }

  retain({ resource, id }: LockOwner, { minHoldMs, leftMs }: Retention, lazily?: boolean): Promise<boolean> {
    return this.passOn(SCRIPTS.RETAIN, resource, [id, minHoldMs ?? '', leftMs], lazily);
  }

  label({ resource, id }: LockOwner, label: string | undefined, lazily?: boolean): Promise<boolean> {
    return this.run(SCRIPTS.LABEL, [this.keys.lock(resource)], [id, label ?? ''], isOne, lazily);
  }

  verify({ resource, id }: LockOwner): Promise<boolean> {
    return this.run(SCRIPTS.VERIFY, [this.keys.lock(resource)], [id], isOne);
  }

  downgrade({ resource, id }: LockOwner, leaseMs: number): Promise<boolean> {
    return this.passOn(SCRIPTS.DOWNGRADE, resource, [id, leaseMs]);
  }

  raiseToken({ resource, id }: LockOwner, fencingToken: number): Promise<boolean> {
    const lock = this.keys.lock(resource);
    return this.run(SCRIPTS.RAISE_TOKEN, [lock, this.keys.fence(lock)], [id, fencingToken], isOne);
  }

  lowerPermits({ resource, id }: LockOwner, count: number): Promise<boolean> {
    return this.passOn(SCRIPTS.LOWER_PERMITS, resource, [id, count]);
  }

  resize(resource: string, total: number): Promise<boolean> {
    return this.passOn(SCRIPTS.RESIZE, resource, [total]);
  }

  watch({ resource, id, mark }: Watcher, watchMs: number): Promise<WatchReply> {
    const read = (reply: unknown) => readWatchReply(reply, this.clientId);
    return this.run(SCRIPTS.WATCH, this.#lockKeys(resource), [id, mark, watchMs], read);
  }

  fenceOf(resource: string): string {
    return this.keys.fence(this.keys.lock(resource));
  }

  trouble(resource: string): LockStoreError | undefined {
    return this.troubleAt(this.keys.lock(resource));
  }

  inspect(resource: string): Promise<LockState> {
    const keys = [this.keys.lock(resource), this.keys.waiters(resource)];
    return this.run(SCRIPTS.INSPECT, keys, [], (reply) => readState(resource, reply as InspectReply, this.clientId));
  }

  forceRelease(resource: string, fencingToken: number): Promise<boolean> {
    return this.passOn(SCRIPTS.FORCE_RELEASE, resource, [fencingToken]);
  }

  listen(listener: StoreListener): void {
    this.#listener = onlyListener(this.#listener, listener);
  }

  /**
   * Runs a script that passes locks on. If it has stopped at its bound, continues where it stopped.
   *
   * @param more the keys after the keys of the lock
   */
  passOn(
    script: FlaggedScript<boolean>,
    resource: string,
    args: readonly (string | number)[],
    lazily?: boolean,
    more?: readonly string[],
  ): Promise<boolean> {
    const keys = this.#lockKeys(resource);
    const read = (reply: unknown): boolean => {
      if (hasMore(reply)) void this.#goOn(keys);
      return isDone(reply);
    };
    return this.run(script, more ? [...keys, ...more] : keys, args, read, lazily);
  }

  /** Grants the rest. If this process dies before, the waiter that the script has notified of it does. */
  async #goOn(keys: readonly string[]): Promise<void> {
    try {
      while (await this.run(SCRIPTS.RELEASE, keys, [NO_OWNER], hasMore));
    } catch {
      // Redis does not answer, or this store was closed. A waiter grants the rest.
    }
  }

  /** The keys for the scripts that may pass a lock on. The name is encoded only once. */
  #lockKeys(resource: string): string[] {
    const lock = this.keys.lock(resource);
    return [lock, waitersOf(lock), this.keys.fence(lock)];
  }
}

/**
 * Adds the parts that only some calls have: the last arguments of acquire and rotate, and the key that belongs to them.
 * Those after the last one that differs from the default are left out, because their bytes cost every call.
 */
function pushUnusual(
  owner: LockOwner,
  queueing: Queueing | undefined,
  keys: string[],
  args: (string | number)[],
): void {
  const { maxWaiters = USUAL_MAX_WAITERS, age } = queueing ?? {};
  const { label = '' } = owner;
  const request = requestOf(owner);
  if (age !== undefined) keys.push(newestOf(keys[0]!));
  const unusual = [
    request === 'exclusive' ? '' : request,
    maxWaiters === USUAL_MAX_WAITERS ? '' : maxWaiters,
    label,
    age === undefined ? '' : `${age.ageMs} ${age.ttlMs}`,
  ];
  while (unusual.at(-1) === '') unusual.pop();
  args.push(...unusual);
}

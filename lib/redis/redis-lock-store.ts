import { randomBytes } from 'node:crypto';
import type { LatchListener } from '../core/latch-store.js';
import type {
  AcquireReply,
  GrantListener,
  LockState,
  LockStore,
  Ownership,
  Queueing,
  RotateReply,
  Transfer,
} from '../core/lock-store.js';
import { Inbox } from './inbox.js';
import { Keys, waitersOf } from './keys.js';
import { RedisConnection, type RedisConnectionOption } from './redis-connection.js';
import { ScriptRunner } from './script-runner.js';
import { ACQUIRE } from './scripts/acquire.js';
import { DOWNGRADE } from './scripts/downgrade.js';
import { FORCE_RELEASE } from './scripts/force-release.js';
import { INSPECT } from './scripts/inspect.js';
import { RELEASE } from './scripts/release.js';
import { RENEW } from './scripts/renew.js';
import { RESIZE } from './scripts/resize.js';
import { ROTATE } from './scripts/rotate.js';
import type { Script } from './scripts/script.js';
import { SET_DEPTH } from './scripts/set-depth.js';
import { TRANSFER } from './scripts/transfer.js';
import { VERIFY } from './scripts/verify.js';
import { type InspectReply, readAcquireReply, readState, requestOf, stamp } from './lock-replies.js';

/** Enough to tell apart what should have had different names. */
const NONCE_BYTES = 6;

/** How many keys Redis looks at in one step of a listing: little enough that nobody else waits for it. */
const KEYS_AT_ONCE = 1_000;

export interface RedisLockStoreOptions {
  readonly connection: RedisConnectionOption;
  readonly keyPrefix: string;
  readonly instanceId: string;
  /** The default lease; reconnecting never pauses longer than a third of it. */
  readonly leaseMs: number;
}

/** Locks on one Redis primary, each step one script. */
export class RedisLockStore implements LockStore {
  readonly instanceId: string;
  readonly clientId: string;
  readonly #connection: RedisConnection;
  readonly #scripts = new ScriptRunner();
  readonly #keys: Keys;
  readonly #fence: string;
  readonly #inbox: Inbox;

  constructor(options: RedisLockStoreOptions) {
    this.instanceId = options.instanceId;
    this.clientId = `${options.instanceId}/${randomBytes(NONCE_BYTES).toString('base64url')}`;
    this.#connection = new RedisConnection(options.connection, options.instanceId, options.leaseMs);
    this.#keys = new Keys(this.#connection.outerKeyPrefix + options.keyPrefix);
    this.#fence = this.#keys.fence();
    this.#inbox = new Inbox(this.#connection, this.#keys.inbox(this.clientId));
  }

  /** Begins to connect. Resolves when both connections are up, or after `patienceMs`; then it goes on trying. */
  async start(patienceMs: number): Promise<boolean> {
    this.#connection.connect();
    return this.#inbox.untilOpen(patienceMs);
  }

  /** Why commands cannot be sent now, for people. */
  describeTrouble(): string {
    return this.#connection.describeTrouble();
  }

  /** Why this instance cannot be told of its grants and has to ask for them, for people; nothing where it can. */
  get inboxRefusal(): string | undefined {
    return this.#inbox.refusal;
  }

  get keys(): Keys {
    return this.#keys;
  }

  acquire(contender: Ownership, leaseMs: number, queueing?: Queueing): Promise<AcquireReply> {
    const { resource, owner } = contender;
    const args = [owner, requestOf(contender), leaseMs, queueing ? stamp(queueing) : '', queueing?.maxWaiters ?? 0];
    return this.run(ACQUIRE, this.#lockKeys(resource), args, readAcquireReply);
  }

  rotate({ owner }: Ownership, next: Ownership, leaseMs: number, queueing: Queueing): Promise<RotateReply> {
    const args = [owner, next.owner, requestOf(next), leaseMs, stamp(queueing), queueing.maxWaiters];
    return this.run(ROTATE, this.#lockKeys(next.resource), args, (reply) => {
      const [released, answer] = reply as [number, unknown];
      return { released: released === 1, next: readAcquireReply(answer) };
    });
  }

  setDepth({ resource, owner }: Ownership, depth: number, leaseMs: number): Promise<boolean> {
    return this.run(SET_DEPTH, [this.#keys.lock(resource)], [owner, depth, leaseMs], isOne);
  }

  renew({ resource, owner }: Ownership, leaseMs: number, exactly?: boolean): Promise<boolean> {
    return this.run(RENEW, [this.#keys.lock(resource)], [owner, leaseMs, exactly ? 1 : 0], isOne);
  }

  release({ resource, owner }: Ownership, lazily?: boolean): Promise<boolean> {
    return this.run(RELEASE, this.#lockKeys(resource), [owner], isOne, lazily);
  }

  verify({ resource, owner }: Ownership): Promise<boolean> {
    return this.run(VERIFY, [this.#keys.lock(resource)], [owner], isOne);
  }

  downgrade({ resource, owner }: Ownership, leaseMs: number): Promise<boolean> {
    return this.run(DOWNGRADE, this.#lockKeys(resource), [owner, leaseMs], isOne);
  }

  transfer({ resource, owner }: Ownership, transfer: Transfer): Promise<number | null> {
    const { to, leaseMs, fencingToken = '', share } = transfer;
    const args = [owner, to, leaseMs, fencingToken, share ? 1 : 0];
    return this.run(TRANSFER, [this.#keys.lock(resource)], args, (token) => (token as number) || null);
  }

  resize(resource: string, total: number): Promise<boolean> {
    return this.run(RESIZE, this.#lockKeys(resource), [total], isOne);
  }

  inspect(resource: string): Promise<LockState> {
    const keys = [this.#keys.lock(resource), this.#keys.waiters(resource)];
    return this.run(INSPECT, keys, [], (reply) => readState(resource, reply as InspectReply));
  }

  async list(prefix: string, limit: number, signal?: AbortSignal): Promise<string[]> {
    const resources = new Set<string>();
    let cursor = '0';
    do {
      const [next, keys] = await this.#scan(cursor, this.#keys.matching(prefix));
      for (const key of keys) {
        const resource = this.#keys.resourceOf(key);
        if (resource !== undefined) resources.add(resource);
      }
      cursor = next;
    } while (cursor !== '0' && resources.size < limit && !signal?.aborted);
    return [...resources].slice(0, limit);
  }

  forceRelease(resource: string, fencingToken: number): Promise<boolean> {
    return this.run(FORCE_RELEASE, this.#lockKeys(resource), [fencingToken], isOne);
  }

  listen(listener: GrantListener): void {
    this.#inbox.listen(listener);
  }

  listenForLatches(listener: LatchListener): void {
    this.#inbox.listenForLatches(listener);
  }

  async close(): Promise<void> {
    this.#connection.close();
  }

  /** Runs one script, and gives what is read from its reply. @throws LockStoreError */
  run<T>(
    script: Script,
    keys: readonly string[],
    args: readonly (string | number)[],
    read: (reply: unknown) => T = (reply) => reply as T,
    lazily?: boolean,
  ): Promise<T> {
    try {
      return this.#scripts.run(this.#connection.ready(), script, keys, args, read, this.#explain, lazily);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  async #scan(cursor: string, pattern: string): Promise<[next: string, keys: string[]]> {
    const redis = this.#connection.ready();
    try {
      return await redis.scan(cursor, 'MATCH', pattern, 'COUNT', KEYS_AT_ONCE);
    } catch (error) {
      return this.#explain(error);
    }
  }

  readonly #explain = (error: unknown): never => {
    throw this.#connection.explain(error);
  };

  /** What the scripts work on that may pass a lock on: encoding the name once is enough. */
  #lockKeys(resource: string): string[] {
    const lock = this.#keys.lock(resource);
    return [lock, waitersOf(lock), this.#fence];
  }
}

function isOne(reply: unknown): boolean {
  return reply === 1;
}

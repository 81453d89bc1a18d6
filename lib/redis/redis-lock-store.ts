import { randomBytes } from 'node:crypto';
import type {
  AcquireReply,
  GrantListener,
  LockState,
  LockStore,
  Ownership,
  Queueing,
  RotateReply,
} from '../core/lock-store.js';
import type { LockMode } from '../core/lock-options.js';
import { Inbox } from './inbox.js';
import { Keys, waitersOf } from './keys.js';
import { RedisConnection, type RedisConnectionOption } from './redis-connection.js';
import { ScriptRunner } from './script-runner.js';
import { ACQUIRE } from './scripts/acquire.js';
import { INSPECT } from './scripts/inspect.js';
import { RELEASE } from './scripts/release.js';
import { RENEW } from './scripts/renew.js';
import { ROTATE } from './scripts/rotate.js';
import type { Script } from './scripts/script.js';
import { SET_DEPTH } from './scripts/set-depth.js';
import { VERIFY } from './scripts/verify.js';
import { instanceOf } from '../core/owner-id.js';

/** Enough to tell apart what should have had different names. */
const NONCE_BYTES = 6;

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

  acquire({ resource, owner, mode }: Ownership, leaseMs: number, queueing?: Queueing): Promise<AcquireReply> {
    const args = [owner, mode, leaseMs, queueing ? stamp(queueing) : '', queueing?.maxWaiters ?? 0];
    return this.run(ACQUIRE, this.#lockKeys(resource), args, readReply);
  }

  rotate({ owner }: Ownership, next: Ownership, leaseMs: number, queueing: Queueing): Promise<RotateReply> {
    const args = [owner, next.owner, next.mode, leaseMs, stamp(queueing), queueing.maxWaiters];
    return this.run(ROTATE, this.#lockKeys(next.resource), args, (reply) => {
      const [released, answer] = reply as [number, ScriptReply];
      return { released: released === 1, next: readReply(answer) };
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

  inspect(resource: string): Promise<LockState> {
    const keys = [this.#keys.lock(resource), this.#keys.waiters(resource)];
    return this.run(INSPECT, keys, [], (reply) => {
      const [owner, token, depth, mode, ttlMs, contenders] = reply as InspectReply;
      const waiters = contenders.map(instanceOf);
      if (owner === '') return { resource, mode: null, holders: [], ttlMs: 0, waiters };
      const holder = { instanceId: instanceOf(owner), fencingToken: Number(token), ttlMs, depth };
      return { resource, mode, holders: [holder], ttlMs, waiters };
    });
  }

  listen(listener: GrantListener): void {
    this.#inbox.listen(listener);
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

  readonly #explain = (error: unknown): never => {
    throw this.#connection.explain(error);
  };

  /** What the scripts work on that may pass a lock on: encoding the name once is enough. */
  #lockKeys(resource: string): string[] {
    const lock = this.#keys.lock(resource);
    return [lock, waitersOf(lock), this.#fence];
  }
}

type InspectReply = [owner: string, token: string, depth: number, mode: LockMode, ttlMs: number, contenders: string[]];

function isOne(reply: unknown): boolean {
  return reply === 1;
}

/** A fencing token, or why there is none and when the holder's lease ends. */
type ScriptReply = number | [Exclude<AcquireReply['status'], 'granted'>, number];

function readReply(reply: unknown): AcquireReply {
  const answer = reply as ScriptReply;
  if (typeof answer === 'number') return { status: 'granted', fencingToken: answer };
  return { status: answer[0], ttlMs: answer[1] };
}

/** Rounded down: a stamp may be too early, never too late. */
function stamp({ sentAt }: Queueing): number {
  return Math.floor(sentAt);
}

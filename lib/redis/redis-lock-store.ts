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
import { Keys } from './keys.js';
import { RedisConnection, type RedisConnectionOption } from './redis-connection.js';
import { runScript } from './script-runner.js';
import { ACQUIRE } from './scripts/acquire.js';
import { INSPECT } from './scripts/inspect.js';
import { RELEASE } from './scripts/release.js';
import { RENEW } from './scripts/renew.js';
import { ROTATE } from './scripts/rotate.js';
import type { Script } from './scripts/script.js';
import { SET_DEPTH } from './scripts/set-depth.js';
import { VERIFY } from './scripts/verify.js';
import { instanceOf } from '../core/owner-id.js';

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
  readonly #connection: RedisConnection;
  readonly #keys: Keys;
  readonly #inbox: Inbox;

  constructor(options: RedisLockStoreOptions) {
    this.instanceId = options.instanceId;
    this.#connection = new RedisConnection(options.connection, options.instanceId, options.leaseMs);
    this.#keys = new Keys(this.#connection.outerKeyPrefix + options.keyPrefix);
    this.#inbox = new Inbox(this.#connection, this.#keys.inbox(this.instanceId));
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

  async acquire({ resource, owner, mode }: Ownership, leaseMs: number, queueing?: Queueing): Promise<AcquireReply> {
    const args = [owner, mode, leaseMs, queueing ? stamp(queueing) : '', queueing?.maxWaiters ?? 0];
    return readReply(await this.run(ACQUIRE, this.#lockKeys(resource), args));
  }

  async rotate({ owner }: Ownership, next: Ownership, leaseMs: number, queueing: Queueing): Promise<RotateReply> {
    const args = [owner, next.owner, next.mode, leaseMs, stamp(queueing), queueing.maxWaiters];
    const reply = (await this.run(ROTATE, this.#lockKeys(next.resource), args)) as [number, ScriptReply];
    return { released: reply[0] === 1, next: readReply(reply[1]) };
  }

  async setDepth({ resource, owner }: Ownership, depth: number, leaseMs: number): Promise<boolean> {
    return (await this.run(SET_DEPTH, [this.#keys.lock(resource)], [owner, depth, leaseMs])) === 1;
  }

  async renew({ resource, owner }: Ownership, leaseMs: number): Promise<boolean> {
    return (await this.run(RENEW, [this.#keys.lock(resource)], [owner, leaseMs])) === 1;
  }

  async release({ resource, owner }: Ownership): Promise<boolean> {
    return (await this.run(RELEASE, this.#lockKeys(resource), [owner])) === 1;
  }

  async verify({ resource, owner }: Ownership): Promise<boolean> {
    return (await this.run(VERIFY, [this.#keys.lock(resource)], [owner])) === 1;
  }

  async inspect(resource: string): Promise<LockState> {
    const keys = [this.#keys.lock(resource), this.#keys.waiters(resource)];
    const reply = (await this.run(INSPECT, keys, [])) as [string, string, number, LockMode, number, string[]];
    const [owner, token, depth, mode, ttlMs, contenders] = reply;
    const waiters = contenders.map(instanceOf);
    if (owner === '') return { resource, mode: null, holders: [], ttlMs: 0, waiters };
    const instanceId = instanceOf(owner);
    return { resource, mode, holders: [{ instanceId, fencingToken: Number(token), ttlMs, depth }], ttlMs, waiters };
  }

  listen(listener: GrantListener): void {
    this.#inbox.listen(listener);
  }

  async close(): Promise<void> {
    this.#connection.close();
  }

  /** Runs one script. @throws LockStoreError */
  async run(script: Script, keys: readonly string[], args: readonly (string | number)[]): Promise<unknown> {
    const client = this.#connection.ready();
    try {
      return await runScript(client, script, keys, args);
    } catch (error) {
      throw this.#connection.explain(error);
    }
  }

  #lockKeys(resource: string): string[] {
    return [this.#keys.lock(resource), this.#keys.waiters(resource), this.#keys.fence()];
  }
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

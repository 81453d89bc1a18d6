import { randomBytes } from 'node:crypto';
import { closedStore, type LockStoreError } from '../core/store/store-error.js';
import type { Hearing } from '../core/store/hearing.js';
import { closedProbe, type StoreProbe } from '../core/store/store-probe.js';
import { Inbox } from './inbox.js';
import { StoreHealth } from './store-health.js';
import { ClusterKeys, Keys } from './keys.js';
import type { Connection } from './connection/connection.js';
import { locationOf } from './connection/connection-options.js';
import { type ConnectionSettings, createConnection } from './create-connection.js';
import { ScriptLockStore } from './script-lock-store.js';
import type { MissingRights } from './script/missing-rights.js';
import type { FlaggedScript } from './script/script.js';
import { TRY_WRITE } from './script/scripts.js';

/** Enough to distinguish instances that were given the same name. */
const NONCE_BYTES = 6;

export interface RedisLockStoreOptions extends ConnectionSettings {
  readonly keyPrefix: string;
  /** The prefix of all owner ids of this store. The stores of one quorum share it. @default a unique one */
  readonly clientId?: string;
}

/** Returns an id that no other client has, even if instances have the same name. */
export function createClientId(instanceId: string): string {
  return `${instanceId}/${randomBytes(NONCE_BYTES).toString('base64url')}`;
}

/** Locks on one Redis primary or cluster. Each step is one script. */
export class RedisLockStore extends ScriptLockStore {
  readonly location: string;
  readonly #connection: Connection;
  readonly #inbox: Inbox;
  readonly #health: StoreHealth;

  constructor(options: RedisLockStoreOptions) {
    const connection = createConnection(options);
    const { outerKeyPrefix, isCluster } = connection;
    const prefix = outerKeyPrefix + options.keyPrefix;
    super(
      options.instanceId,
      options.clientId ?? createClientId(options.instanceId),
      isCluster ? new ClusterKeys(prefix) : new Keys(prefix),
    );
    this.#connection = connection;
    this.location = JSON.stringify([locationOf(options.connection), options.keyPrefix]);
    const isDurable = options.durability !== undefined;
    this.#health = new StoreHealth({
      connection,
      keys: this.keys,
      clientId: this.clientId,
      demands: { isDurable, isQuarantined: options.restartQuarantineMs !== undefined },
      tryWrite: (keys) => this.run(TRY_WRITE, keys, []),
    });
    const probeKey = (slot?: number): string => this.keys.health(this.clientId, slot);
    const { messages } = this;
    this.#inbox = new Inbox(connection, this.keys.inbox(this.clientId), probeKey, {
      ...messages,
      // Another process wrote the grant and has not waited for the replicas. With durability, the waiter has to ask.
      granted: (grant) => messages.granted(isDurable ? { ...grant, sentAt: -Infinity } : grant),
    });
  }

  /**
   * Starts to connect. Resolves to whether both connections are up within `patienceMs`. The store keeps trying after
   * that.
   */
  async start(patienceMs: number): Promise<boolean> {
    this.#connection.connect();
    return this.#inbox.untilOpen(patienceMs);
  }

  /** Why commands cannot be sent now, as text for a message. */
  describeTrouble(): string {
    return this.#connection.describeTrouble();
  }

  /** Why no message of a grant can reach this instance, so that it has to ask; `undefined` if messages can. */
  get inboxRefusal(): string | undefined {
    return this.#inbox.refusal;
  }

  get hearing(): Hearing {
    return this.#inbox.hearing;
  }

  /** Resolves when both connections were up for the first time. */
  whenStarted(): Promise<void> {
    return this.#inbox.opened;
  }

  /**
   * Asks each server which rights its user lacks, in one round trip.
   *
   * @returns one answer for each server; none while there is no connection. Never rejects
   */
  missingRights(): Promise<MissingRights[]> {
    return this.#health.missingRights();
  }

  /** Whether the keys of one script have to be in one slot. */
  get isCluster(): boolean {
    return this.#connection.isCluster;
  }

  /** Why no command about this key can be sent now, if that is known. */
  troubleAt(key: string): LockStoreError | undefined {
    return this.#connection.troubleAt(key);
  }

  async list(prefix: string, limit: number, signal?: AbortSignal): Promise<string[]> {
    const resources = new Set<string>();
    if (this.isClosed) throw closedStore();
    for (const server of this.#connection.servers()) {
      for await (const keys of server.scan(this.keys.matching(prefix))) {
        for (const key of keys) {
          const resource = this.keys.resourceOf(key);
          if (resource !== undefined) resources.add(resource);
        }
        if (resources.size >= limit || signal?.aborted) return [...resources].slice(0, limit);
      }
    }
    return [...resources];
  }

  probe(): StoreProbe {
    return this.isClosed ? closedProbe(this.#connection.topology) : this.#health.probe(this.#inbox.problems());
  }

  /** From now on, the connections keep the process alive. */
  keepAlive(): void {
    this.#connection.keepAlive();
  }

  close(): Promise<void> {
    this.isClosed = true;
    this.#inbox.close();
    return this.#connection.close();
  }

  /** Runs one script. Resolves to what `read` makes of the reply. @throws LockStoreError */
  run<T>(
    script: FlaggedScript<T>,
    keys: readonly string[],
    args: readonly (string | number)[],
    read: (reply: unknown) => T = (reply) => reply as T,
    lazily?: boolean,
  ): Promise<T> {
    if (this.isClosed) return Promise.reject(closedStore());
    const { mayGrant, durable } = script;
    return this.#connection.route({ script, keys, args, read, lazily, mayGrant, durable });
  }
}

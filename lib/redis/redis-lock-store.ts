import { randomBytes } from 'node:crypto';
import { asStoreError, closedStore, type LockStoreError } from '../kernel/store/store-error.js';
import type { MessageHealth, PushedGrant } from '../kernel/store/message-health.js';
import { closedProbe, type ServerHealth, type StoreProbe } from '../kernel/store/store-probe.js';
import { within } from '../kernel/util/promises.js';
import { Inbox } from './inbox.js';
import { ClusterKeys, Keys, waitersOf } from './keys.js';
import type { Connection, LockServer } from './connection/connection.js';
import { databaseOf, locationOf, statedConnection } from './connection/connection-options.js';
import { type ConnectionSettings, createConnection } from './create-connection.js';
import { ScriptLockStore } from './script-lock-store.js';
import { findMissingRights, type MissingRights, type RightsInUse } from './script/missing-rights.js';
import { describeServer } from './script/address.js';
import type { FlaggedScript } from './script/script.js';
import { TRY_WRITE } from './script/scripts.js';
import type { ServerConnection } from './connection/server-connection.js';
import { type Eviction, readEviction } from './health/eviction.js';
import { OLD_CREDENTIALS, problemOf, problemsOfEviction, problemsOfRights } from './health/health-problems.js';

/** Tells clients apart whose instances have one name. It is part of each owner id, and so of nearly every command. */
const NONCE_BYTES = 3;

interface RedisLockStoreOptions extends ConnectionSettings {
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
  readonly database: number;
  // Private, because a printed store must not show the password of their clients.
  readonly #connection: Connection;
  readonly #inbox: Inbox;
  /** Which features need further rights. */
  readonly #demands: Pick<RightsInUse, 'isDurable' | 'isQuarantined'>;
  /** At most one probe of each server is under way. If a server hangs, later checks wait for the same answer. */
  readonly #probes = new WeakMap<ServerConnection, Promise<ServerHealth>>();
  /** The number of keys that each server had evicted at the first check. */
  readonly #evictedBefore = new WeakMap<ServerConnection, number>();
  #probed = 0;

  constructor(options: RedisLockStoreOptions) {
    const stated = statedConnection(options.connection);
    const connection = createConnection(options, stated);
    const { outerKeyPrefix, isCluster } = connection;
    const prefix = outerKeyPrefix + options.keyPrefix;
    super(
      options.instanceId,
      options.clientId ?? createClientId(options.instanceId),
      isCluster ? new ClusterKeys(prefix) : new Keys(prefix),
    );
    this.#connection = connection;
    this.database = databaseOf(stated.model);
    this.location = JSON.stringify([locationOf(stated.model), options.keyPrefix]);
    const isDurable = options.durability !== undefined;
    this.#demands = { isDurable, isQuarantined: options.restartQuarantineMs !== undefined };
    const probeKey = (slot?: number): string => this.keys.health(this.clientId, slot);
    const { messages } = this;
    const channels = { own: this.keys.inbox(this.clientId), ofAll: this.keys.rollChannel(this.database) };
    // Another process wrote the grant. It has not waited for the replicas, and may not know that the server has restarted.
    const { isQuarantined } = this.#demands;
    const isEnough = ({ resource, sentAt }: PushedGrant): boolean => {
      if (isDurable || !isQuarantined) return !isDurable;
      const lock = this.keys.lock(resource);
      return sentAt >= this.#inbox.openedAt && connection.trusts(lock, this.keys.fence(lock), sentAt);
    };
    this.#inbox = new Inbox(connection, channels, probeKey, {
      ...messages,
      granted: (grant) => messages.granted(isEnough(grant) ? grant : { ...grant, sentAt: -Infinity }),
    });
  }

  /**
   * Starts to connect. Resolves to whether both connections are up within `patienceMs`. The store keeps trying after
   * that.
   */
  async start(patienceMs: number): Promise<boolean> {
    this.#connection.connect();
    const opened = this.#inbox.opened.then(() => true);
    return (await within(patienceMs, opened)) ?? false;
  }

  get connection(): Connection {
    return this.#connection;
  }

  get inbox(): Inbox {
    return this.#inbox;
  }

  get hearing(): MessageHealth {
    return this.#inbox.hearing;
  }

  get isCluster(): boolean {
    return this.#connection.isCluster;
  }

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

  /** Has each server that locks need try a write, and asks it which rights its user lacks. */
  probe(): StoreProbe {
    const { topology, clients } = this.#connection;
    if (this.isClosed) return closedProbe(topology);
    const problems = [...this.#inbox.problems(), ...(clients.credentials?.problem ? [OLD_CREDENTIALS] : [])];
    try {
      const needed = this.#connection.neededServers(this.#probed++);
      return { topology, needed: needed.length, servers: needed.map((each) => this.#probe(each)), problems };
    } catch (error) {
      return { topology, needed: 0, servers: [], problems: [problemOf(asStoreError(error))] };
    }
  }

  /** Never rejects. */
  #probe(each: LockServer): Promise<ServerHealth> {
    const pending = this.#probes.get(each.server);
    if (pending) return pending;
    const answer = this.#ask(each).finally(() => this.#probes.delete(each.server));
    this.#probes.set(each.server, answer);
    return answer;
  }

  async #ask({ server, slot }: LockServer): Promise<ServerHealth> {
    const key = this.keys.health(this.clientId, slot);
    const fence = this.keys.fence(key);
    const sentAt = performance.now();
    // Both are written before the first reply.
    const written = this.run(TRY_WRITE, [key, waitersOf(key), fence], []).then(
      () => ({ roundTripMs: performance.now() - sentAt }),
      (error: unknown) => asStoreError(error),
    );
    const rights = server.isConnected ? this.#missingRightsAt(server) : undefined;
    const evicting = server.isConnected ? this.#evictionAt(server) : undefined;
    const [outcome, missing, eviction] = await Promise.all([written, rights, evicting]);
    const refused = missing ? problemsOfRights(missing) : [];
    const others = [...refused, ...(eviction ? problemsOfEviction(eviction, eviction.hasEvicted) : [])];
    if (!(outcome instanceof Error)) return { ...outcome, problems: others };
    const problem = problemOf(outcome, fence);
    // The rights name the missing one.
    const isNamed = refused.some(({ code, isFatal }) => isFatal && code === problem.code);
    return { problems: isNamed ? others : [problem, ...others] };
  }

  async #evictionAt(server: ServerConnection): Promise<(Eviction & { readonly hasEvicted: boolean }) | undefined> {
    const eviction = await readEviction(server.client);
    if (eviction === undefined) return undefined;
    const before = this.#evictedBefore.get(server) ?? eviction.evictedKeys;
    this.#evictedBefore.set(server, before);
    return { ...eviction, hasEvicted: eviction.evictedKeys > before };
  }

  /** Returns the servers that may evict locks, as far as they report that. Never rejects. */
  async evictingServers(): Promise<{ readonly server: string; readonly policy: string }[]> {
    const found = await Promise.all(
      this.#connection.servers().map(async (server) => {
        const eviction = server.isConnected ? await this.#evictionAt(server) : undefined;
        return eviction?.isPossible ? [{ server: describeServer(server.client), policy: eviction.policy }] : [];
      }),
    );
    return found.flat();
  }

  /** One answer for each server; none while there is no connection. Never rejects. */
  missingRights(): Promise<MissingRights[]> {
    const servers = this.#connection.isConnected ? this.#connection.servers() : [];
    return Promise.all(servers.map((server) => this.#missingRightsAt(server)));
  }

  #missingRightsAt({ client }: ServerConnection): Promise<MissingRights> {
    const { keys } = this;
    const probeKey = keys.probe();
    const names = { probeKey, fence: keys.fence(probeKey), channel: keys.inbox(this.clientId), prefix: keys.prefix };
    return findMissingRights(client, { ...names, ...this.#demands });
  }

  close(): Promise<void> {
    this.isClosed = true;
    this.#inbox.close();
    return this.#connection.close();
  }

  run<T>(
    script: FlaggedScript<T>,
    keys: readonly string[],
    args: readonly (string | number)[],
    read: (reply: unknown) => T = (reply) => reply as T,
    lazily?: boolean,
  ): Promise<T> {
    if (this.isClosed) return Promise.reject(closedStore());
    const { durable } = script;
    return this.#connection.route({ script, keys, args, read, lazily, durable });
  }
}

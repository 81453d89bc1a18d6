import { randomBytes } from 'node:crypto';
import { asStoreError, closedStore, type LockStoreError } from '../core/store/store-error.js';
import type { Hearing } from '../core/store/hearing.js';
import { closedProbe, type ServerHealth, type StoreProbe, type StoreProblem } from '../core/store/store-probe.js';
import { Inbox } from './inbox.js';
import { ClusterKeys, Keys, waitersOf } from './keys.js';
import type { Connection, LockServer } from './connection/connection.js';
import { databaseOf, locationOf, statedConnection } from './connection/connection-options.js';
import { type ConnectionSettings, createConnection } from './create-connection.js';
import { ScriptLockStore } from './script-lock-store.js';
import { findMissingRights, type MissingRights, type RightsInUse } from './script/missing-rights.js';
import type { FlaggedScript } from './script/script.js';
import { TRY_WRITE } from './script/scripts.js';
import type { ServerConnection } from './connection/server-connection.js';
import { OLD_CREDENTIALS, problemOf, problemsOfRights } from './health/health-problems.js';

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
  readonly database: number;
  readonly #connection: Connection;
  readonly #inbox: Inbox;
  readonly #health: StoreHealth;

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
    this.#health = new StoreHealth({
      connection,
      keys: this.keys,
      clientId: this.clientId,
      demands: { isDurable, isQuarantined: options.restartQuarantineMs !== undefined },
      tryWrite: (keys) => this.run(TRY_WRITE, keys, []),
    });
    const probeKey = (slot?: number): string => this.keys.health(this.clientId, slot);
    const { messages } = this;
    const channels = { own: this.keys.inbox(this.clientId), ofAll: this.keys.rollChannel(this.database) };
    this.#inbox = new Inbox(connection, channels, probeKey, {
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

  /** The connections to all servers that may have locks. @throws LockStoreError while they are not known */
  servers(): readonly ServerConnection[] {
    return this.#connection.servers();
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
    if (this.isClosed) return closedProbe(this.#connection.topology);
    const { credentialsTrouble } = this.#connection;
    return this.#health.probe([...this.#inbox.problems(), ...(credentialsTrouble ? [OLD_CREDENTIALS] : [])]);
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

interface StoreHealthDeps {
  readonly connection: Connection;
  readonly keys: Keys;
  readonly clientId: string;
  /** Which features need further rights. */
  readonly demands: Pick<RightsInUse, 'isDurable' | 'isQuarantined'>;
  /** Runs the script `try-write` on the server that has the keys. @throws LockStoreError */
  readonly tryWrite: (keys: readonly string[]) => Promise<unknown>;
}

/** Whether the servers of a store grant locks, and what their users may not do. */
class StoreHealth {
  readonly #probes = new ServerProbes();
  #probed = 0;

  constructor(private readonly deps: StoreHealthDeps) {}

  missingRights(): Promise<MissingRights[]> {
    const { connection } = this.deps;
    const servers = connection.isConnected ? connection.servers() : [];
    return Promise.all(servers.map((server) => this.#missingRightsAt(server)));
  }

  /**
   * Has each server that locks need try a write, and asks it which rights its user lacks.
   *
   * @param problems what is known already
   */
  probe(problems: readonly StoreProblem[]): StoreProbe {
    const { connection } = this.deps;
    const { topology } = connection;
    try {
      const needed = connection.neededServers(this.#probed++);
      const servers = needed.map((each) => this.#probes.of(each.server, this.#questionsTo(each)));
      return { topology, needed: needed.length, servers, problems };
    } catch (error) {
      return { topology, needed: 0, servers: [], problems: [problemOf(asStoreError(error))] };
    }
  }

  #questionsTo({ server, slot }: LockServer): ServerQuestions {
    const { keys, clientId, tryWrite } = this.deps;
    const key = keys.health(clientId, slot);
    const fence = keys.fence(key);
    return {
      fence,
      write: () => tryWrite([key, waitersOf(key), fence]),
      rights: async () => (server.isConnected ? this.#missingRightsAt(server) : undefined),
    };
  }

  #missingRightsAt({ client }: ServerConnection): Promise<MissingRights> {
    const { keys, clientId, demands } = this.deps;
    const { prefix } = keys;
    const probeKey = keys.probe();
    const names = { probeKey, fence: keys.fence(probeKey), channel: keys.inbox(clientId), prefix };
    return findMissingRights(client, { ...names, ...demands });
  }
}

/** What is asked of one server. */
interface ServerQuestions {
  /** Runs the script that writes, on the server that has its key. Rejects with a `LockStoreError`. */
  readonly write: () => Promise<unknown>;
  /** Which rights the user lacks there; `undefined` without a connection. Never rejects. */
  readonly rights: () => Promise<MissingRights | undefined>;
  /** The key of the fence that the script reads. */
  readonly fence: string;
}

/** At most one probe of each server is under way. Where a server hangs, later checks wait for the same answer. */
class ServerProbes {
  readonly #pending = new WeakMap<ServerConnection, Promise<ServerHealth>>();

  /** Never rejects. */
  of(server: ServerConnection, questions: ServerQuestions): Promise<ServerHealth> {
    const pending = this.#pending.get(server);
    if (pending) return pending;
    const answer = ask(questions).finally(() => this.#pending.delete(server));
    this.#pending.set(server, answer);
    return answer;
  }
}

async function ask({ write, rights, fence }: ServerQuestions): Promise<ServerHealth> {
  const sentAt = performance.now();
  // Both are written before the first reply.
  const written = write().then(
    () => ({ roundTripMs: performance.now() - sentAt }),
    (error: unknown) => asStoreError(error),
  );
  const [outcome, missing] = await Promise.all([written, rights()]);
  const refused = missing ? problemsOfRights(missing) : [];
  if (!(outcome instanceof Error)) return { ...outcome, problems: refused };
  const problem = problemOf(outcome, fence);
  // The rights say which one is missing.
  const isNamed = refused.some(({ code, isFatal }) => isFatal && code === problem.code);
  return { problems: isNamed ? refused : [problem, ...refused] };
}

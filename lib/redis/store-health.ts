import { asStoreError } from '../core/store/store-error.js';
import type { ServerHealth, StoreProbe, StoreProblem } from '../core/store/store-probe.js';
import type { Connection, LockServer } from './connection/connection.js';
import type { ServerConnection } from './connection/server-connection.js';
import { problemOf, problemsOfRights } from './health/health-problems.js';
import { type Keys, waitersOf } from './keys.js';
import { findMissingRights, type MissingRights, type RightsInUse } from './script/missing-rights.js';

/** What {@link StoreHealth} needs. */
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
export class StoreHealth {
  readonly #probes = new ServerProbes();
  #probed = 0;

  constructor(private readonly deps: StoreHealthDeps) {}

  /** See `RedisLockStore.missingRights`. */
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

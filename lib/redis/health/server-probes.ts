import { asStoreError } from '../../core/store/store-error.js';
import type { ServerHealth } from '../../core/store/store-probe.js';
import type { ServerConnection } from '../connection/server-connection.js';
import type { MissingRights } from '../script/missing-rights.js';
import { problemOf, problemsOfRights } from './health-problems.js';

/** What is asked of one server. */
export interface ServerQuestions {
  /** Runs the script that writes, on the server that has its key. Rejects with a `LockStoreError`. */
  readonly write: () => Promise<unknown>;
  /** Which rights the user lacks there; `undefined` without a connection. Never rejects. */
  readonly rights: () => Promise<MissingRights | undefined>;
  /** The key of the fence that the script reads. */
  readonly fence: string;
}

/** At most one probe of each server is under way. Where a server hangs, later checks wait for the same answer. */
export class ServerProbes {
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

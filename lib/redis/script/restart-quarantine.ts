import type { Redis } from 'ioredis';
import { type Clock, SYSTEM_CLOCK } from '../../core/util/clock.js';
import { LockStoreError } from '../../core/store/lock-store.js';
import { describeServer } from './address.js';
import type { ScriptCall, ScriptSender } from './script.js';
import { replyCode, toStoreError } from './failures.js';
import { QUARANTINE } from './scripts.js';

const ADVICE = { NOPERM: 'restartQuarantineMs needs the command INFO: give the ACL user +info' };

/** Nothing is granted yet: leases may still run that Redis has forgotten. */
export class RestartQuarantineError extends LockStoreError {
  constructor(place: string, leftMs: number) {
    super(
      'notExecuted',
      `Redis at ${place} has restarted without its data; locks are granted again in ${Math.ceil(leftMs)} ms ` +
        `(restartQuarantineMs)`,
    );
  }
}

/** What is known of the server at the other end of one stream, which ends when the server does. */
interface Findings {
  runId: string;
  /** It runs for so long that no earlier lease can. */
  isWell: boolean;
  /** By fence, until when nothing is granted: on the clock of this process, or -Infinity where nothing is forgotten. */
  readonly until: Map<string, number>;
  /** By fence, a look that is under way. */
  readonly looks: Map<string, Promise<void>>;
}

/** What this process has seen of a server. Kept by its address. */
interface Server {
  /** The smallest difference so far between the server's wall clock and the monotonic clock of this process. */
  aheadMs: number;
  /** The run of the server that this process saw last. */
  runId: string;
  /** When every lease that this run may have forgotten has ended, on the clock of this process; -Infinity where that is known. */
  wellAt: number;
}

/** What the script replies: run id, uptime in seconds, time in milliseconds, and 1 where the fence has forgotten no lease. */
type Look = [runId: string, upSeconds: number, timeMs: number, hasAll: number];

/** How exact the uptime is, which counts whole seconds. */
const UPTIME_STEP_MS = 1_000;

/**
 * Lets no script grant a lock on a server that has restarted without its data, until every lease that it has forgotten must have
 * ended. One look for each new connection, and nothing more where all is well.
 *
 * Redis counts its uptime by its wall clock, so a clock that is set forward makes a server look as if it ran for longer. This process
 * therefore compares that clock with its own monotonic one at each look, and takes off the uptime what the clock has gained. A process
 * that first looks after the clock was set cannot know of it.
 */
export class RestartQuarantine implements ScriptSender {
  readonly #findings = new WeakMap<Redis['stream'], Findings>();
  readonly #servers = new Map<string, Server>();

  /** @param longestLeaseMs that anybody takes */
  constructor(
    private readonly scripts: ScriptSender,
    private readonly longestLeaseMs: number,
    private readonly clock: Clock = SYSTEM_CLOCK,
  ) {}

  send<T>(client: Redis, call: ScriptCall<T>, fail: (error: unknown) => Promise<T>): Promise<T> {
    if (!call.mayGrant) return this.scripts.send(client, call, fail);
    const findings = this.#findingsOn(client.stream);
    if (findings.isWell) return this.scripts.send(client, call, fail);
    const fence = call.keys[2]!;
    const until = findings.until.get(fence);
    if (until !== undefined) {
      const leftMs = until - this.clock.now();
      if (leftMs > 0) return Promise.reject(new RestartQuarantineError(describeServer(client), leftMs));
      // Counted by the clock of this process, so it is over, whatever that of the server says.
      if (until !== -Infinity) this.#isWell(client, findings);
      return this.scripts.send(client, call, fail);
    }
    return this.#look(client, fence, findings).then(
      // Once more from the start: the connection may be another one by now.
      () => this.send(client, call, fail),
      (error: unknown) => (isForbidden(error) ? Promise.reject(toStoreError(error, ADVICE)) : fail(error)),
    );
  }

  #findingsOn(stream: Redis['stream']): Findings {
    let findings = this.#findings.get(stream);
    if (!findings) {
      findings = { runId: '', isWell: false, until: new Map(), looks: new Map() };
      this.#findings.set(stream, findings);
    }
    return findings;
  }

  #look(client: Redis, fence: string, findings: Findings): Promise<void> {
    const known = findings.looks.get(fence);
    if (known) return known;
    const read = (reply: unknown): void => this.#judge(client, fence, findings, reply as Look);
    const call = { script: QUARANTINE, keys: [fence], args: [], read };
    const look = this.scripts.send<void>(client, call, (error) => Promise.reject(error));
    const done = look.finally(() => findings.looks.delete(fence));
    findings.looks.set(fence, done);
    return done;
  }

  #judge(client: Redis, fence: string, findings: Findings, [runId, upSeconds, timeMs, hasAll]: Look): void {
    const now = this.clock.now();
    const aheadMs = timeMs - now;
    const server = this.#serverOf(client, aheadMs);
    server.aheadMs = Math.min(server.aheadMs, aheadMs);
    const upMs = Math.max(0, upSeconds * 1_000 - UPTIME_STEP_MS - (aheadMs - server.aheadMs));
    if (runId === '' || runId !== server.runId) server.wellAt = Infinity;
    server.runId = findings.runId = runId;
    // What one look has found holds for later ones, which may think that the server runs for less: where its clock was set back, or
    // where this process stood still before it read a reply.
    server.wellAt = Math.min(server.wellAt, now + this.longestLeaseMs - upMs);
    if (server.wellAt <= now) this.#isWell(client, findings);
    else findings.until.set(fence, hasAll === 1 ? -Infinity : server.wellAt);
  }

  /** Whatever happens to the server's clock from now on, this run of it has forgotten no lease that could still be trusted. */
  #isWell(client: Redis, findings: Findings): void {
    findings.isWell = true;
    const server = this.#servers.get(describeServer(client));
    if (server?.runId === findings.runId) server.wellAt = -Infinity;
  }

  #serverOf(client: Redis, aheadMs: number): Server {
    const place = describeServer(client);
    let server = this.#servers.get(place);
    if (!server) this.#servers.set(place, (server = { aheadMs, runId: '', wellAt: Infinity }));
    return server;
  }
}

function isForbidden(error: unknown): boolean {
  return replyCode((error as Partial<Error> | undefined)?.message ?? '') === 'NOPERM';
}

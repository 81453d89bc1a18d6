import type { Redis } from 'ioredis';
import { type Clock, SYSTEM_CLOCK } from '../../core/util/clock.js';
import { LockStoreError } from '../../core/store/store-error.js';
import { describeServer } from './address.js';
import type { ScriptCall, ScriptSender } from './script.js';
import { replyCode, toStoreError } from './failures.js';
import { QUARANTINE } from './scripts.js';

const ADVICE = { NOPERM: 'restartQuarantineMs needs the command INFO: give the ACL user +info' };

/** Redis grants nothing yet, because leases that it has forgotten may still be running. */
export class RestartQuarantineError extends LockStoreError {
  constructor(server: string, leftMs: number) {
    super(
      'notExecuted',
      `Redis at ${server} has restarted without its data; locks are granted again in ${Math.ceil(leftMs)} ms ` +
        `(restartQuarantineMs)`,
    );
  }
}

/** What is known of the server at the other end of one stream. The stream ends when the server does. */
interface Findings {
  runId: string;
  /** It has been running for longer than any lease from before its start can last. */
  isWell: boolean;
  /** By fence, until when nothing is granted, by the clock of this process. -Infinity if no lease is forgotten. */
  readonly until: Map<string, number>;
  readonly checks: Map<string, Promise<void>>;
}

/** What this process knows of a server, by its address. */
interface Server {
  /** The smallest difference so far between the server's wall clock and the monotonic clock of this process. */
  aheadMs: number;
  runId: string;
  /**
   * When every lease that this run may have forgotten has ended, by the clock of this process. -Infinity if all have
   * ended.
   */
  wellAt: number;
}

/**
 * The reply of the script: run id, uptime in seconds, time in milliseconds, and 1 if the fence has forgotten no lease.
 */
type Check = [runId: string, upSeconds: number, timeMs: number, hasAll: number];

/** The uptime is in whole seconds. */
const UPTIME_STEP_MS = 1_000;

/**
 * Stops scripts from granting locks on a server that has restarted without its data, until every lease that it has
 * forgotten must have ended. Each new connection costs one check, and nothing more if all is well.
 *
 * Redis measures its uptime by its wall clock. If that clock is set forward, the server seems to have been running for
 * longer. So each check compares the wall clock with the monotonic clock of this process, and subtracts what it has
 * gained from the uptime. A process that first checks after the clock was set cannot know of the change.
 */
export class RestartQuarantine implements ScriptSender {
  readonly #findings = new WeakMap<Redis['stream'], Findings>();
  readonly #servers = new Map<string, Server>();

  /** @param longestLeaseMs the longest lease that any client takes */
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
      // The clock of this process says that it is over. The clock of the server may have been changed.
      if (until !== -Infinity) this.#isWell(client, findings);
      return this.scripts.send(client, call, fail);
    }
    return this.#check(client, fence, findings).then(
      // From the start: by now it may be another connection.
      () => this.send(client, call, fail),
      (error: unknown) => (isForbidden(error) ? Promise.reject(toStoreError(error, ADVICE)) : fail(error)),
    );
  }

  #findingsOn(stream: Redis['stream']): Findings {
    let findings = this.#findings.get(stream);
    if (!findings) {
      findings = { runId: '', isWell: false, until: new Map(), checks: new Map() };
      this.#findings.set(stream, findings);
    }
    return findings;
  }

  #check(client: Redis, fence: string, findings: Findings): Promise<void> {
    const known = findings.checks.get(fence);
    if (known) return known;
    const read = (reply: unknown): void => this.#judge(client, fence, findings, reply as Check);
    const call = { script: QUARANTINE, keys: [fence], args: [], read };
    const check = this.scripts.send<void>(client, call, (error) => Promise.reject(error));
    const done = check.finally(() => findings.checks.delete(fence));
    findings.checks.set(fence, done);
    return done;
  }

  #judge(client: Redis, fence: string, findings: Findings, [runId, upSeconds, timeMs, hasAll]: Check): void {
    const now = this.clock.now();
    const aheadMs = timeMs - now;
    const server = this.#serverOf(client, aheadMs);
    server.aheadMs = Math.min(server.aheadMs, aheadMs);
    const upMs = Math.max(0, upSeconds * 1_000 - UPTIME_STEP_MS - (aheadMs - server.aheadMs));
    if (runId === '' || runId !== server.runId) server.wellAt = Infinity;
    server.runId = findings.runId = runId;
    // What one check has found holds for later ones. Those may measure a shorter uptime: if the clock of the server was
    // set back, or if this process stood still before it read a reply.
    server.wellAt = Math.min(server.wellAt, now + this.longestLeaseMs - upMs);
    if (server.wellAt <= now) this.#isWell(client, findings);
    else findings.until.set(fence, hasAll === 1 ? -Infinity : server.wellAt);
  }

  /**
   * From now on, no change of the server's clock matters: this run has forgotten no lease that could still be trusted.
   */
  #isWell(client: Redis, findings: Findings): void {
    findings.isWell = true;
    const server = this.#servers.get(describeServer(client));
    if (server?.runId === findings.runId) server.wellAt = -Infinity;
  }

  #serverOf(client: Redis, aheadMs: number): Server {
    const address = describeServer(client);
    let server = this.#servers.get(address);
    if (!server) this.#servers.set(address, (server = { aheadMs, runId: '', wellAt: Infinity }));
    return server;
  }
}

function isForbidden(error: unknown): boolean {
  return replyCode((error as Partial<Error> | undefined)?.message ?? '') === 'NOPERM';
}

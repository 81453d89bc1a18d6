import type { Redis } from 'ioredis';
import { type Clock, SYSTEM_CLOCK } from '../../kernel/util/clock.js';
import { formatDuration } from '../../kernel/util/durations.js';
import { LockStoreError } from '../../kernel/store/store-error.js';
import { describeServer } from './address.js';
import type { ScriptCall, ScriptSender } from './script.js';
import { replyCode, toStoreError } from './failures.js';
import { FSYNC_SETTINGS, pairsOf, writesBeforeItAnswers } from './pairs.js';
import { QUARANTINE } from './scripts.js';
import { entryOf } from '../../kernel/util/objects.js';

const ADVICE = { NOPERM: 'restartQuarantineMs needs the command INFO: give the ACL user +info' };

/** The argument that keeps a script that frees from granting, in words for MONITOR and SLOWLOG. */
const GRANT_NOTHING = 'grant nothing';

/** Redis grants nothing yet, because leases that it has forgotten may still be running. */
export class RestartQuarantineError extends LockStoreError {
  constructor(server: string, leftMs: number) {
    super(
      'notExecuted',
      `Redis at ${server} has restarted and may have forgotten leases; locks are granted again in ` +
        `${Math.ceil(leftMs)} ms (restartQuarantineMs)`,
    );
  }
}

/** The known facts about the server at the other end of one stream. The stream ends when the server does. */
interface Findings {
  runId: string;
  /** It has been running for longer than any lease from before its start can last. */
  isWell: boolean;
  /** By fence, until when nothing is granted, by the clock of this process. -Infinity if no lease is forgotten. */
  readonly until: Map<string, number>;
  readonly checks: Map<string, Promise<void>>;
}

/** The known facts about a server, by its address. */
interface Server {
  /** The smallest difference so far between the server's wall clock and the monotonic clock of this process. */
  aheadMs: number;
  runId: string;
  /**
   * When every lease that this run may have forgotten has ended, by the clock of this process. -Infinity if all have
   * ended.
   */
  wellAt: number;
  /** `true` once the log has reported that it grants nothing. */
  isReported: boolean;
}

/** The persistence of a server with a fence over its start, as far as a script can see it. */
const DATA = { none: 0, kept: 1, logged: 2 } as const;
type KeptData = (typeof DATA)[keyof typeof DATA];

const RESTARTED: Readonly<Record<KeptData, string>> = {
  [DATA.none]: 'without its data',
  [DATA.kept]: 'with data that may be old',
  [DATA.logged]: 'with an append-only file that may lack the last writes (appendfsync is not always)',
};

type QuarantineReply = [runId: string, upSeconds: number, timeMs: number, data: KeptData];

/** The uptime is in whole seconds. */
const UPTIME_STEP_MS = 1_000;

export interface QuarantineSettings {
  /** The longest lease that any client takes, in milliseconds. */
  readonly longestLeaseMs: number;
  /** `true` if a server with a fence has every write that it has ever answered. */
  readonly isPersistent: boolean;
  readonly warn: (line: string, section: string) => void;
}

/**
 * Keeps a server that has restarted from granting locks until every lease that it may have forgotten has ended. Scripts
 * that acquire are held up, and scripts that release are executed without the part that grants. Each new connection
 * costs one check, and nothing more if all is well.
 *
 * Redis measures its uptime by its wall clock. If that clock is set forward, the server seems to have been running for
 * longer. So each check compares the wall clock with the monotonic clock of this process, and subtracts what it has
 * gained from the uptime. A process that first checks after the clock was set cannot know of the change.
 *
 * Data on disk proves nothing: a snapshot may be old, and an append-only file that is written once a second lacks the
 * last second after a power failure. Nothing is forgotten only if each write is on disk before it is answered.
 */
export class RestartQuarantine implements ScriptSender {
  readonly #findings = new WeakMap<Redis['stream'], Findings>();
  readonly #servers = new Map<string, Server>();

  constructor(
    private readonly scripts: ScriptSender,
    private readonly settings: QuarantineSettings,
    private readonly clock: Clock = SYSTEM_CLOCK,
  ) {}

  send<T>(client: Redis, call: ScriptCall<T>, fail: (error: unknown) => Promise<T>): Promise<T> {
    const { mayGrant, frees } = call.script;
    if (!mayGrant) return this.scripts.send(client, call, fail);
    const findings = this.#findingsOn(client.stream);
    if (findings.isWell) return this.scripts.send(client, call, fail);
    const fence = call.keys[2]!;
    const until = findings.until.get(fence);
    if (until !== undefined) {
      const leftMs = until - this.clock.now();
      if (leftMs > 0) {
        if (frees) return this.scripts.send(client, grantingNothing(call), fail);
        return Promise.reject(new RestartQuarantineError(describeServer(client), leftMs));
      }
      // By the clock of this process, it has ended. The clock of the server may have been changed.
      if (until !== -Infinity) this.#isWell(client, findings);
      return this.scripts.send(client, call, fail);
    }
    return this.#check(client, fence, findings).then(
      // From the start: by now it may be another connection.
      () => this.send(client, call, fail),
      (error: unknown) => {
        if (frees && toStoreError(error).failure === 'refused')
          return this.scripts.send(client, grantingNothing(call), fail);
        return isForbidden(error) ? Promise.reject(toStoreError(error, ADVICE)) : fail(error);
      },
    );
  }

  trusts(client: Redis, fence: string): boolean {
    const findings = this.#findings.get(client.stream);
    return findings !== undefined && (findings.isWell || this.clock.now() >= (findings.until.get(fence) ?? Infinity));
  }

  #findingsOn(stream: Redis['stream']): Findings {
    return entryOf(this.#findings, stream, () => ({ runId: '', isWell: false, until: new Map(), checks: new Map() }));
  }

  #check(client: Redis, fence: string, findings: Findings): Promise<void> {
    const known = findings.checks.get(fence);
    if (known) return known;
    const done = this.#look(client, fence, findings).finally(() => findings.checks.delete(fence));
    findings.checks.set(fence, done);
    return done;
  }

  async #look(client: Redis, fence: string, findings: Findings): Promise<void> {
    const { stream } = client;
    const read = (reply: unknown): KeptData => this.#judge(client, findings, reply as QuarantineReply);
    const call = { script: QUARANTINE, keys: [fence], args: [], read };
    const data = await this.scripts.send<KeptData>(client, call, (error) => Promise.reject(error));
    if (findings.isWell) return;
    const hasAll =
      (data !== DATA.none && this.settings.isPersistent) ||
      // Another connection may lead to another server.
      (data === DATA.logged && client.stream === stream && (await hasWholeLog(client)));
    const server = this.#servers.get(describeServer(client))!;
    findings.until.set(fence, hasAll ? -Infinity : server.wellAt);
    if (!hasAll) this.#report(client, server, data);
  }

  #judge(client: Redis, findings: Findings, [runId, upSeconds, timeMs, data]: QuarantineReply): KeptData {
    const now = this.clock.now();
    const aheadMs = timeMs - now;
    const server = this.#serverOf(client, aheadMs);
    server.aheadMs = Math.min(server.aheadMs, aheadMs);
    const upMs = Math.max(0, upSeconds * 1_000 - UPTIME_STEP_MS - (aheadMs - server.aheadMs));
    if (runId === '' || runId !== server.runId) {
      server.wellAt = Infinity;
      server.isReported = false;
    }
    server.runId = findings.runId = runId;
    // The result of one check holds for later ones. Those may measure a shorter uptime: if the clock of the server was
    // set back, or if the event loop was blocked before the reply was read.
    server.wellAt = Math.min(server.wellAt, now + this.settings.longestLeaseMs - upMs);
    if (server.wellAt <= now) this.#isWell(client, findings);
    return data;
  }

  #report(client: Redis, server: Server, data: KeptData): void {
    if (server.isReported) return;
    server.isReported = true;
    const leftMs = server.wellAt - this.clock.now();
    const until = new Date(this.clock.wallNow() + leftMs).toISOString().replace(/\.\d+Z$/, 'Z');
    this.settings.warn(
      `Redis at ${describeServer(client)} has restarted ${RESTARTED[data]}. No lock is granted there until ${until}, for ` +
        `${formatDuration(leftMs)}: leases that it has forgotten may still be held (restartQuarantineMs).`,
      'redis-has-restarted',
    );
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
    return entryOf(this.#servers, address, () => ({ aheadMs, runId: '', wellAt: Infinity, isReported: false }));
  }
}

/** For a process that does not know how long the quarantine of the applications lasts: what it frees, they grant. */
export class LeavesGranting implements ScriptSender {
  constructor(private readonly scripts: ScriptSender) {}

  send<T>(client: Redis, call: ScriptCall<T>, fail: (error: unknown) => Promise<T>): Promise<T> {
    return this.scripts.send(client, call.script.frees ? grantingNothing(call) : call, fail);
  }
}

function grantingNothing<T>(call: ScriptCall<T>): ScriptCall<T> {
  return { ...call, args: [...call.args, GRANT_NOTHING] };
}

/**
 * Resolves to true if nothing that was answered can be missing in its append-only file. False if the server does not
 * report it.
 */
async function hasWholeLog(client: Redis): Promise<boolean> {
  return writesBeforeItAnswers(pairsOf(await client.call('CONFIG', 'GET', FSYNC_SETTINGS).catch(() => [])));
}

function isForbidden(error: unknown): boolean {
  return replyCode((error as Partial<Error> | undefined)?.message ?? '') === 'NOPERM';
}

import type { Redis } from 'ioredis';
import { LockStoreError } from '../core/lock-store.js';
import { placeOf } from './address.js';
import type { ScriptCall } from './connection.js';
import { replyCode, toStoreError } from './failures.js';
import type { ScriptSender } from './script-runner.js';
import { QUARANTINE } from './scripts/quarantine.js';

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
  /** It runs for so long that no earlier lease can. */
  isWell: boolean;
  /** By fence, until when nothing is granted: on the clock of this process, or -Infinity where nothing is forgotten. */
  readonly until: Map<string, number>;
  /** By fence, a look that is under way. */
  readonly looks: Map<string, Promise<void>>;
}

/**
 * Lets no script grant a lock on a server that has restarted without its data, until every lease that it has forgotten must have
 * ended. One look for each new connection, and nothing more where all is well.
 */
export class RestartQuarantine implements ScriptSender {
  readonly #findings = new WeakMap<Redis['stream'], Findings>();

  /** @param longestLeaseMs that anybody takes */
  constructor(
    private readonly scripts: ScriptSender,
    private readonly longestLeaseMs: number,
  ) {}

  run<T>(client: Redis, call: ScriptCall<T>, fail: (error: unknown) => Promise<T>): Promise<T> {
    if (!call.mayGrant) return this.scripts.run(client, call, fail);
    const findings = this.#findingsOn(client.stream);
    if (findings.isWell) return this.scripts.run(client, call, fail);
    const fence = call.keys[2]!;
    const until = findings.until.get(fence);
    if (until === -Infinity) return this.scripts.run(client, call, fail);
    const leftMs = (until ?? 0) - performance.now();
    if (leftMs > 0) return Promise.reject(new RestartQuarantineError(placeOf(client), leftMs));
    return this.#look(client, fence, findings).then(
      // Once more from the start: the connection may be another one by now.
      () => this.run(client, call, fail),
      (error: unknown) => (isForbidden(error) ? Promise.reject(toStoreError(error, ADVICE)) : fail(error)),
    );
  }

  #findingsOn(stream: Redis['stream']): Findings {
    let findings = this.#findings.get(stream);
    if (!findings) {
      findings = { isWell: false, until: new Map(), looks: new Map() };
      this.#findings.set(stream, findings);
    }
    return findings;
  }

  #look(client: Redis, fence: string, findings: Findings): Promise<void> {
    const known = findings.looks.get(fence);
    if (known) return known;
    const read = (reply: unknown): void => {
      const leftMs = reply as number;
      if (leftMs < 0) findings.isWell = true;
      else findings.until.set(fence, leftMs > 0 ? performance.now() + leftMs : -Infinity);
    };
    const call = { script: QUARANTINE, keys: [fence], args: [this.longestLeaseMs], read };
    const look = this.scripts.run<void>(client, call, (error) => Promise.reject(error));
    const done = look.finally(() => findings.looks.delete(fence));
    findings.looks.set(fence, done);
    return done;
  }
}

function isForbidden(error: unknown): boolean {
  return replyCode((error as Partial<Error> | undefined)?.message ?? '') === 'NOPERM';
}

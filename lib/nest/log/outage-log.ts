import type { LockError } from '../../kernel/api/errors.js';
import type { LockObservers } from '../../kernel/events/observers.js';
import type { Clock } from '../../kernel/util/clock.js';
import { LockStoreError } from '../../kernel/store/store-error.js';
import { formatDuration } from '../../kernel/util/durations.js';
import { count, countWas } from '../../kernel/util/plurals.js';
import type { RepeatedLines } from './repeated-lines.js';

/** Nouns for the commands that fail during an outage: plural and singular. */
const NOUNS = {
  calls: 'call',
  ticks: 'tick',
  renewals: 'renewal',
  releases: 'release',
  campaigns: 'campaign',
} as const;

/** The kind of the log lines about leases that were not renewed in time. */
export const NOT_RENEWED = 'lost: notRenewed';

type FailedKind = keyof typeof NOUNS;

/** Errors with a line in the log of a lock service, of their own or in a count. */
const LOGGED = new WeakSet<LockError>();

export function isLogged(error: LockError): boolean {
  return LOGGED.has(error);
}

/** The part of a failure event that is logged. */
interface FailedCommand {
  readonly resource: string;
  readonly error: LockError;
}

interface Outage {
  readonly since: number;
  readonly failed: Record<FailedKind, number>;
  lastAt: number;
  lost: number;
  /** `true` if the start was logged. */
  isTold: boolean;
}

/** Failures further apart than this do not prove an outage in between, if no answer arrived either. */
const APART_MS = 60_000;

/**
 * Logs commands that fail during an outage of Redis: a line at the start, one a minute for each reason, and one at the
 * end. The outage ends with the next answer to a call, a renewal or the claim of a tick.
 */
export class OutageLog {
  #outage: Outage | undefined;

  constructor(
    private readonly clock: Clock,
    private readonly lines: RepeatedLines,
    private readonly write: (line: string) => void,
    private readonly observers: LockObservers,
  ) {}

  /**
   * @param line the text for the first failure of this reason
   * @param silentMs the time without an answer that makes the failure an outage: until then Redis may only be slow
   */
  failed(kind: FailedKind, { resource, error }: FailedCommand, line: string, silentMs = 0): void {
    const { cause } = error;
    const why = cause instanceof Error ? cause.message : error.message;
    const outage = isOutage(error) ? this.#outageNow() : undefined;
    if (outage) {
      outage.failed[kind]++;
      if (!outage.isTold && outage.lastAt - outage.since < silentMs) return;
    }
    LOGGED.add(error);
    const told = why.replace(/\d+ ms\b/g, '… ms');
    const summary = (lines: number, names: string): string => {
      if (this.#outage) this.#outage.isTold = true;
      return `In the last minute, ${count(lines, `more ${NOUNS[kind]}`)} failed (${told}): ${names}.`;
    };
    // Removes measured numbers, which would make each message a reason of its own.
    const reason = why.replace(/\d+/g, '0');
    const isTold = this.lines.add(outage ? kind : `no outage, ${kind}`, resource, line, summary, reason);
    if (outage) outage.isTold ||= isTold;
  }

  lost(): void {
    if (this.#outage) this.#outage.lost++;
  }

  #over(): void {
    const outage = this.#outage!;
    this.#outage = undefined;
    this.observers.onAnswered = undefined;
    // If outages follow each other faster than once a minute, the lines of the minute cover them.
    if (!outage.isTold) return;
    this.lines.forget(
      (kind) => kind === NOT_RENEWED || Object.keys(NOUNS).some((each) => kind.startsWith(`${each}: `)),
    );
    const failed = (Object.keys(NOUNS) as FailedKind[]).flatMap((kind) => {
      const number = outage.failed[kind];
      return number === 0 ? [] : [count(number, NOUNS[kind])];
    });
    const lost = outage.lost ? `, and ${countWas(outage.lost, 'lease')} lost` : '';
    this.write(
      `Redis answers again after ${formatDuration(this.clock.now() - outage.since)}. ` +
        `During the outage, ${failed.join(' and ')} failed${lost}.`,
    );
  }

  #outageNow(): Outage {
    const now = this.clock.now();
    const outage = this.#outage;
    if (outage && (outage.isTold || now - outage.lastAt < APART_MS)) {
      outage.lastAt = now;
      return outage;
    }
    // Set only now, because a callback for each answer would cost something all day.
    this.observers.onAnswered = () => this.#over();
    const failed = { calls: 0, ticks: 0, renewals: 0, releases: 0, campaigns: 0 };
    return (this.#outage = { since: now, lastAt: now, failed, lost: 0, isTold: false });
  }
}

/** Returns false for a Redis that refuses: it has answered, and may grant all other resources. */
function isOutage(error: LockError): boolean {
  return !(error.cause instanceof LockStoreError && error.cause.failure === 'refused');
}

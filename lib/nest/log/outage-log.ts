import type { LockError } from '../../kernel/api/errors.js';
import type { LockObservers } from '../../kernel/events/observers.js';
import type { Clock } from '../../kernel/util/clock.js';
import { LockStoreError } from '../../kernel/store/store-error.js';
import { formatDuration } from '../../kernel/util/durations.js';
import { count, countWas } from '../../kernel/util/plurals.js';
import type { RepeatedLines } from './repeated-lines.js';

/** What fails while Redis is away: counted, and the noun of one. */
const NOUNS = {
  calls: 'call',
  ticks: 'tick',
  renewals: 'renewal',
  releases: 'release',
  campaigns: 'campaign',
} as const;

/** The kind of the lines about leases that were not renewed in time. */
export const NOT_RENEWED = 'lost: notRenewed';

type FailedKind = keyof typeof NOUNS;

/** The errors that the log of a lock service tells of: by a line of their own, or as one of a number. */
const LOGGED = new WeakSet<LockError>();

export function isLogged(error: LockError): boolean {
  return LOGGED.has(error);
}

/** What an event tells of a command that failed. */
interface Failure {
  readonly resource: string;
  readonly error: LockError;
}

interface Outage {
  readonly since: number;
  readonly failed: Record<FailedKind, number>;
  lastAt: number;
  lost: number;
  /** Whether a line has told that it began. */
  isTold: boolean;
}

/** A failure after this long without one, and without an answer, says nothing of the time in between. */
const APART_MS = 60_000;

/**
 * Commands that fail while Redis is away: a line when it begins, one a minute for each reason, and one when it is over.
 * It is over with the next answer to a call, a renewal or the claim of a tick.
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
   * @param line what is written of the first failure for this reason
   * @param silentMs how long Redis has to be silent before the failure counts as an outage: until then it may only be slow
   */
  failed(kind: FailedKind, { resource, error }: Failure, line: string, silentMs = 0): void {
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
    // Without the numbers that were measured: each would be a reason of its own.
    const reason = why.replace(/\d+/g, '0');
    const isTold = this.lines.add(outage ? kind : `no outage, ${kind}`, resource, line, summary, reason);
    if (outage) outage.isTold ||= isTold;
  }

  /** A lease was lost because it was not renewed. */
  lost(): void {
    if (this.#outage) this.#outage.lost++;
  }

  #over(): void {
    const outage = this.#outage!;
    this.#outage = undefined;
    this.observers.onAnswered = undefined;
    // Where outages follow each other faster than once a minute, the lines of the minute tell of them.
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
    // Only now: to be told of each answer would cost something all day.
    this.observers.onAnswered = () => this.#over();
    const failed = { calls: 0, ticks: 0, renewals: 0, releases: 0, campaigns: 0 };
    return (this.#outage = { since: now, lastAt: now, failed, lost: 0, isTold: false });
  }
}

/** A Redis that refuses has answered. It may refuse one resource for ever, and grant all others. */
function isOutage(error: LockError): boolean {
  return !(error.cause instanceof LockStoreError && error.cause.failure === 'refused');
}

import type { LockError } from '../../core/api/errors.js';
import type { LockEventOf } from '../../core/events/events.js';
import type { LockObservers } from '../../core/events/observers.js';
import type { Clock } from '../../core/util/clock.js';
import { isMintedByStore } from '../../core/store/fencing-token.js';
import { LockStoreError } from '../../core/store/store-error.js';
import { formatDuration } from '../../core/util/durations.js';
import { count, countWas } from '../../core/util/plurals.js';
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

export type FailedKind = keyof typeof NOUNS;

/** What an event tells of a command that failed. */
interface Failure {
  readonly resource: string;
  readonly error: LockError;
}

interface Outage {
  readonly since: number;
  readonly failed: Record<FailedKind, number>;
  lost: number;
  /** Whether a line has told that it began. */
  isTold: boolean;
  readonly stopListening: () => void;
}

/**
 * Commands that fail while Redis is away: a line when it begins, one a minute for each reason, and one when it is over.
 * It is over with the first renewal that succeeds, or the first lock that Redis grants.
 */
export class OutageLog {
  #outage: Outage | undefined;

  constructor(
    private readonly clock: Clock,
    private readonly lines: RepeatedLines,
    private readonly write: (line: string) => void,
    private readonly observers: LockObservers,
  ) {}

  /** @param line what is written of the first failure for this reason */
  failed(kind: FailedKind, { resource, error }: Failure, line: string): void {
    const { cause } = error;
    const why = cause instanceof Error ? cause.message : error.message;
    const isRefused = cause instanceof LockStoreError && cause.failure === 'refused';
    // A Redis that refuses has answered. It may refuse one resource for ever, and grant all others.
    const outage = isRefused ? undefined : (this.#outage ??= this.#begin());
    if (outage) outage.failed[kind]++;
    const isTold = this.lines.add(`${isRefused ? 'refused ' : ''}${kind}: ${why}`, resource, line, (lines, names) => {
      return `In the last minute, ${count(lines, `more ${NOUNS[kind]}`)} failed (${why}): ${names}.`;
    });
    if (outage) outage.isTold ||= isTold;
  }

  /** A lease was lost because it was not renewed. */
  lost(): void {
    if (this.#outage) this.#outage.lost++;
  }

  over(): void {
    const outage = this.#outage;
    if (!outage) return;
    this.#outage = undefined;
    outage.stopListening();
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
        `Meanwhile ${failed.join(' and ')} failed${lost}.`,
    );
  }

  #begin(): Outage {
    // Only now: an observer of each lock would cost something all day.
    const stopListening = this.observers.add((event) => this.#acquired(event), ['acquired']);
    const failed = { calls: 0, ticks: 0, renewals: 0, releases: 0, campaigns: 0 };
    return { since: this.clock.now(), failed, lost: 0, isTold: false, stopListening };
  }

  /** A lock that another call of this process has handed over was granted without Redis. */
  #acquired({ fencingToken }: LockEventOf<'acquired'>): void {
    if (isMintedByStore(fencingToken)) this.over();
  }
}

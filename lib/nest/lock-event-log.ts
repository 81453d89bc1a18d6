import { Logger } from '@nestjs/common';
import { type LockError, quoteResource } from '../core/api/errors.js';
import type { LockEvent, LockEventOf } from '../core/api/events.js';
import { LockStoreError } from '../core/store/lock-store.js';

/** What is logged. */
export const LOGGED_EVENTS = [
  'lost',
  'leaked',
  'releaseFailed',
  'renewalFailed',
  'elected',
  'demoted',
  'campaignFailed',
  'callbackFailed',
  'tickSkipped',
] as const satisfies readonly LockEvent['type'][];

const WHY_SKIPPED = {
  late: 'later than maxClockSkewMs and waitMs allow, or older than the last tick that was claimed',
  early: 'further ahead than maxClockSkewMs allows',
} as const;

/** Logs what somebody should look at. Everything else is for the observers. */
export class LockEventLog {
  readonly #logger = new Logger('RedisLock');
  /** The jobs for which a wrong clock was logged. */
  readonly #wrongClocks = new Set<string>();

  readonly observe = (event: LockEventOf<(typeof LOGGED_EVENTS)[number]>): void => {
    switch (event.type) {
      case 'lost':
        this.#logger.warn(
          `Lost the lease of ${quoteResource(event.resource)} (${event.reason}); its signal has aborted.`,
        );
        return;
      case 'leaked':
        this.#logger.warn(describeLeak(event));
        return;
      case 'releaseFailed':
        this.#logger.warn(`${event.error.message}. ${describeNextTry(event.error)}`);
        return;
      case 'renewalFailed':
        this.#logger.warn(`${event.error.message}. It is tried again until the lease ends.`);
        return;
      case 'elected':
        this.#logger.log(`Leads ${quoteResource(event.leadership)}.`);
        return;
      case 'demoted':
        this.#logger.log(`Leads ${quoteResource(event.leadership)} no more (${event.reason}).`);
        return;
      case 'campaignFailed':
        this.#logger.warn(`${event.error.message}. It campaigns again.`);
        return;
      case 'callbackFailed':
        this.#logger.error(
          `${event.callback} of the campaign for ${quoteResource(event.leadership)} threw; it goes on. ${String(event.error)}`,
          event.error instanceof Error ? event.error.stack : undefined,
        );
        return;
      case 'tickSkipped':
        this.#tickSkipped(event);
    }
  };

  /** A wrong clock keeps a job from running, at every tick: that is said once for each job. */
  #tickSkipped(event: Extract<LockEvent, { type: 'tickSkipped' }>): void {
    if (!('lateMs' in event)) return;
    const { job, tick, reason, lateMs, clockBehindMs } = event;
    const skipped = `Tick ${tick} of job ${quoteResource(job)} is skipped`;
    const by =
      (reason === 'late' ? `it is ${lateMs} ms late` : `it is due only in ${-lateMs} ms`) + ' by the clock of Redis';
    if (clockBehindMs === undefined || this.#wrongClocks.has(job)) {
      this.#logger.debug(`${skipped}: ${by}, ${WHY_SKIPPED[reason]}.`);
      return;
    }
    this.#wrongClocks.add(job);
    const off = `${Math.abs(clockBehindMs)} ms ${clockBehindMs > 0 ? 'behind' : 'ahead of'}`;
    this.#logger.warn(
      `${skipped}: ${by}. The clock of this machine is ${off} that of Redis, more than maxClockSkewMs ` +
        `allows, so the job does not run here. Set the clocks (NTP), or raise maxClockSkewMs. This is said once for each job.`,
    );
  }

  unreachable(trouble: string): void {
    this.#logger.warn(
      `The application starts, but it is ${trouble}. It goes on trying to connect; until then, locks fail with LockUnavailableError.`,
    );
  }

  unreachableNodes(nodes: number, troubles: readonly string[]): void {
    const effect =
      troubles.length <= (nodes - 1) / 2
        ? 'A majority is there, so locks work'
        : 'Until a majority is there, locks fail with LockUnavailableError';
    this.#logger.warn(
      `The application starts, but of ${nodes} nodes ${troubles.length} cannot be reached: ${troubles.join('; ')}. ${effect}.`,
    );
  }

  /** In production. */
  inMemory(): void {
    this.#logger.warn(
      "connection: 'memory:' keeps the locks in this process: no other process sees them, and jobs run on every instance. It is for " +
        'tests, and NODE_ENV is production: give the URL of a Redis.',
    );
  }

  noInbox(why: string): void {
    this.#logger.warn(`Waiters cannot be told by message and ask again every second instead: ${why}.`);
  }
}

/** What Redis refuses, or a closed service, is not asked again. */
function describeNextTry({ cause }: LockError): string {
  return cause instanceof LockStoreError && cause.failure === 'refused'
    ? 'It is not tried again: the lock ends with its lease.'
    : 'It is tried again until the lease has expired by itself.';
}

function describeLeak({ resource, callSite, isRenewed }: LockEventOf<'leaked'>): string {
  const from = callSite ? ` It was acquired at ${callSite}.` : '';
  const effect = isRenewed
    ? 'It is renewed for as long as this process lives, so no other call gets it'
    : "It is renewed no more (onLeak: 'expire') and ends with its lease";
  return (
    `The lease of ${quoteResource(resource)} was not released, and nothing refers to it any more, so nothing can release it.${from} ` +
    `${effect}. Use locks.using(), await using, or release it in a finally.`
  );
}

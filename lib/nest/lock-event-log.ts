import { Logger } from '@nestjs/common';
import { type LockError, quoteResource } from '../core/api/errors.js';
import type { LockEvent, LockEventOf } from '../core/api/events.js';
import { quoteSome } from '../core/util/quoted.js';
import { LockStoreError } from '../core/store/lock-store.js';

/** The events that are logged. */
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
  'draining',
  'drained',
] as const satisfies readonly LockEvent['type'][];

const WHY_SKIPPED = {
  late: 'later than maxClockSkewMs and waitMs allow, or older than the last claimed tick',
  early: 'further ahead than maxClockSkewMs allows',
} as const;

/** Logs what an operator should look at. Observers see every event. */
export class LockEventLog {
  readonly #logger = new Logger('RedisLock');
  /** The jobs for which a wrong clock has been logged. */
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
        this.#logger.log(`Leads ${quoteResource(event.leadership)} no longer (${event.reason}).`);
        return;
      case 'campaignFailed':
        this.#logger.warn(`${event.error.message}. It campaigns again.`);
        return;
      case 'callbackFailed':
        this.#logger.error(
          `${event.callback} of the campaign for ${quoteResource(event.leadership)} threw. The campaign continues. ` +
            String(event.error),
          event.error instanceof Error ? event.error.stack : undefined,
        );
        return;
      case 'tickSkipped':
        this.#tickSkipped(event);
        return;
      case 'draining':
        this.#logger.log(
          `Closing: waiting up to ${duration(event.drainMs)} (shutdown.drainMs) for ` +
            `${countLeases(event.resources)}: ${quoteSome(event.resources)}.`,
        );
        return;
      case 'drained':
        this.#drained(event);
    }
  };

  #drained({ resources, waitedMs }: LockEventOf<'drained'>): void {
    if (resources.length === 0) {
      this.#logger.log(`Closing: all leases were released after ${duration(waitedMs)}.`);
      return;
    }
    this.#logger.warn(
      `Closing: ${countLeases(resources)} still held after ${duration(waitedMs)} (shutdown.drainMs): ` +
        `${quoteSome(resources)}. The shutdown goes on. What is not released now stays locked until its lease ends.`,
    );
  }

  /** A wrong clock keeps a job from running at every tick. It is logged once for each job. */
  #tickSkipped(event: Extract<LockEvent, { type: 'tickSkipped' }>): void {
    if (!('lateMs' in event)) return;
    const { job, tick, reason, lateMs, clockBehindMs } = event;
    const skipped = `Tick ${tick} of job ${quoteResource(job)} is skipped`;
    const by =
      (reason === 'late' ? `it is ${lateMs} ms late` : `it is due in ${-lateMs} ms`) + ' by the clock of Redis';
    if (clockBehindMs === undefined || this.#wrongClocks.has(job)) {
      this.#logger.debug(`${skipped}: ${by}, ${WHY_SKIPPED[reason]}.`);
      return;
    }
    this.#wrongClocks.add(job);
    const off = `${Math.abs(clockBehindMs)} ms ${clockBehindMs > 0 ? 'behind' : 'ahead of'}`;
    this.#logger.warn(
      `${skipped}: ${by}. The clock of this machine is ${off} that of Redis, more than maxClockSkewMs allows, so ` +
        `the job does not run here. Set the clocks (NTP), or raise maxClockSkewMs. This is logged once for each job.`,
    );
  }

  unreachable(trouble: string): void {
    this.#logger.warn(
      `The application starts, but it is ${trouble}. It keeps trying to connect. Until it is connected, ` +
        `locks fail with LockUnavailableError.`,
    );
  }

  unreachableNodes(nodes: number, troubles: readonly string[]): void {
    const effect =
      troubles.length <= (nodes - 1) / 2
        ? 'A majority can be reached, so locks work'
        : 'Until a majority can be reached, locks fail with LockUnavailableError';
    this.#logger.warn(
      `The application starts, but ${troubles.length} of ${nodes} nodes cannot be reached: ${troubles.join('; ')}. ` +
        `${effect}.`,
    );
  }

  /** Locks in memory, in production. */
  inMemory(): void {
    this.#logger.warn(
      "connection: 'memory:' keeps the locks in this process: no other process sees them, and jobs run on every " +
        'instance. It is meant for tests, but NODE_ENV is production. Set connection to the URL of a Redis.',
    );
  }

  noInbox(why: string): void {
    this.#logger.warn(`Waiters get no messages from Redis, and ask again every second instead: ${why}.`);
  }
}

function countLeases({ length }: readonly string[]): string {
  return length === 1 ? '1 lease' : `${length} leases`;
}

/** A duration for a reader: `50 ms`, `1.2 s`. */
function duration(ms: number): string {
  return ms < 1_000 ? `${Math.round(ms)} ms` : `${Number((ms / 1_000).toFixed(1))} s`;
}

/** A release that Redis or a closed service refuses is not tried again. */
function describeNextTry({ cause }: LockError): string {
  return cause instanceof LockStoreError && cause.failure === 'refused'
    ? 'It is not tried again: the lock ends with its lease.'
    : 'It is tried again until the lease has expired.';
}

function describeLeak({ resource, callSite, isRenewed }: LockEventOf<'leaked'>): string {
  const from = callSite ? ` It was acquired at ${callSite}.` : '';
  const effect = isRenewed
    ? 'It is renewed for as long as this process lives, so no other call gets it'
    : "It is no longer renewed (onLeak: 'expire'), so it expires";
  return (
    `The lease of ${quoteResource(resource)} was not released. No code refers to it any longer, so none can release ` +
    `it.${from} ${effect}. Use locks.using(), await using, or release it in a finally.`
  );
}

import type { Logger } from '@nestjs/common';
import { LONG_WAIT_MS } from '../../kernel/acquiring/waits.js';
import { type LockError, type LockUnavailableError, quoteResource } from '../../kernel/api/errors.js';
import { describeLabel, nameHolders, OTHER_GROUP } from '../../kernel/api/holder.js';
import type { LockEventOf } from '../../kernel/events/events.js';
import { type EventTable, type LockObservers, observeBy } from '../../kernel/events/observers.js';
import { JOB_PREFIX, LEADER_PREFIX } from '../../kernel/api/resource.js';
import { describeOrders } from '../../kernel/holding/lock-order.js';
import { ClosedStoreError, LockStoreError } from '../../kernel/store/store-error.js';
import { type Clock, SYSTEM_CLOCK } from '../../kernel/util/clock.js';
import { formatDuration } from '../../kernel/util/durations.js';
import { count, countWas } from '../../kernel/util/plurals.js';
import {
  describeStack,
  describeThrown,
  escapeText,
  plainOrQuoted,
  quote,
  quoteSome,
} from '../../kernel/util/quoted.js';
import { DEFAULT_NAME } from '../service-parts.js';
import { loggerOf, see } from './logger-of.js';
import { MissedLog } from './missed-log.js';
import { NOT_RENEWED, OutageLog } from './outage-log.js';
import { RepeatedLines } from './repeated-lines.js';

const WHY_SKIPPED = {
  late: 'later than maxClockSkewMs, waitMs and jitterMs allow, or older than the last claimed tick',
  early: 'further ahead than maxClockSkewMs allows',
} as const;

/** Logs the events that an operator should look at. Observers see every event. */
export class LockEventLog {
  readonly #logger: Logger;
  readonly #lines: RepeatedLines;
  readonly #missed: MissedLog;
  /** Errors of calls that have a line already: the lock of another library could not be requested. */
  readonly #told = new WeakSet<LockError>();
  /** The jobs for which a wrong clock has been logged. */
  readonly #wrongClocks = new Set<string>();

  constructor(
    name: string = DEFAULT_NAME,
    private readonly clock: Clock = SYSTEM_CLOCK,
  ) {
    this.#logger = loggerOf(name);
    this.#lines = new RepeatedLines(clock, this.#warn);
    this.#missed = new MissedLog(clock, (line, isWarning) => this.#logger[isWarning ? 'warn' : 'log'](line));
  }

  /** Logs the events of a lock service until `closing` aborts. Then it logs everything that was only counted. */
  listenTo(observers: LockObservers, closing: AbortSignal, countWaiting: () => number): void {
    const outage = new OutageLog(this.clock, this.#lines, this.#warn, observers);
    observeBy(this.#tableOf(outage, countWaiting), (...each) => observers.add(...each));
    // A callback of its own, because an event would be created by every call that finds a lock taken.
    observers.onUnavailable = (error, silentMs) => this.#unavailable(error, outage, silentMs);
    closing.addEventListener('abort', () => this.#flush(), { once: true });
  }

  /** Logs everything that was counted since the shutdown began. */
  close(): void {
    this.#missed.flush();
    this.#lines.close();
  }

  #flush(): void {
    this.#missed.flush();
    this.#lines.flush();
  }

  readonly #warn = (line: string): void => this.#logger.warn(line);

  #tableOf(outage: OutageLog, countWaiting: () => number): EventTable {
    return {
      waitingLong: (event) => this.#waitingLong(event, countWaiting),
      heldLong: (event) => this.#heldLong(event),
      eventLoopBlocked: (event) => this.#eventLoopBlocked(event),
      tickFailed: ({ job, error }) => {
        if (this.#told.has(error)) return;
        const line = describeFailure(error, 'This instance does not run the tick.');
        outage.failed('ticks', { resource: job, error }, line);
      },
      lost: (event) => {
        if (event.reason === 'notRenewed') outage.lost();
        this.#lost(event);
      },
      leaked: (event) => this.#leaked(event),
      lockOrder: ({ edges }) => this.#warn(`${describeOrders(edges)} ${see('locks-are-taken-in-different-orders')}`),
      releaseFailed: (event) =>
        outage.failed('releases', event, describeFailure(event.error, describeNextTry(event.error))),
      renewalFailed: (event) =>
        outage.failed('renewals', event, describeFailure(event.error, 'The renewal is retried until the lease ends.')),
      campaignFailed: (event) =>
        outage.failed('campaigns', event, describeFailure(event.error, 'This instance will campaign again.')),
      elected: ({ leadership }) => this.#logger.log(`Leads ${quoteResource(leadership)}.`),
      demoted: ({ leadership, reason }) =>
        this.#logger.log(`No longer leads ${quoteResource(leadership)} (${reason}).`),
      callbackFailed: (event) => this.#callbackFailed(event),
      overlapLong: (event) => this.#overlapLong(event),
      tickSkipped: (event) => this.#tickSkipped(event),
      tickMissed: (event) => this.#missed.add(event),
      forceReleased: (event) => this.#warn(describeForced(event)),
      jobCommand: (event) => this.#logger[event.command === 'pause' ? 'warn' : 'log'](describeCommand(event)),
      draining: ({ drainMs, resources }) =>
        this.#logger.log(
          `Closing: waiting up to ${formatDuration(drainMs)} (shutdown.drainMs) for ` +
            `${count(resources.length, 'lease')}: ${quoteSome(resources)}.`,
        ),
      drained: (event) => this.#drained(event),
    };
  }

  /** Of calls that wait, one line a minute: the callback of each of them may throw each second. */
  #callbackFailed({ callback, leadership, resource, error }: LockEventOf<'callbackFailed'>): void {
    const thrown = describeThrown(error, true);
    if (leadership === undefined) {
      this.#lines.add(
        'callbackFailed',
        resource,
        () => `${callback} of a call for ${quoteResource(resource)} threw. The call continues to wait. ${thrown}`,
        (lines, names) => `In the last minute, ${callback} threw ${count(lines, 'more time')}: ${names}.`,
      );
      return;
    }
    this.#logger.error(
      `${callback} of the campaign for ${quoteResource(leadership)} threw. The campaign continues. ${thrown}`,
      error instanceof Error ? describeStack(error) : undefined,
    );
  }

  /** One line a minute, because a holder that hangs makes every call wait. */
  #waitingLong(event: LockEventOf<'waitingLong'>, countWaiting: () => number): void {
    this.#lines.add(
      'waitingLong',
      event.resource,
      () => `${describeWait(event, countWaiting() - 1)} ${see('calls-wait-for-a-long-time')}`,
      (lines, names) =>
        `In the last minute, ${count(lines, 'more call')} waited for more than ${formatDuration(LONG_WAIT_MS)}: ${names}.`,
    );
  }

  /** One line a minute, because a slow database makes every holder slow. */
  #heldLong({ resource, group, heldMs }: LockEventOf<'heldLong'>): void {
    this.#lines.add(
      'heldLong',
      resource,
      () =>
        `${quoteResource(resource)} has been held for ${formatDuration(heldMs)}${group === OTHER_GROUP ? '' : ` (group ${quote(group)})`}, longer than ` +
        `warnAfterMs. Other calls for it wait until it is released. Hold the lock for less time, or raise warnAfterMs. ` +
        see('a-lease-is-held-for-a-long-time'),
      (lines, names) => `In the last minute, ${countWas(lines, 'more lease')} held for a long time: ${names}.`,
    );
  }

  /** One line a minute, because a database that hangs keeps every job from ending. */
  #overlapLong({ job, tick, overlap, ranMs, ticks }: LockEventOf<'overlapLong'>): void {
    const wait = overlap === 'wait';
    this.#lines.add(
      'overlapLong',
      job,
      () =>
        `The job ${quote(job)} has run for ${formatDuration(ranMs)} on this instance (tick ${escapeText(tick)}), and ` +
        `${wait ? `${count(ticks, 'later tick')} ${ticks === 1 ? 'waits' : 'wait'} for it` : `${countWas(ticks, 'later tick')} skipped`}. ` +
        'Look for a promise that never settles. maxHoldMs ends such a run; if it may take that long, raise warnAfterMs. ' +
        see('a-run-does-not-end'),
      (lines, names) => `In the last minute, ${count(lines, 'more run')} kept later ticks from running: ${names}.`,
    );
  }

  #eventLoopBlocked({ resource, blockedMs, leaseMs, leftMs }: LockEventOf<'eventLoopBlocked'>): void {
    const left = leftMs > 0 ? `has ${formatDuration(leftMs)} left` : 'has expired';
    this.#lines.add(
      'eventLoopBlocked',
      resource,
      () =>
        `The event loop was blocked for at least ${formatDuration(blockedMs)}. The lease of ${quoteResource(resource)} ` +
        `(leaseMs: ${leaseMs}) was not renewed during that time, and ${left}. Keep synchronous work short, give ` +
        `the process more CPU, or raise leaseMs. ${see('the-event-loop-is-blocked')}`,
      (lines, names) =>
        `In the last minute, the event loop was blocked ${count(lines, 'more time')} while this process held ${names}.`,
    );
  }

  #unavailable(error: LockUnavailableError, outage: OutageLog, silentMs?: number): void {
    // A campaign that failed has a line of its own.
    if (this.#told.has(error) || error.resource.startsWith(LEADER_PREFIX)) return;
    const isRefused = error.cause instanceof LockStoreError && error.cause.failure === 'refused';
    const next = isRefused ? 'The call has failed.' : 'Calls fail with LockUnavailableError until Redis answers.';
    outage.failed('calls', { resource: error.resource, error }, describeFailure(error, next), silentMs);
  }

  #lost({ resource, reason, error }: LockEventOf<'lost'>): void {
    const isJob = resource.startsWith(JOB_PREFIX);
    this.#lines.add(
      reason === 'notRenewed' ? NOT_RENEWED : `lost: ${reason}`,
      resource,
      `${error.message} Its signal has aborted.${isJob ? ' The next run may start while this one is still running.' : ''} ` +
        see('a-lease-is-lost'),
      (lines, names) => `In the last minute, ${countWas(lines, 'more lease')} lost (${reason}): ${names}.`,
    );
  }

  #leaked(event: LockEventOf<'leaked'>): void {
    const { resource, callSite } = event;
    this.#lines.add(
      'leaked',
      resource,
      `${describeLeak(event)} ${see('a-lease-leaks')}`,
      (lines, names) => {
        const from = callSite ? `, acquired at ${callSite}` : '';
        return `In the last minute, ${count(lines, 'more lease')} leaked${from}: ${names}.`;
      },
      callSite ?? '',
    );
  }

  #drained({ resources, waitedMs }: LockEventOf<'drained'>): void {
    if (resources.length === 0) {
      this.#logger.log(`Closing: all leases were released after ${formatDuration(waitedMs)}.`);
      return;
    }
    this.#logger.warn(
      `Closing: ${count(resources.length, 'lease')} still held after ${formatDuration(waitedMs)} (shutdown.drainMs): ` +
        `${quoteSome(resources)}. The shutdown continues. Anything not released by now stays locked ` +
        `until its lease ends. ` +
        see('the-application-closes'),
    );
  }

  #crashed({ job, tick, attempts }: Extract<LockEventOf<'tickSkipped'>, { reason: 'crashed' }>): void {
    this.#logger.error(
      `The job ${quote(job)} has crashed: none of ${count(attempts, 'run')} of its tick ${escapeText(tick)} finished, each on ` +
        `another instance. It is not run again (maxReruns: ${attempts - 1}). Look for a process that ended, such as one ` +
        `that ran out of memory, or for leases that were lost. Then run the job by hand. ${see('a-job-crashes')}`,
    );
  }

  #otherDate({ job, tick, registered }: Extract<LockEventOf<'tickSkipped'>, { reason: 'otherDate' }>): void {
    this.#logger.warn(
      `The job ${quote(job)} does not run here at ${escapeText(tick)}: another instance has registered it for ` +
        `${new Date(registered).toISOString()}. Give a job the same Date on all instances. To run a job after each start, ` +
        `use @SingletonTimeout. ${see('instances-disagree-about-a-job')}`,
    );
  }

  /** Logs a wrong clock once for each job, because it skips the job at every tick. */
  #tickSkipped(event: LockEventOf<'tickSkipped'>): void {
    if (event.reason === 'crashed') this.#crashed(event);
    if (event.reason === 'otherDate') this.#otherDate(event);
    if (!('lateMs' in event)) return;
    const { job, tick, reason, lateMs, clockBehindMs } = event;
    const skipped = `Tick ${escapeText(tick)} of job ${quoteResource(job)} is skipped`;
    const by =
      (reason === 'late' ? `it is ${lateMs} ms late` : `it is due in ${-lateMs} ms`) + ' by the clock of Redis';
    if (clockBehindMs === undefined || this.#wrongClocks.has(job)) {
      this.#logger.debug(`${skipped}: ${by}, ${WHY_SKIPPED[reason]}.`);
      return;
    }
    this.#wrongClocks.add(job);
    const off = `${Math.abs(clockBehindMs)} ms ${clockBehindMs > 0 ? 'behind' : 'ahead of'}`;
    this.#logger.warn(
      `${skipped}: ${by}. The clock of this machine is ${off} Redis, more than maxClockSkewMs allows, so ` +
        `the job does not run here. Set the clocks (NTP), or raise maxClockSkewMs. This is logged once for each job. ` +
        see('a-wrong-clock'),
    );
  }
}

function describeForced({ resource, fencingToken, holder, label, by, reason }: LockEventOf<'forceReleased'>): string {
  const held = holder === undefined ? '' : `, held by ${plainOrQuoted(holder)}${describeLabel(label)}`;
  return (
    `forceRelease() has ended the lease of ${quoteResource(resource)} (token ${fencingToken})${held}. ` +
    `${describeOperator(by, reason)}The work of the holder continues. ${see('an-operator-acts')}`
  );
}

function describeCommand({ job, command, by, reason, until }: LockEventOf<'jobCommand'>): string {
  const end = until === undefined ? 'resume()' : new Date(until).toISOString();
  const what = {
    pause: `is paused for the whole fleet until ${end}`,
    resume: 'is no longer paused',
    runNow: 'runs now, on this instance',
  }[command];
  return `The job ${quote(job)} ${what}. ${describeOperator(by, reason)}${see('an-operator-acts')}`;
}

function describeOperator(by: string | undefined, reason: string | undefined): string {
  return (
    (by === undefined ? '' : `Requested by ${quote(by)}. `) + (reason === undefined ? '' : `Reason: ${quote(reason)}. `)
  );
}

function describeFailure({ message }: LockError, next: string): string {
  return `${message}. ${next} ${see('redis-does-not-answer')}`;
}

function describeNextTry({ cause }: LockError): string {
  return cause instanceof ClosedStoreError
    ? 'The release is not retried: the lock expires with its lease.'
    : 'The release is retried until the lease has expired.';
}

/** @param others the number of other calls of the process that wait */
function describeWait(event: LockEventOf<'waitingLong'>, others: number): string {
  const { resource, holders } = event;
  const leftMs = Math.max(...holders.map(({ ttlMs }) => ttlMs));
  const by = holders.length > 0 ? `${nameHolders(event)}, ${formatDuration(leftMs)} left` : 'an unknown holder';
  const rest = others > 0 ? `; and ${count(others, 'other call')} ${others === 1 ? 'waits' : 'wait'}` : '';
  return `Waiting for ${quoteResource(resource)}: held by ${by}${rest}.`;
}

function describeLeak({ resource, mode, group, callSite, isRenewed }: LockEventOf<'leaked'>): string {
  const from = callSite ? ` It was acquired at ${callSite}.` : '';
  const effect = isRenewed
    ? 'The lease is renewed for as long as this process lives, so no other call gets the lock'
    : "The lease is no longer renewed (onLeak: 'expire'), so it expires";
  return (
    `The lease of ${quoteResource(resource)} (mode ${mode}${group === OTHER_GROUP ? '' : `, group ${quote(group)}`}) was not released, and nothing references it any longer, so nothing can release ` +
    `it.${from} ${effect}. Use locks.using(), await using, or release it in a finally.`
  );
}

import { quoteResource } from '../../kernel/api/errors.js';
import type { LockEventOf } from '../../kernel/events/events.js';
import type { Clock, Timer } from '../../kernel/util/clock.js';
import { count as counted } from '../../kernel/util/plurals.js';
import { quote } from '../../kernel/util/quoted.js';
import { see } from './logger-of.js';

type Missed = LockEventOf<'tickMissed'>;

/**
 * After a downtime, the missed ticks of all jobs are found one after another. The line waits this long for the next.
 */
const COLLECT_MS = 5_000;
/** The line waits no longer than this in total. */
const MAX_COLLECT_MS = 60_000;
/** Missed ticks of the last minute are no warning: the application was restarted. */
const RESTART_MS = 60_000;
/** Times to name in a line. Of more ticks, it names the first and the last. */
const MAX_TIMES = 5;
/** Jobs to name in a line, most missed ticks first. */
const MAX_JOBS = 5;

/** Logs missed ticks: one line for all jobs that are reported within a few seconds of each other. */
export class MissedLog {
  #missed: Missed[] = [];
  #timer: Timer | undefined;
  #flushAt: number | undefined;
  #isWarning = false;

  /** @param write gets the line, and whether it is a warning */
  constructor(
    private readonly clock: Clock,
    private readonly write: (line: string, isWarning: boolean) => void,
    private readonly isProduction = process.env['NODE_ENV'] === 'production',
  ) {}

  add(event: Missed): void {
    this.#missed.push(event);
    // A job that runs every second misses ticks with each restart of an application that has one instance.
    const isRestart = this.clock.wallNow() - event.first < RESTART_MS;
    this.#isWarning ||= this.isProduction && !isRestart && !event.afterStop;
    const now = this.clock.now();
    this.#flushAt ??= now + MAX_COLLECT_MS;
    this.#timer?.cancel();
    const waitMs = Math.min(COLLECT_MS, this.#flushAt - now);
    this.#timer = this.clock.setTimer(() => this.flush(), waitMs, { background: true });
  }

  /** Writes everything that was collected until now. */
  flush(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#flushAt = undefined;
    const [missed, isWarning] = [this.#missed, this.#isWarning];
    [this.#missed, this.#isWarning] = [[], false];
    if (missed.length > 0) this.write(`${describeMissed(missed)} ${see('ticks-are-missed')}`, isWarning);
  }
}

/** Describes the missed ticks of one job or several, and the consequence. */
export function describeMissed(missed: readonly Missed[]): string {
  const [event] = missed;
  return new Set(missed.map(({ job }) => job)).size > 1 ? describeSeveral(missed) : describeOne(merged(event!, missed));
}

/** Merges the missed ticks of one job that were reported one after another. */
function merged(event: Missed, all: readonly Missed[]): Missed {
  return {
    ...event,
    count: all.reduce((sum, { count }) => sum + count, 0),
    first: Math.min(...all.map(({ first }) => first)),
    last: Math.max(...all.map(({ last }) => last)),
    ticks: all.flatMap(({ ticks }) => ticks),
    catchUp: all.some(({ catchUp }) => catchUp),
    ...(event.afterStop && !all.every(({ afterStop }) => afterStop) && { afterStop: undefined }),
  };
}

function describeOne({ job, count, first, last, ticks, catchUp, afterStop }: Missed): string {
  const times = count > MAX_TIMES ? nameTimes([first, last], ' to ') : nameTimes(ticks, ', ');
  const isOne = count === 1;
  const notRun = isOne ? 'It will not be caught up.' : 'They will not be caught up.';
  const next = catchUp ? 'One catch-up run follows.' : notRun;
  return (
    `${counted(count, 'tick')} of job ${quoteResource(job)} ${isOne ? 'was' : 'were'} missed: ${times} UTC. ` +
    `${whyNotClaimed(isOne ? 'it' : 'them', afterStop)} ${next}`
  );
}

function describeSeveral(missed: readonly Missed[]): string {
  const countOf = new Map<string, number>();
  for (const { job, count } of missed) countOf.set(job, (countOf.get(job) ?? 0) + count);
  const jobs = [...countOf].sort(([, one], [, other]) => other - one);
  const named = jobs.slice(0, MAX_JOBS).map(([job, count]) => `${quote(job)} (${count})`);
  const more = jobs.length > MAX_JOBS ? ` and ${counted(jobs.length - MAX_JOBS, 'more job')}` : '';
  const total = missed.reduce((sum, { count }) => sum + count, 0);
  const [first, last] = [Math.min(...missed.map((each) => each.first)), Math.max(...missed.map((each) => each.last))];
  const caughtUp = new Set(missed.flatMap(({ job, catchUp }) => (catchUp ? [job] : []))).size;
  const next =
    caughtUp === 0
      ? 'They will not be caught up.'
      : `One catch-up run follows for ${caughtUp === jobs.length ? 'each job' : `${caughtUp} of the jobs`}.`;
  return (
    `${counted(total, 'tick')} of ${counted(jobs.length, 'job')} were missed: ${named.join(', ')}${more}, ` +
    `${nameTimes(first === last ? [first] : [first, last], ' to ')} UTC. ` +
    `${whyNotClaimed(
      'them',
      missed.every((each) => each.afterStop),
    )} ${next}`
  );
}

function whyNotClaimed(ticks: string, afterStop = false): string {
  return afterStop ? `All instances had been shut down, so none claimed ${ticks}.` : `No instance claimed ${ticks}.`;
}

/** Lists times in UTC. The day precedes its first time. */
function nameTimes(times: readonly number[], between: string): string {
  let day = '';
  const named = times.map((time) => {
    const [date = '', clock = ''] = new Date(time).toISOString().split('T');
    const short = clock.replace(/(:00)?\.000Z$/, '').replace(/Z$/, '');
    const isSameDay = date === day;
    day = date;
    return isSameDay ? short : `${date} ${short}`;
  });
  return named.join(between);
}

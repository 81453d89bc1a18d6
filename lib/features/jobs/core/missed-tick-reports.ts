import type { Runtime } from '../../../kernel/holding/runtime.js';
import type { LockEventOf } from '../../../kernel/events/events.js';
import { ask } from '../../../kernel/store/ask.js';
import { type JobStore, type MissedNote, type MissedReply, MAX_MISSED_AT_ONCE } from './job-store.js';
import type { TickSchedule, Watched } from './watched-job.js';
import type { JobState } from './job-state.js';

/** An event names so many of the missed ticks. */
const MAX_TOLD = 100;

/** Accounts missed ticks in the store, and reports the ones that this instance was the first to account. */
export class MissedTickReports {
  constructor(
    private readonly runtime: Runtime,
    private readonly store: JobStore,
  ) {}

  /** Accounts the ticks after one time and up to another, and reports them if no other instance does. */
  async note(watched: Watched, schedule: TickSchedule, after: number, until: number): Promise<MissedReply | undefined> {
    const { job, resource } = watched;
    const { count, first, ticks } = await schedule.between(after, until, MAX_MISSED_AT_ONCE);
    if (first === undefined) return undefined;
    let earlier: MissedNote['earlier'];
    if (count > ticks.length) {
      // They are too many to name, and the store cannot know which of them were due during a pause.
      const [state] = await this.#ask('read the state of', watched, () => this.store.look([resource], 0));
      earlier = await countUnpaused(schedule, state!, after, ticks[0]! - 1);
    }
    const runWithinMs = job.onMissed === 'runOnce' ? job.catchUpWindowMs : undefined;
    const { historySize } = job;
    const about = { resource, schedule: schedule.text, after, ticks, earlier, historySize, runWithinMs };
    const missed = { ...about, next: schedule.after(until) };
    return this.send(watched, missed);
  }

  /**
   * Sends the same ticks again if the answer is lost: the store then knows that this instance reported them. A poll and
   * the claims of late ticks may find the same ticks at one moment, and all get this reply. Observers get one event.
   */
  async send(watched: Watched, missed: MissedNote): Promise<MissedReply> {
    watched.unanswered = missed;
    const reply = await this.#ask('record missed ticks of', watched, () => this.store.note(missed));
    watched.unanswered = undefined;
    const told = `${missed.after} ${missed.ticks.at(-1)} ${missed.schedule}`;
    if (reply.status === 'noted' && reply.missed && watched.told !== told) {
      watched.told = told;
      // Another instance may have begun the run for them before a lost answer was asked for again.
      const until = reply.missed.last + (missed.runWithinMs ?? -Infinity);
      const catchUp = reply.owed !== undefined || until >= this.runtime.clock.wallNow();
      this.#tell(watched.job.job, reply.missed, { catchUp, ...(reply.afterStop && { afterStop: true }) });
    }
    return reply;
  }

  #tell(
    job: string,
    missed: NonNullable<Extract<MissedReply, { status: 'noted' }>['missed']>,
    more: Pick<LockEventOf<'tickMissed'>, 'catchUp' | 'afterStop'>,
  ): void {
    const { observers } = this.runtime;
    if (!observers.wants('tickMissed')) return;
    const { service, groups } = observers;
    observers.emit({
      type: 'tickMissed',
      service,
      group: groups.of(job, job),
      job,
      count: missed.count,
      first: missed.first,
      last: missed.last,
      ticks: missed.ticks.slice(-MAX_TOLD),
      ...more,
    });
  }

  #ask<T>(what: string, { resource }: Watched, send: () => Promise<T>): Promise<T> {
    return ask(this.runtime, send, what, resource, () => !this.runtime.closing.aborted);
  }
}

/** Counts the ticks after one time and up to another, without the ones that were due during a pause. */
async function countUnpaused(
  schedule: TickSchedule,
  state: JobState,
  after: number,
  until: number,
): Promise<MissedNote['earlier']> {
  let count = 0;
  let first: number | undefined;
  let last: number | undefined;
  for (const span of spansBetween(pausesOf(state), after, until)) {
    const found = await schedule.between(...span, 1);
    count += found.count;
    first ??= found.first;
    last = found.ticks.at(-1) ?? last;
  }
  return first === undefined || last === undefined ? undefined : { count, first, last };
}

type Span = readonly [from: number, until: number];

/** When the job was paused, with both ends. */
function pausesOf({ pause, timedPauses = [] }: JobState): Span[] {
  const pauses = timedPauses.map(({ from, until }): Span => [from, until]);
  if (pause) pauses.push([pause.at, pause.until ?? Infinity]);
  return pauses.sort(([one], [other]) => one - other);
}

/** Returns the time after one moment and up to another without the pauses. */
function spansBetween(pauses: readonly Span[], after: number, until: number): Span[] {
  const spans: Span[] = [];
  for (const [from, end] of pauses) {
    const before = Math.min(from - 1, until);
    if (before > after) spans.push([after, before]);
    after = Math.max(after, end);
  }
  if (until > after) spans.push([after, until]);
  return spans;
}

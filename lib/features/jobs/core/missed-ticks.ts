import { jobResource } from '../../../kernel/api/resource.js';
import { ask } from '../../../kernel/store/ask.js';
import type { JobStore, MissedReply } from './job-store.js';
import type { ScheduleOfOther } from './job-claims.js';
import type { Runtime } from '../../../kernel/holding/runtime.js';
import type { Timer } from '../../../kernel/util/clock.js';
import { quote, quoteSome } from '../../../kernel/util/quoted.js';
import { JobPoll, type Question } from './job-poll.js';
import { scheduleOf } from './job-info.js';
import { MissedTickReports } from './missed-tick-reports.js';
import {
  FIRST_LOOK_MS,
  isChanged,
  isDue,
  MAX_UNSCHEDULED,
  prepareTicks,
  timeFirst,
  type TickSchedule,
  type Watched,
} from './watched-job.js';
import type { JobState } from './job-state.js';

/** While Redis does not answer, the pauses between two tries. */
const RETRY_MS = { first: 1_000, longest: 30_000 };
/** A date that was due within this time before an instance starts stays the date of its job. */
const START_MS = 10 * 60_000;
/** The interval at which a job that runs for missed ticks checks whether a run is pending. */
const ASK_AGAIN_MS = 5 * 60_000;

/**
 * Makes the jobs of this process known to the store, and finds ticks that were due and that no instance claimed. One
 * instance of the fleet reports each of them. Nothing is asked while this process sees all ticks of its jobs itself.
 *
 * Works in the background: it never throws. While Redis does not answer, it tries again.
 */
export class MissedTicks {
  readonly #jobs = new Map<string, Watched>();
  readonly #notes: MissedTickReports;
  #timer: Timer | undefined;
  #isStarted = false;
  #isLooking = false;
  #failures = 0;
  /** When the jobs that Redis did not answer for are asked for again, on the monotonic clock, and how often they were. */
  #wrongAgainAt = 0;
  #wrongTries = 0;

  /** @param warn called once when Redis does not answer, for all jobs or for some, until it does */
  constructor(
    private readonly runtime: Runtime,
    private readonly store: JobStore,
    private readonly warn: (line: string) => void = () => {},
  ) {
    this.#notes = new MissedTickReports(runtime, store);
    runtime.closing.addEventListener('abort', () => this.#leave(), { once: true });
  }

  add(job: Watched['job']): void {
    this.#jobs.set(job.job, {
      job,
      resource: jobResource(job.job),
      text: undefined,
      isRegistered: false,
      since: this.runtime.clock.now(),
      isTimed: false,
      unscheduled: 0,
      last: 0,
      next: undefined,
      askAgainAt: 0,
      isRunningOwed: false,
      unanswered: undefined,
    });
    if (this.#isStarted) this.#lookIn(0);
  }

  /** Stops watching a job. Its record stays in the store for as long as it lasts. */
  remove(job: string): void {
    this.#jobs.delete(job);
  }

  get names(): string[] {
    return [...this.#jobs.keys()];
  }

  /** Begins to look, when the application is up. */
  start(): void {
    this.#isStarted = true;
    this.#lookIn(FIRST_LOOK_MS * this.runtime.random.fraction());
  }

  /** Records the shutdown of this instance. Without that, it counts as a crash. */
  #leave(): void {
    this.#timer?.cancel();
    const resources = [...this.#jobs.values()].map(({ resource }) => resource);
    if (this.#isStarted && resources.length > 0) this.store.leave?.(resources).catch(() => {});
  }

  /** This process has asked for a tick and was answered, so the tick is accounted. */
  accounted(job: string, tick: number, next: number | undefined): void {
    const watched = this.#jobs.get(job);
    if (watched) Object.assign(watched, { last: tick, next });
  }

  /** The store had no record of the job, so the next poll registers the job again. */
  unknown(job: string): void {
    const watched = this.#jobs.get(job);
    if (!watched?.isRegistered) return;
    watched.isRegistered = false;
    this.#lookIn(FIRST_LOOK_MS * this.runtime.random.fraction());
  }

  /** Returns true if this process has registered the date of the job. */
  hasDate(job: string, at: number): boolean {
    return this.#jobs.get(job)?.text === dateText(at);
  }

  /** Another instance fires the job by another schedule, and no deployment is under way. */
  differs(job: string, schedule: TickSchedule, { schedule: text, instanceId }: ScheduleOfOther): void {
    this.warn(
      `The job ${quote(job)} is scheduled as ${quoteSchedule(schedule.text)} here, and as ${quoteSchedule(text)} on ` +
        `${quote(instanceId)}. Each instance runs the ticks of its own schedule, so the job runs too often. Give it the same expression ` +
        'on all instances, and a timeZone. See docs/operations/logs.md#instances-disagree-about-a-job.',
    );
  }

  /** Accounts the ticks before this one, which may be claimed after that. @returns whether the store was asked */
  async close(job: string, after: number, tick: number, schedule: TickSchedule): Promise<boolean> {
    const watched = this.#jobs.get(job);
    if (!watched) return false;
    if (watched.unanswered) await this.#notes.send(watched, watched.unanswered);
    const reply = await this.#notes.note(watched, schedule, after, tick - 1);
    // After the tick itself: a run that is under way would make it skipped.
    if (reply?.owed && watched.job.onMissed === 'runOnce') watched.askAgainAt = 0;
    return reply !== undefined;
  }

  #lookIn(delayMs: number): void {
    const { clock, closing } = this.runtime;
    if (closing.aborted || this.#isLooking || this.#jobs.size === 0 || this.store.refusal !== undefined) return;
    if (delayMs === Infinity) return;
    this.#timer?.cancel();
    this.#timer = clock.setTimer(() => void this.#look(), delayMs, { background: true });
  }

  async #look(): Promise<void> {
    this.#isLooking = true;
    try {
      await this.#lookAtAll();
      this.#failures = 0;
    } catch (error) {
      if (++this.#failures === 1) this.#warnOf('jobs', error);
    } finally {
      this.#isLooking = false;
    }
    this.#lookIn(this.#pauseMs());
  }

  #warnOf(what: string, error: unknown): void {
    if (this.runtime.closing.aborted) return;
    const why = error instanceof Error ? error.message : String(error);
    this.warn(
      `Cannot check ${what} for missed ticks: ${why}. The check is retried until Redis answers. ` +
        'See docs/operations/logs.md#ticks-are-missed.',
    );
  }

  #pauseMs(): number {
    let pauseMs = this.#failures > 0 ? retryMs(this.#failures - 1) : Infinity;
    const wrongMs = this.#failures > 0 ? Infinity : this.#wrongAgainAt - this.runtime.clock.now();
    for (const { job, isRegistered, unscheduled, lastFailedAt } of this.#jobs.values()) {
      const isSoon = this.#failures === 0 && !isRegistered && unscheduled < MAX_UNSCHEDULED;
      const forJobMs = isSoon ? FIRST_LOOK_MS : job.graceMs;
      pauseMs = Math.min(pauseMs, lastFailedAt === undefined ? forJobMs : wrongMs);
    }
    return pauseMs;
  }

  /** @throws LockUnavailableError if the store answers for no job */
  async #lookAtAll(): Promise<void> {
    const { clock, random } = this.runtime;
    const jobs = [...this.#jobs.values()];
    const look = new JobPoll((watched, state) => this.#answered(watched, state), random);
    await look.ask(this.#questions(jobs.filter(({ lastFailedAt }) => lastFailedAt === undefined)));
    const isTurnOfWrong = clock.now() >= this.#wrongAgainAt;
    if (isTurnOfWrong)
      await look.askAgain(this.#questions(jobs.filter(({ lastFailedAt }) => lastFailedAt !== undefined)));
    const isOneMore = this.#recordFailures(look.failed);
    if (!isOneMore && !isTurnOfWrong) return;
    this.#wrongTries = isOneMore ? 0 : this.#wrongTries + 1;
    this.#wrongAgainAt = clock.now() + retryMs(this.#wrongTries);
  }

  #questions(jobs: readonly Watched[]): Question[] {
    const now = this.runtime.clock.now();
    const wallNow = this.runtime.clock.wallNow();
    const unknown = jobs.filter((watched) => {
      if (watched.isRegistered && !isChanged(watched)) return false;
      // Registered without its schedule, the record would start over with it.
      const isReady = watched.job.graceMs === Infinity || watched.job.schedule() !== undefined;
      if (!isReady) watched.unscheduled++;
      return isReady;
    });
    const due = jobs.filter((watched) => !unknown.includes(watched) && isDue(watched, now, wallNow));
    return [
      { jobs: unknown, askFor: (some) => this.#register(some) },
      { jobs: due, askFor: (some) => this.#lookAt(some) },
    ];
  }

  async #answered(watched: Watched, state: JobState): Promise<void> {
    if (this.runtime.closing.aborted) return;
    timeFirst(watched, state, this.runtime);
    await this.#account(watched, state);
    watched.lastFailedAt = undefined;
  }

  /** They are asked for by themselves from now on. @returns whether one of them was right until now */
  #recordFailures(failed: ReadonlyMap<Watched, unknown>): boolean {
    const added = [...failed].filter(([{ lastFailedAt }]) => lastFailedAt === undefined);
    for (const watched of failed.keys()) watched.lastFailedAt = this.runtime.clock.now();
    if (added.length === 0) return false;
    const names = added.map(([{ job }]) => job.job);
    const what = names.length === 1 ? `the job ${quote(names[0]!)}` : `${names.length} jobs (${quoteSome(names)})`;
    this.#warnOf(what, added[0]![1]);
    return true;
  }

  async #register(some: readonly Watched[]): Promise<readonly JobState[]> {
    const now = this.runtime.clock.wallNow();
    const schedules = some.map(({ job }) => job.schedule());
    void prepareTicks(new Set(schedules), now);
    const dates = some.map(({ job }) => job.date?.at());
    const registrations = some.map(({ resource, job, text }, index) => {
      const [schedule, at] = [schedules[index], dates[index]];
      const isFirst = text === undefined && job.date?.isOfClass;
      const date = at === undefined ? undefined : { at, staysMs: isFirst ? START_MS : 0 };
      return { resource, schedule: schedule?.text, next: schedule?.after(now), date };
    });
    const states = await this.#send('register', some, () => this.store.register(registrations));
    some.forEach((watched, index) => {
      watched.isRegistered = true;
      const at = dates[index];
      watched.text = at === undefined ? schedules[index]?.text : dateText(at);
    });
    return states;
  }

  #lookAt(some: readonly Watched[]): Promise<readonly JobState[]> {
    const resources = some.map(({ resource }) => resource);
    return this.#send('read the state of', some, () => this.store.look(resources, 0));
  }

  async #account(watched: Watched, state: JobState): Promise<void> {
    const { job } = watched;
    const { clock } = this.runtime;
    const schedule = job.schedule();
    if (!schedule || schedule.text !== watched.text) return;
    // An instance whose clock is behind fires its ticks later.
    const until = Math.min(state.now, clock.wallNow()) - job.graceMs;
    const isOther = state.schedule !== schedule.text;
    if (state.last === undefined || (isOther && (state.next ?? 0) <= until)) {
      // Redis has lost its data, or no instance is left that has the other schedule. At the next look it is registered again.
      watched.isRegistered = false;
      return;
    }
    const { unanswered } = watched;
    if (isOther) {
      // An instance of another release has registered later. Registered again, this schedule would take its place.
      if (unanswered) await this.#notes.send(watched, unanswered);
      const askAgainAt = job.onMissed === 'runOnce' ? this.#askAgainAt() : Infinity;
      Object.assign(watched, { last: state.last, next: schedule.after(until), askAgainAt });
      return;
    }
    let reply: MissedReply | undefined;
    if (unanswered) reply = await this.#notes.send(watched, unanswered);
    else if (until > state.last) reply = await this.#notes.note(watched, schedule, state.last, until);
    const through = unanswered ? unanswered.ticks.at(-1)! : until;
    const last = reply?.status === 'noted' ? through : state.last;
    if (reply?.status !== 'stale') Object.assign(watched, { last, next: schedule.after(last) });
    watched.askAgainAt = job.onMissed === 'runOnce' ? this.#askAgainAt() : Infinity;
    const owed = reply ? reply.owed : state.owed;
    if (owed && job.onMissed === 'runOnce') this.#runOwed(watched, owed, state.running !== undefined);
  }

  #askAgainAt(): number {
    const { clock, random } = this.runtime;
    return clock.now() + ASK_AGAIN_MS * (0.5 + random.fraction());
  }

  /** Every instance that knows of the run tries, so that it runs although one of them dies. */
  #runOwed(watched: Watched, owed: NonNullable<JobState['owed']>, isBusy: boolean): void {
    // An earlier run has to end first.
    watched.askAgainAt = 0;
    if (watched.isRunningOwed || isBusy) return;
    watched.isRunningOwed = true;
    const over = (): void => {
      watched.isRunningOwed = false;
    };
    // Its errors belong to the job, and the run has reported them.
    watched.job.runOwed(owed).then(over, over);
  }

  #send<T>(what: string, some: readonly Watched[], send: () => Promise<T>): Promise<T> {
    const [operation, resource] = some.length === 1 ? [what, some[0]!.resource] : [`${what} jobs`, ''];
    return ask(this.runtime, send, operation, resource, () => !this.runtime.closing.aborted);
  }
}

function dateText(at: number): string {
  return `at ${at}`;
}

function quoteSchedule(text: string): string {
  const { cron, timeZone } = scheduleOf(text);
  return `${quote(cron)}${timeZone === undefined ? '' : ` in ${timeZone}`}`;
}

function retryMs(failures: number): number {
  return Math.min(RETRY_MS.first * 2 ** failures, RETRY_MS.longest);
}

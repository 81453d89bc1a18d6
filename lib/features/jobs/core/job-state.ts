import type { MissedSpan, ScheduleOfOther } from './job-claims.js';

/** One entry in the history of a job. All times are in epoch milliseconds, by the clock of Redis. */
export interface RunRecord {
  /** The tick: for a cron job, the time it was scheduled for, as an ISO string. */
  readonly tick: string;
  /** When the run was granted; for a missed tick, when it was noticed. */
  readonly startedAt: number;
  /** When the run ended. Not set while it runs, for a crashed run, or for a missed tick. */
  readonly endedAt?: number;
  /**
   * The outcome. `lost`: the lease was lost before the run ended. `crashed`: the process never reported an end, and the
   * lease has expired. `missed`: there was no run, because no instance claimed the tick. Not set while it runs.
   */
  readonly outcome?: 'ok' | 'error' | 'lost' | 'crashed' | 'missed';
  /** The instance of the run; for a missed tick, the instance that noticed it. */
  readonly instanceId: string;
  /** `true` if another instance was granted the run before, may have started it, and did not finish it. */
  readonly rerun: boolean;
  /** The attempt at the tick: 1 for the first run, 2 for the first rerun. Not set for a missed tick. */
  readonly attempt?: number;
  /** `true` if the run was requested with `runNow`. */
  readonly manual: boolean;
  /** `true` if this was the one run for all missed ticks. */
  readonly catchUp: boolean;
  /** The fencing token of the run's lease. Not set for a missed tick. */
  readonly fencingToken?: number;
  /** The name of the error that the work threw, cut at 100 bytes. */
  readonly errorName?: string;
  /** The `code` of that error, cut at 100 bytes. */
  readonly errorCode?: string;
  /** The message of that error, cut at 200 bytes. Only stored with the option `historyMessages`. */
  readonly errorMessage?: string;
}

/** The text of the catch-up for missed ticks, as `tick` of its claim. @param last when the last of them was due */
export function catchUpTick(last: number): string {
  return `catch-up:${new Date(last).toISOString()}`;
}

/** When the last of the missed ticks was due whose catch-up has this text; `undefined` for other ticks. */
export function catchUpOf(tick: string): number | undefined {
  const [, time] = /^catch-up:(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z)$/.exec(tick) ?? [];
  return time === undefined ? undefined : Date.parse(time);
}

/** A catch-up that no instance has begun. */
export interface OwedRun extends MissedSpan {
  /** The tick to claim: `catch-up:` and the ISO time at which the last missed tick was due. */
  readonly tick: string;
  /** The time after which the run is no longer granted, in epoch milliseconds. */
  readonly until: number;
}

/** A pause of a job for the whole fleet. */
export interface JobPause {
  /** When the pause began, in epoch milliseconds, by the clock of Redis. */
  readonly at: number;
  /** The person or program that paused the job, as the caller stated it. */
  readonly by?: string;
  /** The reason that the caller gave. */
  readonly reason?: string;
  /** When the pause ends by itself, in epoch milliseconds. Not set if it lasts until the job is resumed. */
  readonly until?: number;
}

/** A pause that ends by itself, with its start and end in epoch milliseconds. */
export interface TimedPause {
  readonly from: number;
  readonly until: number;
}

/** The stored state of a job at one moment. Times are in epoch milliseconds. */
export interface JobState {
  /** The lock of the job. */
  readonly resource: string;
  /** `true` if there is a record, a pause or a history. */
  readonly isKnown: boolean;
  /** The current time of the store. */
  readonly now: number;
  /** See {@link ClaimMetadata.schedule}. */
  readonly schedule?: string;
  /**
   * Another schedule that an instance has used while this one was in force, and when it did so for the first and for
   * the last time.
   */
  readonly other?: ScheduleOfOther & { readonly since: number; readonly seenAt: number };
  /** The time of the next tick, from the last instance that claimed or registered. */
  readonly next?: number;
  /**
   * The time at which an instance last reported the next tick: by a claim, or by the registration of its schedule. For
   * a job whose ticks have no order: the time of the last claim, or of the first registration.
   */
  readonly statedAt?: number;
  /**
   * The last tick that is accounted for: claimed, paused, or reported as missed. Neither it nor an earlier tick is ever
   * granted again. Not set if none is known, so none was missed.
   */
  readonly last?: number;
  /** The number of missed ticks since the record began. */
  readonly missed: number;
  /** The end of the last successful run. */
  readonly lastSuccessAt?: number;
  readonly owed?: OwedRun;
  readonly pause?: JobPause;
  /**
   * Timed pauses, also after their end, the oldest first. A new one drops pauses that ended before the last accounted
   * tick, and keeps at most 16.
   */
  readonly timedPauses?: readonly TimedPause[];
  /** The run that holds the job's lock. */
  readonly running?: RunRecord;
  /** The runs, newest first: at most as many as were requested. */
  readonly runs: readonly RunRecord[];
  /** The instances, last seen first: at most as many as were requested. */
  readonly instances: readonly JobInstance[];
  /** The number of instances; 0 if none were requested. */
  readonly instanceCount: number;
}

/**
 * Reads the history. A run without an end holds the lock of the job, or it crashed.
 *
 * @param stored as a store keeps it, the newest first: it does not record that a process died
 * @param token the fencing token of the lock's holder, if there is one
 */
export function readHistory(
  stored: readonly RunRecord[],
  token: number | undefined,
  limit: number,
): { runs: RunRecord[]; running?: RunRecord } {
  const runs = stored.map((run): RunRecord => {
    const isOpen = run.outcome === undefined && run.fencingToken !== token;
    return isOpen ? { ...run, outcome: 'crashed' } : run;
  });
  const running = runs.find(({ outcome }) => outcome === undefined);
  return { runs: runs.slice(0, limit), ...(running && { running }) };
}

/** An instance that has a job. */
export interface JobInstance {
  readonly instanceId: string;
  /** When it last registered the job or claimed a tick, in epoch milliseconds, exact to a minute. */
  readonly seenAt: number;
}

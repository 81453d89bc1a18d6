import type { MissedSpan, ScheduleOfOther } from './job-claims.js';

/** One entry in the history of a job. All times are by the clock of Redis, in milliseconds since the Unix epoch. */
interface RunRecord {
  /** Which tick; of a cron job the time it was scheduled for, as an ISO string. */
  readonly tick: string;
  /** The time of the grant. For a missed tick: the time at which it was noticed. */
  readonly startedAt: number;
  /** Not set while it runs, of a crashed run and of a missed tick. */
  readonly endedAt?: number;
  /**
   * The outcome. `lost`: its lease was lost before it ended. `crashed`: its process reported no end, and the lease has
   * expired. `missed`: no run, because no instance claimed the tick. Not set while it runs.
   */
  readonly outcome?: 'ok' | 'error' | 'lost' | 'crashed' | 'missed';
  /** The instance that ran it, or noticed a missed tick. */
  readonly instanceId: string;
  /** `true` if the run was granted to another instance before, which may have begun it and did not finish it. */
  readonly rerun: boolean;
  /** Which run of the tick it was: 1 for the first one, 2 for the first rerun. Not set of a missed tick. */
  readonly attempt?: number;
  /** `true` if it was requested with `runNow`. */
  readonly manual: boolean;
  /** `true` if it was the one run for all missed ticks. */
  readonly catchUp: boolean;
  /** The fencing token of its lease. Not set of a missed tick. */
  readonly fencingToken?: number;
  /** The name of the error that the work threw, of at most 100 bytes. */
  readonly errorName?: string;
  /** The `code` of that error, of at most 100 bytes. */
  readonly errorCode?: string;
  /** Its message, of at most 200 bytes. Only with the option `historyMessages`. */
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
  /** The tick to claim: `catch-up:` and the ISO time at which the last of them was due. */
  readonly tick: string;
  /** It is not granted any more after this, in milliseconds since the Unix epoch. */
  readonly until: number;
}

/** A pause of a job for the whole fleet. */
export interface JobPause {
  /** Since when, in milliseconds since the Unix epoch, by the clock of Redis. */
  readonly at: number;
  /** The requester, in the caller's words. */
  readonly by?: string;
  /** The reason that the caller gave. */
  readonly reason?: string;
  /** When it ends by itself, in milliseconds since the Unix epoch. Not set: when the job is resumed. */
  readonly until?: number;
}

/** When a job was paused, with both ends, in milliseconds since the Unix epoch. */
export interface TimedPause {
  readonly from: number;
  readonly until: number;
}

/** The stored state of a job at one moment. Times are in milliseconds since the Unix epoch. */
export interface JobState {
  /** The lock of the job. */
  readonly resource: string;
  /** `true` if there is a record, a pause or a history. */
  readonly isKnown: boolean;
  /** The time of the store. */
  readonly now: number;
  /** See {@link ClaimMetadata.schedule}. */
  readonly schedule?: string;
  /** Another schedule by which an instance came to a tick while this one was in force: since when, and when last. */
  readonly other?: ScheduleOfOther & { readonly since: number; readonly seenAt: number };
  /** The time of the next tick, from the last instance that claimed or registered. */
  readonly next?: number;
  /**
   * The time at which an instance last reported the next tick: by a claim, or by the registration of its schedule. For
   * a job whose ticks have no order: the time of the last claim, or of the first registration.
   */
  readonly statedAt?: number;
  /**
   * The last accounted tick: claimed, paused, or reported as missed. No tick up to this is ever granted. Not set: none
   * is known, so none was missed.
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
  /** The newest runs first, at most as many as were asked for. */
  readonly runs: readonly RunRecord[];
  /** The last seen first, at most as many as were asked for. */
  readonly instances: readonly JobInstance[];
  /** The number of instances; 0 if none were asked for. */
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

/** An instance that has a job, and when it last registered or claimed a tick, in milliseconds since the Unix epoch. */
export interface JobInstance {
  readonly instanceId: string;
  /** To a minute. */
  readonly seenAt: number;
}

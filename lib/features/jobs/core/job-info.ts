import { brand } from '../../../kernel/util/objects.js';
import { quote, quoteSome } from '../../../kernel/util/quoted.js';
import { LockError } from '../../../kernel/api/errors.js';
import { nearest } from '../../../kernel/api/nearest.js';
import type { JobInstance, JobPause, RunRecord } from './job-state.js';

/** One run in the history of a job, or one tick that was missed. */
export interface JobRun extends RunRecord {
  /** The person or program that requested a manual run, from `runNow`. */
  readonly by?: string;
}

/** The state of a singleton job. All times are in epoch milliseconds, by the clock of Redis. */
export interface JobInfo {
  readonly name: string;
  /** `true` if this instance has the job, so that `runNow` can run it. */
  readonly isHere: boolean;
  /** The cron expression. Not set for intervals, timeouts and single dates. */
  readonly cron?: string;
  /** The time zone of the expression: the job's own, or else the zone of the process that registered it. */
  readonly timeZone?: string;
  /**
   * Another schedule that an instance has used for more than an hour, so the job runs on both schedules. Not set while
   * a deployment may be in progress, or once no instance has used it for two days.
   */
  readonly otherSchedule?: {
    readonly cron: string;
    readonly timeZone?: string;
    readonly instanceId: string;
    readonly seenAt: number;
  };
  /**
   * When the next tick is due or, for an interval, when the job may run next. Not set for timeouts and single dates, if
   * no instance has the job now, or if the job will still be paused then.
   */
  readonly nextDueAt?: number;
  /** The run that has not ended yet. Its `instanceId` is the instance that runs it. */
  readonly running?: JobRun;
  /** The due time of the last tick that was skipped because `running` had not ended. */
  readonly skippedAt?: number;
  /** The newest entry of the history. It may still be running, or be a missed tick. */
  readonly lastRun?: JobRun;
  /** The end of the last successful run. */
  readonly lastSuccessAt?: number;
  /** Set if the job is paused for the whole fleet. */
  readonly pause?: JobPause;
  /** The number of missed ticks since Redis first recorded the job. */
  readonly missed: number;
  /**
   * The instances that have the job and were seen recently, the last seen first: at most 1,000 from `get`, at most 10
   * from `list`.
   */
  readonly instances: readonly JobInstance[];
  /** The number of instances that have the job and were seen recently. At most about 1,000. */
  readonly instanceCount: number;
}

/** Reads the text of a schedule: its expression, and its zone. */
export function scheduleOf(text: string): Pick<JobInfo, 'timeZone'> & { readonly cron: string } {
  const end = text.lastIndexOf(' ');
  const timeZone = text.slice(end + 1);
  return { cron: text.slice(0, end), ...(timeZone !== '' && { timeZone }) };
}

/**
 * No singleton job has this name, or only another application has the code of the job.
 *
 * @remedy Fix the name. If `instances` isn't empty, run the job on one of them.
 */
export class JobNotFoundError extends LockError {
  override readonly code = 'JOB_NOT_FOUND';

  /** @internal */
  constructor(
    message: string,
    /** The requested name. */
    readonly job: string,
    /** The instances of other applications that have the job, as far as they are known; at most 1,000. */
    readonly instances: readonly string[] = [],
  ) {
    super(message, '');
  }

  /**
   * @internal
   * @param known the names of the jobs that there are
   */
  static unknown(job: string, where: string, known: readonly string[], more = ''): JobNotFoundError {
    const near = nearest(job, known);
    const hint =
      near !== undefined
        ? `Did you mean ${quote(near)}?`
        : known.length > 0
          ? `Known jobs: ${quoteSome([...known].sort())}.`
          : 'It has no jobs.';
    return new JobNotFoundError(`${where} has no job called ${quote(job)}. ${hint}${more}`, job);
  }

  /** @internal */
  static elsewhere(job: string, instances: readonly string[]): JobNotFoundError {
    const these = `These instances have it: ${quoteSome(instances)}. Run it there.`;
    const message =
      `This instance has no code for the job ${quote(job)}: the job belongs to another application, or was removed here. ` +
      (instances.length > 0 ? these : 'No other instance has it now.');
    return new JobNotFoundError(message, job, instances);
  }
}

brand({ JobNotFoundError });

import type { JobInfo, JobRun } from '../../../jobs/core/job-info.js';
import type { FleetReport } from '../roll/lock-fleet.js';

/** The kinds of findings. Each has a section in docs/operations/at-3-am.md. */
export const FINDING_KINDS = [
  'redisDown',
  'redisProblem',
  'deadlock',
  'holderDead',
  'holderSilent',
  'holderUnknown',
  'leaked',
  'longWait',
  'timeouts',
  'lockOrder',
  'leaderFlaps',
  'noInstances',
  'instanceSilent',
  'instanceDeaf',
  'instanceBlocked',
  'renewalsFail',
  'leasesLost',
  'oldVersion',
  'unreadable',
  'jobFails',
  'jobMissed',
  'jobNowhere',
  'jobPaused',
  'jobLong',
  'jobOverlaps',
  'jobDiffers',
] as const;
export type FindingKind = (typeof FINDING_KINDS)[number];

export const SEVERITIES = ['critical', 'warning', 'note'] as const;

/** One problem, with its culprit and the right action. */
export interface Finding {
  /**
   * `critical`: work is blocked, or locks are unavailable. `warning`: that will or may happen. `note`: worth knowing.
   */
  readonly severity: (typeof SEVERITIES)[number];
  /** The kind of problem. The values are stable, so programs can rely on them. */
  readonly kind: FindingKind;
  /** One or two sentences for people. */
  readonly sentence: string;
  /** The resource, or the name of a job or a leadership. */
  readonly resource?: string;
  /** The cause of the problem, as far as it is known. */
  readonly culprit?: {
    readonly instanceId?: string;
    /** The group of the work that causes it. */
    readonly work?: string;
    readonly callSite?: string;
  };
  /** When the problem began, in epoch milliseconds, by the clock of Redis. */
  readonly since?: number;
  /** The number of calls that wait because of the problem, and up to five groups of these calls. */
  readonly blocked?: { readonly calls: number; readonly works: readonly string[] };
  /** The right action. `command` is quoted for a shell. */
  readonly action: { readonly text: string; readonly command: string };
}

/** A job, and its newest runs. */
export interface SeenJob {
  readonly job: JobInfo;
  readonly runs: readonly JobRun[];
}

/** So many runs of each job are looked at. */
export const SEEN_RUNS = 14;

/**
 * The result of `locks.fleet()`: the report of each instance. It contains no secrets, and can be serialized as JSON.
 */
export interface LockFleet extends FleetReport {
  /** The problems, the worst first, as `status`, `doctor` and the console show them. */
  readonly findings: readonly Finding[];
}

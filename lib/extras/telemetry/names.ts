import type { LeaseLossReason } from '../../kernel/api/lease-errors.js';
import type { AcquireOutcome } from '../../kernel/events/events.js';
import { DURATION_BUCKETS_MS } from '../../kernel/util/durations.js';

/** The names of the metrics. Times are in seconds. */
export enum LockMetric {
  WaitTime = 'nestjs_redis_lock.wait_time',
  HoldTime = 'nestjs_redis_lock.hold_time',
  BlockedTime = 'nestjs_redis_lock.blocked_time',
  Waiting = 'nestjs_redis_lock.waiting',
  Held = 'nestjs_redis_lock.held',
  Acquire = 'nestjs_redis_lock.acquire',
  Lost = 'nestjs_redis_lock.lost',
  RenewalFailures = 'nestjs_redis_lock.renewal.failures',
  ReleaseFailures = 'nestjs_redis_lock.release.failures',
  HandOvers = 'nestjs_redis_lock.hand_overs',
  HeldLong = 'nestjs_redis_lock.held_long',
  Leaked = 'nestjs_redis_lock.leaked',
  EventLoopBlocked = 'nestjs_redis_lock.event_loop_blocked',
  OnceCalls = 'nestjs_redis_lock.once.calls',
  JobRuns = 'nestjs_redis_lock.job.runs',
  JobDuration = 'nestjs_redis_lock.job.duration',
  JobStartDelay = 'nestjs_redis_lock.job.start_delay',
  JobSkipped = 'nestjs_redis_lock.job.skipped',
  JobMissed = 'nestjs_redis_lock.job.missed',
  JobLastSuccess = 'nestjs_redis_lock.job.last_success',
  LeaderState = 'nestjs_redis_lock.leader.state',
}

/** The names of the attributes of the metrics. */
export enum LockAttribute {
  /** The name of the lock service: the module option `service`, or `default`. */
  Service = 'lock.service',
  /** `exclusive`, `reentrant`, `read`, `write` or `semaphore`. */
  Mode = 'lock.mode',
  /** The group of the lock, such as `Class.method` of a decorated method. */
  Group = 'lock.group',
  /** The group of the holder that a call waits for; `_unknown` if the holder is in another process and has no label. */
  HolderGroup = 'lock.holder.group',
  /** The name of a singleton job. */
  Job = 'lock.job',
  /** The name of a leadership. */
  Leadership = 'lock.leadership',
  /** The outcome of the call, the lease or the run. */
  Outcome = 'outcome',
  /** The reason for the outcome. */
  Reason = 'reason',
  /** The `code` of the error. */
  ErrorType = 'error.type',
}

/** The kind of a metric, as in OpenTelemetry. */
export type LockMetricKind = 'histogram' | 'counter' | 'upDownCounter' | 'gauge';

/** One entry of {@link LOCK_METRICS}. */
export interface LockMetricDefinition {
  readonly kind: LockMetricKind;
  /** The unit in UCUM notation: `s` for seconds, `{lease}` for a count. */
  readonly unit: string;
  readonly description: string;
  readonly attributes: readonly LockAttribute[];
  /** The possible values of each attribute that has a fixed set of them. */
  readonly values?: Readonly<Partial<Record<LockAttribute, readonly string[]>>>;
}

/** The upper bounds of the histogram buckets, in seconds. `contention()` uses the same bounds. */
export const LOCK_METRIC_BUCKETS: readonly number[] = DURATION_BUCKETS_MS.map((ms) => ms / 1_000);

const { Service, Mode, Group, HolderGroup, Job, Leadership, Outcome, Reason, ErrorType } = LockAttribute;
const OF_LOCK = [Service, Mode, Group];
const OF_JOB = [Service, Job];
const OUTCOMES: readonly AcquireOutcome[] = [
  'acquired',
  'busy',
  'timeout',
  'queue_full',
  'aborted',
  'unavailable',
  'shutdown',
  'refused',
];
const LOSSES: readonly LeaseLossReason[] = ['expired', 'takenOver', 'notRenewed', 'maxHold', 'shutdown'];

/** Returns the name of a metric in Prometheus, as OpenTelemetry's Prometheus exporter converts it. */
export function prometheusNameOf(metric: LockMetric): string {
  const name = metric.replaceAll('.', '_');
  return LOCK_METRICS[metric].kind === 'counter' ? `${name}_total` : name;
}

/** All metrics. The reference and both exporters are generated from this table. */
export const LOCK_METRICS: Readonly<Record<LockMetric, LockMetricDefinition>> = {
  [LockMetric.WaitTime]: {
    kind: 'histogram',
    unit: 's',
    description: 'Time that a call waited until it got the lock or gave up.',
    attributes: OF_LOCK,
  },
  [LockMetric.HoldTime]: {
    kind: 'histogram',
    unit: 's',
    description: 'Time from the grant of a lease to its release or loss.',
    attributes: OF_LOCK,
  },
  [LockMetric.BlockedTime]: {
    kind: 'counter',
    unit: 's',
    description: 'Total time that calls of one group waited for holders of another group, or of the same one.',
    attributes: [Service, Group, HolderGroup],
  },
  [LockMetric.Waiting]: {
    kind: 'upDownCounter',
    unit: '{call}',
    description: 'Calls of this process that are waiting for a lock now.',
    attributes: OF_LOCK,
  },
  [LockMetric.Held]: {
    kind: 'upDownCounter',
    unit: '{lease}',
    description: 'Leases that this process holds now.',
    attributes: OF_LOCK,
  },
  [LockMetric.Acquire]: {
    kind: 'counter',
    unit: '{call}',
    description: 'Calls to acquire a lock that have ended, by outcome.',
    attributes: [...OF_LOCK, Outcome, ErrorType],
    values: { [Outcome]: OUTCOMES },
  },
  [LockMetric.Lost]: {
    kind: 'counter',
    unit: '{lease}',
    description: 'Leases that were lost before they were released.',
    attributes: [...OF_LOCK, Reason],
    values: { [Reason]: LOSSES },
  },
  [LockMetric.RenewalFailures]: {
    kind: 'counter',
    unit: '{renewal}',
    description: 'Renewals that were not confirmed. Each is retried until the lease ends.',
    attributes: [...OF_LOCK, ErrorType],
  },
  [LockMetric.ReleaseFailures]: {
    kind: 'counter',
    unit: '{release}',
    description: 'Releases that were not confirmed in time. Each is retried until the lock has expired.',
    attributes: [...OF_LOCK, ErrorType],
  },
  [LockMetric.HandOvers]: {
    kind: 'counter',
    unit: '{lease}',
    description: 'Leases that were passed on in memory to the next call of this process.',
    attributes: OF_LOCK,
  },
  [LockMetric.HeldLong]: {
    kind: 'counter',
    unit: '{lease}',
    description: 'Leases that were held for longer than warnAfterMs.',
    attributes: OF_LOCK,
  },
  [LockMetric.Leaked]: {
    kind: 'counter',
    unit: '{lease}',
    description: 'Leases that were not released, and that nothing references any longer.',
    attributes: OF_LOCK,
  },
  [LockMetric.EventLoopBlocked]: {
    kind: 'counter',
    unit: '{stall}',
    description: 'Number of times the event loop was blocked for longer than a quarter of the shortest lease held.',
    attributes: [Service],
  },
  [LockMetric.OnceCalls]: {
    kind: 'counter',
    unit: '{call}',
    description:
      'Calls of once() that returned a result: by doing the work, from a stored result, or by waiting for another call.',
    attributes: [Service, Group, Outcome],
    values: { [Outcome]: ['run', 'hit', 'wait'] },
  },
  [LockMetric.JobRuns]: {
    kind: 'counter',
    unit: '{run}',
    description: 'Runs of a singleton job that have ended on this instance, by outcome.',
    attributes: [...OF_JOB, Outcome],
    values: { [Outcome]: ['ok', 'error', 'lost'] },
  },
  [LockMetric.JobDuration]: {
    kind: 'histogram',
    unit: 's',
    description: 'Time that a run of a singleton job took.',
    attributes: OF_JOB,
  },
  [LockMetric.JobStartDelay]: {
    kind: 'histogram',
    unit: 's',
    description: 'Time from the due time of a tick to the start of its run.',
    attributes: OF_JOB,
  },
  [LockMetric.JobSkipped]: {
    kind: 'counter',
    unit: '{tick}',
    description: 'Ticks of a singleton job that did not run on this instance, by reason.',
    attributes: [...OF_JOB, Reason],
    values: { [Reason]: ['claimed', 'overlap', 'paused', 'late', 'early', 'otherDate', 'crashed', 'failed'] },
  },
  [LockMetric.JobMissed]: {
    kind: 'counter',
    unit: '{tick}',
    description: 'Ticks of a singleton job that no instance claimed. Only the instance that noticed counts them.',
    attributes: OF_JOB,
  },
  [LockMetric.JobLastSuccess]: {
    kind: 'gauge',
    unit: 's',
    description:
      'Unix time of the last successful run of a singleton job on this instance; 0 until a run succeeds there.',
    attributes: OF_JOB,
  },
  [LockMetric.LeaderState]: {
    kind: 'gauge',
    unit: '{leader}',
    description: '1 while this instance leads; 0 while it campaigns without leading, or after it has stepped down.',
    attributes: [Service, Leadership],
  },
};

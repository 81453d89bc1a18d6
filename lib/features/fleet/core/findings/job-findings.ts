import { longDuration } from '../../../../kernel/util/durations.js';
import { count } from '../../../../kernel/util/plurals.js';
import { commandLine, plainOrQuoted, quote, quoteSome } from '../../../../kernel/util/quoted.js';
import type { JobInfo, JobRun } from '../../../jobs/core/job-info.js';
import type { FleetReport } from '../roll/lock-fleet.js';
import type { Finding, SeenJob } from './finding.js';

const DAY_MS = 24 * 60 * 60_000;
/** A run is long if it lasts longer than the others did, by this factor and for at least this long. */
const LONGER = 3;
const MIN_LONG_MS = 60_000;
const FAILED: readonly unknown[] = ['error', 'lost', 'crashed'];

/** One finding for each thing that is wrong with a job. */
export function jobFindings(jobs: readonly SeenJob[], fleet: FleetReport | undefined): Finding[] {
  const now = fleet?.askedAt ?? Date.now();
  return jobs.flatMap((seen) => {
    const { job, runs } = seen;
    return [
      nowhere(job, fleet, now),
      failing(job, runs, now),
      missed(job, runs, now),
      paused(job, now),
      overlapping(job, now) ?? long(job, runs, now),
      differing(job, now),
    ].filter((finding) => finding !== undefined);
  });
}

/** The facts about each job that is in trouble: its last run, and when it is due. */
function factsOf({ lastRun, nextDueAt }: JobInfo, now: number): string {
  const last = lastRun ? `Its last run started ${longDuration(now - lastRun.startedAt)} ago.` : 'It has never run.';
  return nextDueAt === undefined ? last : `${last} The next run is due in ${longDuration(nextDueAt - now)}.`;
}

/** An instance of an application that was undeployed, or a class that left its module. */
function nowhere(job: JobInfo, fleet: FleetReport | undefined, now: number): Finding | undefined {
  if (!fleet || fleet.instances.length + fleet.silent.length === 0) return undefined;
  const { name, instances } = job;
  const has = fleet.instances.some(({ jobs, more }) => jobs.includes(name) || more.jobs > 0);
  const others = instances.filter(({ instanceId }) => {
    const isThere = fleet.silent.includes(instanceId) || fleet.subscribed?.includes(instanceId);
    return isThere && !fleet.instances.some((each) => each.instanceId === instanceId);
  });
  const [last] = instances;
  // Redis does not list all instances of a cluster.
  const mayBeThere = fleet.subscribed === null && last !== undefined && now - last.seenAt < DAY_MS;
  if (has || others.length > 0 || mayBeThere || job.running) return undefined;
  const seen =
    last === undefined
      ? ''
      : `: ${plainOrQuoted(last.instanceId)} was last seen with it ${longDuration(now - last.seenAt)} ago`;
  const text = 'Deploy the application that has the job. If you removed the job, do nothing: its record expires.';
  return {
    severity: 'warning',
    kind: 'jobNowhere',
    sentence: `No instance has the job ${quote(name)} now${seen}. ${factsOf(job, now)}`,
    resource: name,
    ...(last && { culprit: { instanceId: last.instanceId }, since: last.seenAt }),
    action: { text, command: commandLine('job', name) },
  };
}

function failing(job: JobInfo, runs: readonly JobRun[], now: number): Finding | undefined {
  const ended = runs.filter(({ outcome }) => outcome !== undefined && outcome !== 'missed');
  const failed = ended.findIndex(({ outcome }) => !FAILED.includes(outcome));
  const times = failed === -1 ? ended.length : failed;
  const [last] = ended;
  if (times === 0 || last === undefined) return undefined;
  const { errorName, errorCode, errorMessage, instanceId, outcome } = last;
  const error =
    outcome === 'lost'
      ? 'its lease was lost'
      : outcome === 'crashed'
        ? 'its process crashed'
        : [errorName ?? 'an error', errorCode].filter(Boolean).join(' ') +
          (errorMessage === undefined ? '' : `: ${quote(errorMessage, 200)}`);
  const which = times === ended.length ? `all of its last ${count(times, 'run')}` : `its last ${count(times, 'run')}`;
  const isOnce = times === 1 && ended.length > 1;
  const where = `on ${plainOrQuoted(instanceId)}`;
  const { name } = job;
  const hint = errorMessage === undefined && outcome === 'error' ? ' Set historyMessages to see messages here.' : '';
  return {
    severity: isOnce ? 'note' : times > 1 ? 'critical' : 'warning',
    kind: 'jobFails',
    sentence:
      `The job ${quote(name)} failed in ${times === 1 ? 'its last run' : which}. The last error ${where}: ${error}. ` +
      factsOf(job, now),
    resource: name,
    culprit: { instanceId },
    since: ended[times - 1]!.startedAt,
    action: {
      text: `Fix the error: the log of that instance has the stack.${hint}`,
      command: commandLine('job', name, '--history'),
    },
  };
}

function missed(job: JobInfo, runs: readonly JobRun[], now: number): Finding | undefined {
  const [last] = runs;
  if (last?.outcome !== 'missed') return undefined;
  const ran = runs.findIndex(({ outcome }) => outcome !== 'missed');
  const ticks = ran === -1 ? runs.length : ran;
  const which = ticks === 1 ? 'tick: no instance claimed it' : `${count(ticks, 'tick')}: no instance claimed them`;
  const { name } = job;
  const { lastRun: _, ...rest } = job;
  const facts = factsOf(ran === -1 ? rest : { ...job, lastRun: runs[ran]! }, now);
  return {
    severity: 'warning',
    kind: 'jobMissed',
    sentence: `The job ${quote(name)} missed its last ${which}. ${facts}`,
    resource: name,
    since: last.startedAt,
    action: {
      text: 'Look for instances that were down or blocked at that time. To catch up, run the job now.',
      command: commandLine('job', name, '--run'),
    },
  };
}

function paused(job: JobInfo, now: number): Finding | undefined {
  const { pause, name } = job;
  if (!pause) return undefined;
  const by = pause.by === undefined ? '' : ` by ${plainOrQuoted(pause.by)}`;
  const reason = pause.reason === undefined ? '' : `: ${quote(pause.reason)}`;
  const until = pause.until === undefined ? 'until it is resumed' : `for another ${longDuration(pause.until - now)}`;
  const pausedMs = now - pause.at;
  return {
    severity: pausedMs > DAY_MS ? 'warning' : 'note',
    kind: 'jobPaused',
    sentence: `The job ${quote(name)} was paused${by} ${longDuration(pausedMs)} ago, ${until}${reason}. ${factsOf(job, now)}`,
    resource: name,
    since: pause.at,
    action: {
      text: 'Resume the job if the reason for the pause is gone.',
      command: commandLine('job', name, '--resume'),
    },
  };
}

function overlapping(job: JobInfo, now: number): Finding | undefined {
  const { running, skippedAt } = job;
  if (!running || skippedAt === undefined) return undefined;
  const { instanceId, startedAt } = running;
  const { name } = job;
  return {
    severity: 'warning',
    kind: 'jobOverlaps',
    sentence:
      `The job ${quote(name)} has run for ${longDuration(now - startedAt)} on ${plainOrQuoted(instanceId)}, and its ` +
      `ticks are skipped: the last one was due ${longDuration(now - skippedAt)} ago.`,
    resource: name,
    culprit: { instanceId },
    since: startedAt,
    action: {
      text: 'Look for a promise that never settles, and set maxHoldMs for the job.',
      command: commandLine('who', instanceId),
    },
  };
}

function long(job: JobInfo, runs: readonly JobRun[], now: number): Finding | undefined {
  const { running } = job;
  const times = runs.flatMap(({ outcome, startedAt, endedAt }) => {
    return outcome === 'ok' && endedAt !== undefined ? endedAt - startedAt : [];
  });
  if (!running || times.length === 0) return undefined;
  const { instanceId, startedAt } = running;
  const [ranMs, usualMs] = [now - startedAt, Math.max(...times)];
  if (ranMs < MIN_LONG_MS || ranMs < LONGER * usualMs) return undefined;
  const { name } = job;
  return {
    severity: 'warning',
    kind: 'jobLong',
    sentence:
      `The job ${quote(name)} has run for ${longDuration(ranMs)} on ${plainOrQuoted(instanceId)}: ` +
      (times.length === 1
        ? `its last run took ${longDuration(usualMs)}.`
        : `its last ${count(times.length, 'run')} took ${longDuration(usualMs)} at most.`),
    resource: name,
    culprit: { instanceId },
    since: startedAt,
    action: {
      text: 'Check what the run is doing, or set maxHoldMs for the job.',
      command: commandLine('who', instanceId),
    },
  };
}

function differing(job: JobInfo, now: number): Finding | undefined {
  const { cron = '', timeZone = '', otherSchedule: other, name } = job;
  if (!other) return undefined;
  const here = quoteSome([`${cron} ${timeZone}`.trim()]);
  const there = quoteSome([`${other.cron} ${other.timeZone ?? ''}`.trim()]);
  return {
    severity: 'warning',
    kind: 'jobDiffers',
    sentence:
      `The job ${quote(name)} has two schedules, and runs by both: ${here}, and ${there} on ` +
      `${plainOrQuoted(other.instanceId)}. ${factsOf(job, now)}`,
    resource: name,
    culprit: { instanceId: other.instanceId },
    since: other.seenAt,
    action: { text: 'Give all instances the same expression and timeZone.', command: commandLine('job', name) },
  };
}

import type { JobInfo, JobRun } from '../../../features/jobs/core/job-info.js';
import { quote } from '../../../kernel/util/quoted.js';
import { defineCommand } from '../frame/command.js';
import { NO_OWN_JOBS } from '../frame/roll.js';
import { longDuration } from '../../../kernel/util/durations.js';
import { type CellValue, timeCell } from '../frame/output.js';

/** Of the texts in a line of the list. `job` shows all of them. */
const MAX_TEXT = 40;

export const jobs = defineCommand({
  name: 'jobs',
  summary: 'Lists the singleton jobs: the next run, how the last one ended, missed ticks, and pauses.',
  args: [],
  options: {},
  examples: ['jobs'],
  async run({ output, session }) {
    const { jobs: records, keyPrefix } = await session();
    const found = await records.list(NO_OWN_JOBS);
    const now = Date.now();
    output.print({
      json: { keyPrefix, jobs: found },
      shown: [
        {
          columns: ['JOB', 'STATE', 'NEXT', 'LAST RUN', 'ENDED', 'MISSED', 'INSTANCES', 'SCHEDULE'],
          rows: found.map((info) => [
            info.name,
            stateCell(info, now),
            timeCell(info.nextDueAt, now),
            timeCell(info.lastRun?.startedAt, now),
            outcomeOf(info.lastRun, MAX_TEXT),
            info.missed,
            info.instanceCount,
            scheduleCell(info),
          ]),
          ifEmpty: 'There are no jobs.',
        },
      ],
    });
    return 'done';
  },
});

export function stateOf({ pause, running }: JobInfo): string {
  return running ? 'running' : pause ? 'paused' : 'waits';
}

export function scheduleCell({ otherSchedule: other, ...schedule }: JobInfo): string {
  const here = scheduleText(schedule);
  return other ? `${here}, but ${scheduleText(other)} on ${other.instanceId}` : here;
}

function scheduleText({ cron, timeZone }: Pick<JobInfo, 'cron' | 'timeZone'>): string {
  return [cron, timeZone].filter(Boolean).join(' ');
}

function stateCell(info: JobInfo, now: number): CellValue {
  const { pause, running } = info;
  const shown: string[] = [];
  if (running) shown.push(`running for ${longDuration(now - running.startedAt)}`);
  if (pause) {
    const by = pause.by === undefined ? '' : ` by ${pause.by}`;
    const time = pause.until === undefined ? '' : ` for ${longDuration(pause.until - now)}`;
    const reason = pause.reason === undefined ? '' : `: ${quote(pause.reason, MAX_TEXT)}`;
    shown.push(`paused${by}${time}${reason}`);
  }
  const raw = stateOf(info);
  return { shown: shown.join(', ') || raw, raw };
}

/** How a run ended. The message of its error is what its reader looks for, so it comes first. */
export function outcomeOf(run: JobRun | undefined, maxLength = 200): string {
  if (!run) return '';
  const { outcome = 'runs', errorMessage, errorName, errorCode, attempt = 1 } = run;
  const message = errorMessage && quote(errorMessage, maxLength);
  return [outcome, message, errorName, errorCode, attempt > 1 && `(attempt ${attempt})`].filter(Boolean).join(' ');
}

import type { JobInfo, JobRun } from '../../core/jobs/job-info.js';
import { defineCommand } from '../frame/command.js';
import { type CellValue, longDuration, timeCell } from '../frame/output.js';

export const NO_OWN_JOBS: ReadonlySet<string> = new Set();

export const jobs = defineCommand({
  name: 'jobs',
  summary: 'Lists the singleton jobs: the next run, how the last one ended, what was missed, what is paused.',
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
            stateOf(info, now),
            timeCell(info.nextDueAt, now),
            timeCell(info.lastRun?.startedAt, now),
            outcomeOf(info.lastRun),
            info.missed,
            info.instanceCount,
            [info.cron, info.timeZone].filter(Boolean).join(' '),
          ]),
          ifEmpty: 'There are no jobs.',
        },
      ],
    });
    return 'done';
  },
});

export function stateOf({ pause, running }: JobInfo, now: number): CellValue {
  if (running) return { shown: `runs for ${longDuration(now - running.startedAt)}`, raw: 'running' };
  if (!pause) return 'waits';
  const by = pause.by === undefined ? '' : ` by ${pause.by}`;
  return {
    shown: `paused${by}${pause.until === undefined ? '' : ` for ${longDuration(pause.until - now)}`}`,
    raw: 'paused',
  };
}

export function outcomeOf(run: JobRun | undefined): string {
  if (!run) return '';
  return [run.outcome ?? 'runs', run.errorName, run.errorCode].filter(Boolean).join(' ');
}

import { jobResource } from '../../../kernel/api/resource.js';
import type { JobInfo } from '../../../features/jobs/core/job-info.js';
import { quote } from '../../../kernel/util/quoted.js';
import { defineCommand } from '../frame/command.js';
import { CliError, UsageError } from '../frame/exit-codes.js';
import { OPERATOR_OPTIONS, operatorOf } from '../frame/operator.js';
import { durationOption, flagOption, orForever } from '../frame/options.js';
import { NO_OWN_JOBS } from '../frame/roll.js';
import { longDuration } from '../../../kernel/util/durations.js';
import { type CellValue, durationCell, timeCell } from '../frame/output.js';
import { outcomeOf, scheduleCell, stateOf } from './jobs.js';
import { askForRun } from './run-job.js';

const MAX_RUNS = 100;

function pauseRows({ pause }: JobInfo, now: number): CellValue[][] {
  if (!pause) return [];
  return [
    ['paused by', pause.by],
    ['paused until', pause.until === undefined ? 'it is resumed' : timeCell(pause.until, now)],
    ['reason', pause.reason],
  ];
}

export const job = defineCommand({
  name: 'job',
  summary: 'Shows one job and its instances, runs it now, or pauses it for the whole fleet.',
  args: [{ name: 'name', isRequired: true }],
  options: {
    history: flagOption(`Lists the newest runs of the job, at most ${MAX_RUNS}, and its missed ticks.`),
    pause: orForever(
      durationOption(
        'Pauses the job on all instances, for this long or until you resume it. A run that has started continues.',
      ),
    ),
    resume: flagOption('Ends the pause. Ticks that were due during the pause do not run.'),
    run: flagOption('Runs the job now, even while it is paused, on one of the instances that have it.'),
    wait: durationOption(
      'With --run: how long to wait for the end of the run. The run continues after that. Default: 10 min.',
    ),
    ...OPERATOR_OPTIONS,
  },
  examples: [
    'job nightly-report',
    'job nightly-report --history',
    'job nightly-report --pause 2h --by ann',
    'job nightly-report --run --by ann --reason OPS-17',
  ],
  isWriting: true,
  async run({ args, options, output, terminal, signal, session }) {
    const [name] = args as [string];
    const { history, pause, resume, run } = options;
    if ([history, pause !== undefined, resume, run].filter(Boolean).length > 1) {
      throw new UsageError('Pass only one of --history, --pause, --resume and --run.');
    }
    jobResource(name);
    const opened = await session();
    const { jobs: records, keyPrefix } = opened;
    const now = Date.now();
    if (history) {
      const runs = await records.history(name, NO_OWN_JOBS, MAX_RUNS);
      output.print({
        json: { keyPrefix, job: name, runs },
        shown: [
          {
            columns: ['STARTED', 'TOOK', 'ENDED', 'INSTANCE', 'BY', 'TICK'],
            rows: runs.map((each) => [
              timeCell(each.startedAt, now),
              durationCell(each.endedAt === undefined ? undefined : each.endedAt - each.startedAt),
              outcomeOf(each),
              each.instanceId,
              each.by,
              each.tick,
            ]),
            ifEmpty: 'No run of this job is recorded.',
          },
        ],
      });
      return 'done';
    }
    const operator = operatorOf(options);
    if (run) return askForRun({ name, operator, output, terminal, signal, session: opened }, options.wait);
    if (pause !== undefined) {
      const until = pause === Infinity ? {} : { until: now + pause };
      const before = await records.pause(name, NO_OWN_JOBS, { ...operator, ...until });
      const how =
        until.until === undefined
          ? 'until you resume it'
          : `for ${longDuration(pause)}, until ${new Date(until.until).toISOString()}`;
      output.print({
        json: { keyPrefix, job: name, paused: { ...until, ...operator }, before },
        shown: [`Paused ${name} ${how}.`],
      });
      return 'done';
    }
    if (resume) {
      const before = await records.resume(name, NO_OWN_JOBS, operator);
      if (before === undefined) throw new CliError('refused', `The job ${quote(name)} is not paused.`);
      output.print({ json: { keyPrefix, job: name, resumed: true, before }, shown: [`Resumed ${name}.`] });
      return 'done';
    }
    const info = await records.get(name, NO_OWN_JOBS);
    output.print({
      json: { keyPrefix, job: info },
      shown: [
        {
          columns: ['JOB', name],
          rows: [
            ['state', stateOf(info)],
            ...pauseRows(info, now),
            ['schedule', scheduleCell(info)],
            ['next', timeCell(info.nextDueAt, now)],
            ['runs on', info.running?.instanceId],
            ['last run', timeCell(info.lastRun?.startedAt, now)],
            ['ended', outcomeOf(info.lastRun)],
            ['last success', timeCell(info.lastSuccessAt, now)],
            ['missed', info.missed],
          ],
        },
        {
          columns: ['INSTANCE', 'SEEN'],
          rows: info.instances.map(({ instanceId, seenAt }) => [instanceId, timeCell(seenAt, now)]),
          ifEmpty: 'No instance has this job now.',
        },
      ],
    });
    return 'done';
  },
});

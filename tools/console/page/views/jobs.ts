import type { JobRun } from '../../../../lib/features/jobs/core/job-info.js';
import type { ConsoleBodies } from '../../../../lib/extras/console/bodies.js';
import { to } from '../address.js';
import { ask, type Field, REASON } from '../dialog.js';
import { type Child, h, type Tree } from '../dom.js';
import { ago, count, moment, name, names, span, state, time, took } from '../format.js';
import { act, may, now, Problem } from '../live.js';
import { more, NONE, nothing, table, title, toInstance, tools, twoLines } from '../parts.js';

/** A job, with its history in the list. */
type JobRow = ConsoleBodies['job']['job'];
type Row = JobRow & { readonly history?: readonly JobRun[] };

export function jobs({ rows, total }: ConsoleBodies['jobs']): Child {
  const at = now();
  return [
    title('Jobs', total),
    tools('Filter by name', {
      '': 'All',
      running: 'Running',
      paused: 'Paused',
      failed: 'Failed',
      missed: 'Missed ticks',
    }),
    table<Row>(
      'Jobs',
      rows,
      nothing('No application with singleton jobs has started.'),
      [
        [
          'Job',
          (job) => twoLines(h('a.name', { href: to('job', { name: job.name }) }, job.name), schedule(job)),
          'lead',
          'name',
        ],
        ['Next', (job) => next(job, at), '', 'next'],
        ['Last', (job) => last(job, at), '', 'last'],
        ['History', ({ history, lastRun }) => dots(history ?? (lastRun ? [lastRun] : []), at), 'number'],
        ['Missed', 'missed', 'number', 'missed'],
        hasActions() && ['Action', (job) => actions(job), 'number'],
      ],
      'name',
    ),
    more(rows.length, total),
  ];
}

export function job({ job: row, instances, runs }: ConsoleBodies['job']): Child {
  const at = now();
  return [
    h('p.up', h('a', { href: to('jobs') }, 'Jobs')),
    h('h1', name(row.name)),
    h('p.about', schedule(row)),
    hasActions() && actions(row),
    h(
      'dl.figures.words',
      [
        ['Next', next(row, at)],
        ['Last', last(row, at)],
        ['Last success', row.lastSuccessAt ? ago(row.lastSuccessAt, at) : 'never'],
        ['Missed', count(row.missed)],
        [
          'Instances',
          [names(instances.slice(0, 3).map(({ instanceId }) => instanceId)), ` (${count(row.instanceCount)})`],
        ],
        ['History', dots(runs, at)],
      ].map(([word, fact]) => h('div', h('dt', word), h('dd', fact))),
    ),
    table('Runs', runs, 'No run yet.', [
      ['Started', (run) => moment(run.startedAt, at), 'lead'],
      [
        'Ended',
        (run) => twoLines(end(run), [run.errorMessage, run.errorName, run.errorCode].filter(Boolean).join(' · ')),
      ],
      ['Took', ({ startedAt, endedAt }) => (endedAt ? took(endedAt - startedAt) : NONE), 'number'],
      ['Instance', toInstance],
      [
        'Why',
        ({ manual, by, catchUp, attempt = 1 }) => [
          manual ? ['requested', by && [' by ', name(by)]] : catchUp ? 'for missed ticks' : 'scheduled',
          attempt > 1 && `, attempt ${attempt}`,
        ],
      ],
    ]),
  ];
}

const schedule = ({ cron, timeZone, otherSchedule: other }: JobRow): Child =>
  cron && [
    h('code', cron),
    timeZone && ` ${timeZone}`,
    other && [', but ', h('code', other.cron), ` ${other.timeZone ?? ''} on `, name(other.instanceId)],
  ];

function next({ pause, running, nextDueAt: due }: JobRow, at: number): Child {
  if (running) return twoLines(state('good runs'), `for ${span(at - running.startedAt)}`);
  if (pause) {
    return twoLines(state('calm paused'), [
      pause.by && ['by ', name(pause.by), ' '],
      pause.until ? ['until ', moment(pause.until, at)] : 'until resumed',
      pause.reason && `: ${pause.reason}`,
    ]);
  }
  return due === undefined ? NONE : twoLines(time(due, due > at ? `in ${span(due - at)}` : 'due'), moment(due, at));
}

/** Each end has a shape of its own. */
const ENDS = {
  ok: 'good ok',
  error: 'error error',
  lost: 'lost lease lost',
  crashed: 'bad crashed',
  missed: 'missed missed',
  runs: 'calm runs',
};

const end = ({ outcome }: JobRun): Tree => state(ENDS[outcome ?? 'runs']);

const last = ({ lastRun: run }: JobRow, at: number): Child =>
  run ? twoLines(end(run), ago(run.startedAt, at)) : 'never';

/** The newest is on the right. */
function dots(runs: readonly JobRun[], at: number): Tree {
  const shown = runs.slice(0, 14).toReversed();
  const bad = shown.filter(({ outcome = 'ok' }) => outcome !== 'ok').length;
  return h(
    'span.dots',
    { role: 'img', 'aria-label': `The last ${shown.length} runs: ${bad || 'none'} not successful` },
    shown.map((run) => {
      const [kind, ...words] = ENDS[run.outcome ?? 'runs'].split(' ');
      return h(`span.state.${kind}`, { key: run.tick, title: `${words.join(' ')}, ${span(at - run.startedAt)} ago` });
    }),
  );
}

const JOB_ACTIONS = ['runJob', 'pauseJob', 'resumeJob'] as const;

const hasActions = (): boolean => JOB_ACTIONS.some(may);

function actions(row: JobRow): Tree {
  const { name: job, pause, running } = row;
  const button = (action: (typeof JOB_ACTIONS)[number], verb: string, warning: string, ...fields: Field[]): Child =>
    may(action) &&
    h(
      'button',
      {
        'aria-label': `${verb} ${job}`,
        onclick: () =>
          ask(
            `${verb} this job?`,
            [
              ['Job', twoLines(name(job), schedule(row))],
              ['Next', next(row, now())],
              ['Last', last(row, now())],
            ],
            warning,
            [...fields, REASON],
            verb,
            async ({ until, reason }) => {
              const forMs = until && new Date(until).getTime() - now();
              if (forMs && forMs <= 0) throw new Problem(0, 'Until must be in the future.');
              const body = { job, reason: reason || undefined, forMs: forMs || undefined };
              const done = (await act(action, body)) as Partial<ConsoleBodies['runJob']>;
              const { instanceId, state: came, message } = done;
              return instanceId ? `${instanceId}: ${message ?? came}` : `${verb} ${job}: done.`;
            },
          ),
      },
      `${verb}…`,
    );
  return h(
    'span.actions',
    !running && button('runJob', 'Run', pause ? 'It stays paused: this is one run.' : ''),
    pause
      ? button('resumeJob', 'Resume', 'Ticks that were due during the pause do not run.')
      : button('pauseJob', 'Pause', 'A run that has started continues to its end.', {
          name: 'until',
          label: 'Until',
          type: 'datetime-local',
          help: 'Local time. Empty: until it is resumed.',
        }),
  );
}

import type { ConsoleBodies } from '../../../../lib/extras/console/bodies.js';
import type { Finding } from '../../../../lib/features/fleet/core/findings/finding.js';
import { to } from '../address.js';
import { type Child, h, type Tree } from '../dom.js';
import { clock, count, name, names, plural, since, span, state } from '../format.js';
import { answeredAt, now } from '../live.js';
import { COUNTING, lockColumns, missing, table, toInstance, toLock } from '../parts.js';

type Now = ConsoleBodies['now'];

const REDIS = {
  up: 'good Redis is up',
  degraded: 'bad Redis has problems',
  down: 'bad Redis refuses locks',
  notTried: 'calm Redis: this user is read-only',
};
const SEVERITIES = { critical: 'bad', warning: 'warn', note: 'calm' };

export function overview(body: Now): Child {
  const at = now();
  const { redis, fleet, findings, locks, lockCount, lastMinute, oldestWaitSince } = body;
  const [worst] = findings;
  const { acquired, timedOut } = lastMinute ?? {};
  const lines = remember(at, [body.waiting, acquired, timedOut]);
  return [
    worst
      ? state(`${SEVERITIES[worst.severity]} ${headline(worst)}`, 'h1')
      : state('good Nothing needs attention', 'h1.said'),
    h(
      'p.about',
      h(
        'span.chip',
        { title: redis.topology },
        state(REDIS[redis.status]),
        redis.roundTripMs !== null && ` ${redis.roundTripMs.toFixed(1)} ms`,
      ),
      fleet && [
        ' ',
        h(
          'a',
          { href: to('instances') },
          fleet.asked === null
            ? plural(fleet.heard, 'instance')
            : `${count(fleet.heard)} of ${plural(fleet.asked, 'instance')}`,
        ),
        ' answered.',
      ],
      ` Checked at ${clock(answeredAt())}.`,
    ),
    findings.length > 0 &&
      h(
        'ul.findings',
        { 'aria-label': 'Findings' },
        findings.map((each, place) => finding(each, place, at)),
      ),
    fleet && [
      h(
        'dl.figures',
        figure('Held', h('a', { href: to('locks', { state: 'held' }) }, count(body.held))),
        figure(
          'Waiting',
          h('a', { href: to('locks', { state: 'waited' }) }, count(body.waiting)),
          lines[0],
          oldestWaitSince !== null && ['oldest ', since(oldestWaitSince, at)],
        ),
        figure(
          `Granted in ${span(lastMinute?.forMs ?? 60_000)}`,
          acquired === undefined ? '…' : count(acquired),
          lines[1],
          lastMinute ? lastMinute.lost > 0 && `${count(lastMinute.lost)} lost` : COUNTING,
        ),
        figure('Timed out', timedOut === undefined ? '…' : count(timedOut), lines[2]),
      ),
      table('Locks', locks, 'Nothing is held for longer than a moment.', lockColumns(at)),
      lockCount > locks.length && h('p.more', h('a', { href: to('locks') }, `All ${plural(lockCount, 'lock')}`)),
      missing(fleet),
    ],
  ];
}

/** Its first sentence: the list has all of it. */
const headline = ({ sentence }: Finding): string => /^.{30,}?\.(?= )/.exec(sentence)?.[0] ?? sentence;

const figure = (word: string, value: Child, line?: Child, more?: Child): Tree =>
  h('div', h('dt', word), h('dd', value, line), more && h('dd.second', more));

/** Opens to its details and its action. */
function finding(each: Finding, place: number, at: number): Tree {
  const { severity, kind, sentence, resource, culprit, blocked, since: from, action } = each;
  return h(
    'li',
    { key: `${kind} ${resource} ${culprit?.instanceId}` },
    h(
      'details',
      { open: place === 0 },
      h('summary', { title: sentence }, state(`${SEVERITIES[severity]} ${sentence}`)),
      h('p', action.text),
      h('p', h('code', action.command)),
      h(
        'p.second',
        [
          from && ['For ', since(from, at)],
          resource && subject(kind, resource),
          culprit?.instanceId && ['on ', toInstance(culprit)],
          culprit?.work && ['by ', name(culprit.work)],
          culprit?.callSite && ['at ', name(culprit.callSite)],
          blocked && [
            `${plural(blocked.calls, 'call')} blocked`,
            blocked.works.length > 0 && [' of ', names(blocked.works)],
          ],
        ]
          .filter(Boolean)
          .map((fact, index) => [index > 0 && ' · ', fact]),
      ),
    ),
  );
}

const subject = (kind: string, resource: string): Child =>
  kind.startsWith('job')
    ? h('a.name', { href: to('job', { name: resource }) }, resource)
    : kind === 'leaderFlaps'
      ? h('a.name', { href: to('leaders', { filter: resource }) }, resource)
      : toLock(resource);

/** What was seen in the last ten minutes, by this page alone. */
let samples: { readonly at: number; readonly values: readonly number[] }[] = [];
const SAMPLE_MS = 10_000;
const KEEP_MS = 600_000;
/** Less than this is no line yet. */
const LINE_MS = 30_000;
const LINES = ['Waiting', 'Granted', 'Timed out'];

/** A small line for each number, from the left to the right. */
function remember(at: number, values: readonly (number | undefined)[]): Child[] {
  if (at >= (samples.at(-1)?.at ?? 0) + SAMPLE_MS) samples.push({ at, values: values.map((value) => value ?? 0) });
  samples = samples.filter((sample) => at - sample.at < KEEP_MS && sample.at <= at);
  const all = [...samples, { at, values: values.map((value) => value ?? 0) }];
  if (at - all[0]!.at < LINE_MS) return LINES.map(() => h('span.spark'));
  return LINES.map((word, place) => {
    const most = Math.max(...all.map((sample) => sample.values[place]!));
    const points = all.map((sample) => {
      const x = 100 - ((at - sample.at) / KEEP_MS) * 100;
      return [x.toFixed(1), 100 - (sample.values[place]! / (most || 1)) * 92] as const;
    });
    const edge = points.map(([x, y]) => `${x}% ${y.toFixed(0)}%`);
    const line = `polygon(${points[0]![0]}% 100%, ${edge.join()}, 100% 100%)`;
    const label = `${word} in the last ${span(at - all[0]!.at)}: ${count(most)} at most`;
    return h('span.spark', { role: 'img', 'aria-label': label, title: label }, h('span', { '--line': line }));
  });
}

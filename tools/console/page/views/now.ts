import type { ConsoleBodies } from '../../../../lib/extras/console/bodies.js';
import { to } from '../address.js';
import { type Child, h, type Tree } from '../dom.js';
import { count, name, names, plural, since, span, state, took } from '../format.js';
import { now } from '../live.js';
import { bar, COUNTING, lasts, missing, table, toInstance, toLock, twoLines } from '../parts.js';

const SAID = {
  up: 'good All good: locks are available.',
  degraded: 'bad Locks are available, with problems.',
  down: 'bad Locks are unavailable.',
  notTried: 'calm This user is read-only.',
};

export function overview(body: ConsoleBodies['now']): Child {
  const at = now();
  const { redis, fleet, lastMinute, oldestWaitSince, blockers } = body;
  const { heard, asked } = fleet;
  const most = Math.max(...blockers.map(({ waitedMs }) => waitedMs));
  const found = troubles(body, at);
  return [
    state(SAID[redis.status], 'h1.said'),
    h(
      'p.about',
      `Redis (${redis.topology}) answered${redis.roundTripMs === null ? '' : ` in ${redis.roundTripMs.toFixed(1)} ms`}. `,
      h(
        'a',
        { href: to('instances') },
        asked === null ? plural(heard, 'instance') : `${count(heard)} of ${plural(asked, 'instance')}`,
      ),
      found.length > 0 ? ' answered.' : ' answered. No problems found.',
    ),
    found.length > 0 &&
      h(
        'ul.troubles',
        { 'aria-label': 'Problems' },
        found.map((each) => h('li.state.bad', h('span', each))),
      ),
    h(
      'dl.figures',
      figure('Held', h('a', { href: to('locks') }, count(body.held))),
      figure('Waiting', h('a', { href: to('locks', { state: 'waited' }) }, count(body.waiting))),
      figure('Oldest wait', oldestWaitSince === null ? 'none' : since(oldestWaitSince, at)),
      figure(
        `Granted in ${span(lastMinute?.forMs ?? 60_000)}`,
        lastMinute ? count(lastMinute.acquired) : '…',
        lastMinute ? `${count(lastMinute.notAcquired)} not acquired, ${count(lastMinute.lost)} lost` : COUNTING,
      ),
    ),
    h(
      'div.halves',
      table('Top blockers', blockers, lastMinute ? 'No call waited in the last ten minutes.' : COUNTING, [
        ['Work', ({ holder, waiters }) => twoLines(name(holder), ['before ', names(waiters)]), 'lead'],
        ['Calls', 'calls', 'number'],
        ['Waited for it', ({ waitedMs }) => [took(waitedMs), bar(waitedMs / most)], 'number'],
      ]),
      table('Longest waits', body.longestWaits, 'No call is waiting. All good.', [
        ['Resource', ({ resource, group }) => twoLines(toLock(resource), ['for ', name(group)]), 'lead'],
        ['Held by', ({ heldBy }) => toInstance({ instanceId: heldBy })],
        ['Waited', lasts(at), 'number'],
      ]),
    ),
    missing(fleet),
  ];
}

const figure = (word: string, value: Child, more?: string): Tree =>
  h('div', h('dt', word), h('dd', value), more && h('dd.second', more));

const trouble = (text: string, view: string, state = 'trouble'): Tree => h('a', { href: to(view, { state }) }, text);

/** What somebody should look at, with a way there. */
function troubles(
  { redis, fleet, deadlocks, deadHolders, deadHolderCount, deafCount, jobs }: ConsoleBodies['now'],
  at: number,
): Child[] {
  return [
    ...redis.problems.map(({ message }) => message),
    ...deadlocks.map(({ sentence }) => [
      h('strong', 'Deadlock. '),
      sentence,
      ' ',
      h('a', { href: to('blockers') }, 'Show'),
    ]),
    ...deadHolders.map(({ resource, instanceId, until }) => [
      name(instanceId),
      ' does not answer, and holds ',
      toLock(resource),
      `, which others wait for: free in ${span(until - at)} unless it renews.`,
    ]),
    deadHolderCount > deadHolders.length && trouble(`${count(deadHolderCount)} holders do not answer`, 'locks'),
    fleet.silentCount > 0 && trouble(`${plural(fleet.silentCount, 'instance')} did not answer`, 'instances'),
    fleet.unreadable > 0 && trouble(`${plural(fleet.unreadable, 'answer')} could not be read`, 'instances'),
    deafCount > 0 && trouble(`${plural(deafCount, 'instance')} cannot receive messages`, 'instances'),
    jobs !== null && jobs.missed > 0 && trouble(`${plural(jobs.missed, 'job')} missed ticks`, 'jobs', 'missed'),
  ].filter(Boolean);
}

import type { ConsoleBodies } from '../../../../lib/extras/console/bodies.js';
import { to } from '../address.js';
import { ask, REASON } from '../dialog.js';
import { type Child, h } from '../dom.js';
import { clock, count, moment, name, plural } from '../format.js';
import { act, may, now } from '../live.js';
import {
  instance,
  lasts,
  lease,
  life,
  missing,
  more,
  NONE,
  table,
  toInstance,
  toLock,
  twoLines,
  work,
} from '../parts.js';

export function lock(body: ConsoleBodies['lock']): Child {
  const { resource, mode, sentences, holders, holderCount, calls, callCount, permits } = body;
  const at = now();
  return [
    h('p.up', h('a', { href: to('locks') }, 'Locks')),
    h('h1', name(resource)),
    h('p.about', mode, permits && `, ${count(permits.available)} of ${plural(permits.total, 'permit')} free`),
    h(
      'div.sentences',
      holders.map(
        ({ key, instanceId, conclusion }) => conclusion && h('p', { key }, name(instanceId), `: ${conclusion}`),
      ),
      sentences.map((each) => h('p', each)),
    ),
    table('Holders', holders, 'No call holds it.', [
      ['Instance', (row) => twoLines(toInstance(row), life(row.life)), 'lead'],
      ['Work', work],
      ['Token', ({ fencingToken }) => name(`${fencingToken}`), 'number'],
      ['Held for', lasts(at), 'number'],
      ['Lease left', ({ key, until, leaseMs }) => lease(key, until, at, leaseMs), 'number'],
      may('release') && [
        'Action',
        // A holder that may be alive is not ended by mistake.
        (holder) =>
          holder.life === 'unknown' ? NONE : h('button', { onclick: () => release(resource, holder) }, 'Release…'),
        'number',
      ],
    ]),
    more(holders.length, holderCount),
    table('Queue', calls, 'No call waits for it.', [
      ['Work', work, 'lead'],
      ['Instance', toInstance],
      ['Also holds', ({ holds = [] }) => (holds.length > 0 ? holds.map((each) => [toLock(each), ' ']) : NONE)],
      ['Waited', lasts(at), 'number'],
    ]),
    more(calls.length, callCount),
    missing(body.fleet),
  ];
}

/** The dialog keeps the lease that was seen: no later one is released. */
function release(resource: string, seen: ConsoleBodies['lock']['holders'][number]): void {
  const { fencingToken, instanceId } = seen;
  ask(
    'Release this lease?',
    [
      ['Resource', name(resource)],
      ['Held by', twoLines(instance(instanceId), life(seen.life))],
      ['Work', work(seen)],
      ['Since', moment(seen.since, now())],
      ['Token', name(`${fencingToken}`)],
    ],
    'This does not stop the holder: it may keep working until its next renewal is refused, or longer.',
    [{ ...REASON, required: true }],
    'Release this lease',
    async ({ reason }) => {
      const done = await act('release', { resource, fencingToken, reason });
      const { by, holder, heardAt } = done as ConsoleBodies['release'];
      return `Released for ${by}. ${holder} finds out at ${clock(heardAt)}.`;
    },
  );
}

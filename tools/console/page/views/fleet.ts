// Who leads, and which instances there are.
import type { ConsoleBodies, InstanceRow } from '../../../../lib/extras/console/bodies.js';
import type { LEADER_PREFIX } from '../../../../lib/kernel/api/resource.js';
import { to } from '../address.js';
import { type Child, h } from '../dom.js';
import { moment, names, span, state, took } from '../format.js';
import { now, session } from '../live.js';
import {
  lasts,
  lease,
  life,
  missing,
  more,
  NONE,
  nothing,
  table,
  title,
  toInstance,
  tools,
  twoLines,
} from '../parts.js';

/** Alone: its module would bring all that is known of names along. */
const PREFIX: typeof LEADER_PREFIX = 'leader:';

export function leaders({ rows, total, fleet }: ConsoleBodies['leaders']): Child {
  const at = now();
  return [
    title('Leaders', total),
    tools('Filter by name'),
    table('Leaders', rows, nothing('No candidates.'), [
      ['Leadership', (row) => h('a.name', { href: to('lock', { resource: PREFIX + row.name }) }, row.name), 'lead'],
      [
        'Leader',
        ({ instanceId, life: of }) =>
          instanceId ? twoLines(toInstance({ instanceId }), life(of)) : state('bad no leader'),
      ],
      ['Leads for', lasts(at), 'number'],
      ['Lease left', (row) => lease(`${row.name} ${row.fencingToken}`, row.until, at, session!.leaseMs)],
      ['Candidates', 'candidates', 'number'],
      ['Transitions', 'transitions', 'number'],
    ]),
    more(rows.length, total),
    rows[0] && h('p.second', 'Transitions since ', moment(rows[0].lookedAtSince, at), '.'),
    missing(fleet),
  ];
}

const STATES = {
  up: 'good up',
  renewalsFail: 'bad renewals fail',
  shuttingDown: 'calm shutting down',
  silent: 'bad silent',
};

/** So long a turn of the event loop is worth a look, or a standstill. */
const SLOW_MS = 250;

export function instances({ rows, total, fleet }: ConsoleBodies['instances']): Child {
  const at = now();
  return [
    title('Instances', total),
    tools('Filter by name or version', { '': 'All', trouble: 'In trouble' }),
    table(
      'Instances',
      rows,
      nothing('No instance is connected.'),
      [
        [
          'Instance',
          ({ instanceId, leads = [] }) =>
            twoLines(
              h('a.name', { href: to('locks', { filter: instanceId }) }, instanceId),
              leads.length > 0 && ['leads ', names(leads)],
            ),
          'lead',
          'instance',
        ],
        [
          'State',
          ({ state: of, hearing }) =>
            twoLines(state(STATES[of]), hearing === false && state('bad receives no messages')),
        ],
        ['Version', ({ version }) => version ?? NONE, '', 'version'],
        ['Up for', (row) => lasts(at)({ since: row.startedAt }), 'number', 'started'],
        ['Event loop', loop, 'number', 'loop'],
        ['Held', 'held', 'number', 'held'],
        ['Waiting', 'waiting', 'number', 'waiting'],
        ['Granted a minute', 'acquired', 'number'],
        ['Jobs', 'jobs', 'number'],
      ],
      'instance',
    ),
    more(rows.length, total),
    missing(fleet),
  ];
}

function loop({ loopDelayMs: ms, blockedMs = 0 }: InstanceRow): Child {
  if (ms === undefined) return NONE;
  return twoLines(
    ms > SLOW_MS ? state(`bad ${took(ms)}`) : took(ms),
    blockedMs > SLOW_MS && `blocked for ${span(blockedMs)}`,
  );
}

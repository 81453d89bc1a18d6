// The leaders, and the instances.
import type { ConsoleBodies } from '../../../../lib/extras/console/bodies.js';
import type { InstanceRow } from '../../../../lib/extras/views/instances.js';
import { INSTANCE_STATES } from '../../../../lib/extras/views/words.js';
import type { LEADER_PREFIX } from '../../../../lib/kernel/api/resource.js';
import { to } from '../address.js';
import { type Child, h } from '../dom.js';
import { names, span, state, took } from '../format.js';
import { now, session } from '../live.js';
import {
  instance,
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

/** Repeated, because its module imports all rules for names. */
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
        ({ leader: instanceId, life: of }) =>
          instanceId ? twoLines(toInstance({ instanceId }), life(of)) : state('bad no leader'),
      ],
      ['Leads for', lasts(at), 'number'],
      ['Lease left', (row) => lease(`${row.name} ${row.fencingToken}`, row.until, at, session!.leaseMs), 'number'],
      ['Candidates', 'candidates', 'number'],
      ['Elections in 10 min', 'elections', 'number'],
    ]),
    more(rows.length, total),
    missing(fleet),
  ];
}

/** A turn of the event loop that is worth a look, or a block. */
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
              h('a.name', { href: to('locks', { filter: instanceId }) }, instance(instanceId)),
              leads.length > 0 && ['leads ', names(leads)],
            ),
          'lead',
          'instance',
        ],
        [
          'State',
          ({ state: of, hearing }) => state(of === 'up' && hearing === false ? 'bad no messages' : INSTANCE_STATES[of]),
        ],
        ['Version', ({ version }) => version ?? NONE, '', 'version'],
        ['Up for', (row) => lasts(at)({ since: row.startedAt }), 'number', 'started'],
        ['Event loop', loop, 'number', 'loop'],
        ['Held', 'held', 'number', 'held'],
        ['Waiting', 'waiting', 'number', 'waiting'],
        ['Granted/min', 'acquired', 'number'],
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

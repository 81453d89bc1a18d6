import type { ConsoleBodies } from '../../../../lib/extras/console/bodies.js';
import { but, here } from '../address.js';
import { type Child, h } from '../dom.js';
import { since } from '../format.js';
import { now, session } from '../live.js';
import {
  lasts,
  lease,
  life,
  missing,
  more,
  nothing,
  select,
  table,
  title,
  toInstance,
  toLock,
  tools,
  twoLines,
  work,
} from '../parts.js';

export function locks({ rows, total, groups, fleet }: ConsoleBodies['locks']): Child {
  const at = now();
  return [
    title('Locks', total),
    tools(
      'Filter by name, work or instance',
      { '': 'All', held: 'Held', waited: 'Waited for', trouble: 'In trouble' },
      groups.length > 1 &&
        select(
          'Work',
          { '': 'All work', ...Object.fromEntries(groups.map((each) => [each, each])) },
          here().query.group ?? '',
          (group) => {
            location.hash = but({ group, limit: undefined });
          },
        ),
    ),
    table(
      'Locks',
      rows,
      nothing('Nothing is held for longer than a moment.'),
      [
        [
          'Resource',
          ({ resource, mode }) => [toLock(resource), ' ', mode !== 'exclusive' && h('span.tag', mode)],
          'lead',
          'resource',
        ],
        ['Work', work, '', 'group'],
        ['Instance', (row) => twoLines(toInstance(row), life(row.life)), '', 'instance'],
        ['Held for', lasts(at), 'number', 'since'],
        ['Lease left', ({ key, until }) => lease(key, until, at, session!.leaseMs), '', 'until'],
        [
          'Waiting',
          ({ waiters, oldestWaitSince }) =>
            twoLines(
              h(waiters ? 'span' : 'span.none', waiters),
              oldestWaitSince && ['oldest ', since(oldestWaitSince, at)],
            ),
          'number',
          'waiters',
        ],
      ],
      'resource',
    ),
    more(rows.length, total),
    missing(fleet),
  ];
}

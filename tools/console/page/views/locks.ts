import type { ConsoleBodies } from '../../../../lib/extras/console/bodies.js';
import { but, here } from '../address.js';
import type { Child } from '../dom.js';
import { now } from '../live.js';
import { lockColumns, missing, more, nothing, select, table, title, tools } from '../parts.js';

export function locks({ rows, total, groups, fleet }: ConsoleBodies['locks']): Child {
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
    // Without a choice, the worst is the first.
    table('Locks', rows, nothing('Nothing is held for longer than a moment.'), lockColumns(now())),
    more(rows.length, total),
    missing(fleet),
  ];
}

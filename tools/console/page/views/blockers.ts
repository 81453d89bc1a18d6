import type { ConsoleBodies } from '../../../../lib/extras/console/bodies.js';
import { to } from '../address.js';
import { type Child, h } from '../dom.js';
import { plural, took } from '../format.js';
import { bar, type Column, COUNTING, missing, table, toLock } from '../parts.js';

type Cell = ConsoleBodies['blockers']['cells'][number];

export function blockers({ cells, cellCount, now, isCounting, deadlocks, fleet }: ConsoleBodies['blockers']): Child {
  return [
    h('h1', 'Blockers'),
    deadlocks.length > 0 &&
      h(
        'ul.troubles',
        deadlocks.map(({ sentences, resources }) =>
          h(
            'li.state.bad',
            h(
              'span',
              h('strong', 'Deadlock: '),
              sentences.map((each) => `${each} `),
              [...resources, resources[0]!].map((each, place) => [place > 0 && ' → ', toLock(each)]),
            ),
          ),
        ),
      ),
    table('Waiting now', now, 'No call is waiting. All good.', columns('Longest wait', now)),
    table(
      'Who waited for whom in the last ten minutes',
      cells,
      isCounting ? 'No wait has ended in the last ten minutes.' : COUNTING,
      columns('Total wait', cells),
    ),
    cellCount > cells.length && h('p.more', `${plural(cellCount - cells.length, 'pair')} more, shorter.`),
    missing(fleet),
  ];
}

const work = (group: string): Child => h('a.name.quiet', { href: to('locks', { group }) }, group);

function columns(word: string, cells: readonly Cell[]): Column<Cell>[] {
  const most = Math.max(...cells.map(({ waitedMs }) => waitedMs));
  return [
    ['Work that waits', ({ waiter }) => work(waiter), 'lead'],
    ['Held by', ({ holder }) => work(holder)],
    ['Calls', 'calls', 'number'],
    [word, ({ waitedMs }) => [took(waitedMs), bar(waitedMs / most)], 'number'],
  ];
}

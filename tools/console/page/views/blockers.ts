import type { ConsoleBodies } from '../../../../lib/extras/console/bodies.js';
import { to } from '../address.js';
import { type Child, h } from '../dom.js';
import { name, plural, took } from '../format.js';
import { COUNTING, missing, table, toLock } from '../parts.js';

/** Groups that fit beside each other. */
const MOST = 8;

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
    cells.length > 0
      ? matrix(cells, cellCount)
      : h('p.empty', isCounting ? 'No wait has ended in the last ten minutes.' : COUNTING),
    table('Waiting now', now, 'No call is waiting. All good.', [
      ['Work that waits', ({ waiter }) => work(waiter), 'lead'],
      ['Held by', ({ holder }) => work(holder)],
      ['Calls', 'calls', 'number'],
      ['Longest wait', ({ waitedMs }) => took(waitedMs), 'number'],
    ]),
    missing(fleet),
  ];
}

const work = (group: string): Child => h('a.name.quiet', { href: to('locks', { group }) }, group);

/** Rows waited, columns held. Darker is longer. */
function matrix(cells: ConsoleBodies['blockers']['cells'], cellCount: number): Child {
  const most = Math.max(...cells.map(({ waitedMs }) => waitedMs));
  const groups = (of: 'waiter' | 'holder'): string[] => [...new Set(cells.map((cell) => cell[of]))].slice(0, MOST);
  const holders = groups('holder');
  const waiters = groups('waiter');
  const shown = cells.filter(({ waiter, holder }) => waiters.includes(waiter) && holders.includes(holder));
  return h(
    'div.sideways',
    { tabindex: 0, role: 'region', 'aria-label': 'Matrix', key: 'matrix' },
    h(
      'table.matrix',
      h('caption', 'Who waited for whom in the last ten minutes'),
      h(
        'thead',
        h(
          'tr',
          h('td.second', 'Waited ↓ for →'),
          holders.map((holder) => h('th', { scope: 'col' }, name(holder))),
        ),
      ),
      h(
        'tbody',
        waiters.map((waiter) =>
          h(
            'tr',
            { key: waiter },
            h('th.lead', { scope: 'row' }, name(waiter)),
            holders.map((holder) => {
              const cell = shown.find((each) => each.waiter === waiter && each.holder === holder);
              return cell
                ? h(
                    'td.hit',
                    { 'data-head': holder, '--part': cell.waitedMs / most },
                    `${took(cell.waitedMs)} `,
                    h('span.second', plural(cell.calls, 'call')),
                  )
                : h('td.none', '·');
            }),
          ),
        ),
      ),
    ),
    cellCount > shown.length && h('p.more', `${plural(cellCount - shown.length, 'pair')} more, shorter.`),
  );
}

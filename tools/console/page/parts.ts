// What several views are made of.
import type { Completeness } from '../../../lib/extras/console/bodies.js';
import type { LockRow } from '../../../lib/extras/views/locks.js';
import { LIVES, type LockLife } from '../../../lib/extras/views/words.js';
import { but, here, to } from './address.js';
import { type Child, h, textOf, type Tree } from './dom.js';
import { count, name, names, plural, since, span, state } from './format.js';
import { session } from './live.js';

/**
 * Its heading, what stands in a row (or which number of it), how it looks (`lead`: what the row is about), and what the
 * server calls its order.
 */
export type Column<Row> = readonly [
  head: string,
  cell: ((row: Row) => Child) | keyof Row,
  look?: 'number' | 'lead' | '',
  sort?: string,
];

/** The same row has the same key in the next answer. */
const keyOf = (row: Partial<Record<'key' | 'name' | 'tick' | 'waiter' | 'holder' | 'instanceId', string>>): string =>
  row.key ?? row.name ?? row.tick ?? `${row.waiter} ${row.holder} ${row.instanceId}`;

/** @param empty shown without a row: the meaning of that */
export function table<Row extends object>(
  caption: string,
  rows: readonly Row[],
  empty: Child,
  columns: readonly (Column<Row> | false)[],
  sort?: string,
): Tree {
  const by = here().query.sort ?? sort;
  const all = columns.filter((column) => column !== false);
  return h(
    `table.${caption.split(' ')[0]}`,
    { key: caption },
    h('caption', caption),
    rows.length > 0 &&
      h(
        'thead',
        h(
          'tr',
          all.map(([head, , look = '', order]) => {
            const isUp = by === order;
            const isBy = order && (isUp || by === `-${order}`);
            return h(
              `th.${look}`,
              {
                scope: 'col',
                'aria-sort': isBy && (isUp ? 'ascending' : 'descending'),
              },
              order
                ? h('a', { href: but({ sort: isUp ? `-${order}` : order }) }, head, isBy && (isUp ? ' ↑' : ' ↓'))
                : head,
            );
          }),
        ),
      ),
    h(
      'tbody',
      rows.map((row) =>
        h(
          'tr',
          { key: keyOf(row) },
          all.map(([head, cell, look = '']) => {
            const shown = typeof cell === 'function' ? cell(row) : number(row[cell] as number | undefined);
            // A row is one line high, and a narrow column cuts its text.
            const title = textOf(shown);
            return look === 'lead'
              ? h('th.lead', { scope: 'row', title }, shown)
              : h(`td.${look}`, { 'data-head': head, title }, shown);
          }),
        ),
      ),
      rows.length === 0 && h('tr', h('td.empty', { colspan: 9 }, empty)),
    ),
  );
}

export const title = (text: string, total: number): Tree => h('h1', text, ' ', h('span.total', count(total)));

/** No match of a filter, or the meaning of an empty list. */
export function nothing(meaning: string): Child {
  const { view, query } = here();
  return query.filter || query.state || query.group
    ? ['No matches. ', h('a', { href: to(view) }, 'Show all')]
    : meaning;
}

/** An empty cell. A narrow page leaves it out. */
export const NONE = h('span.none', '–');

/** A fact, and a detail of it. */
export const twoLines = (first: Child, second: Child): Child => [
  h('span.first', first),
  ' ',
  second && h('span.second', second),
];

export const toLock = (resource: string): Tree => h('a.name', { href: to('lock', { resource }) }, resource);

/** Its name, and a quiet suffix that makes it unique. */
export const instance = (id: string): Child => {
  const [, host, rest] = /^(.+?)(:\d+:\w+)$/.exec(id) ?? [];
  return host ? [h('strong', host), h('span.second', rest)] : h('strong', id);
};

export const toInstance = ({ instanceId: filter }: { readonly instanceId?: string }): Child =>
  filter ? h('a.name.quiet', { href: to('instances', { filter }) }, instance(filter)) : NONE;

/** A cell with the time it has lasted. */
export const lasts =
  (now: number) =>
  (row: { readonly since?: number }): Child =>
    row.since ? since(row.since, now) : NONE;

/** The group of a call, its label and its call site. */
export const work = ({ group, label, callSite }: Pick<LockRow, 'group' | 'label' | 'callSite'>): Child =>
  twoLines(
    group || label ? name((group ?? label)!) : NONE,
    names([group && label !== group && label, callSite].filter((each) => typeof each === 'string')),
  );

const number = (value: number | undefined): Child => (value ? count(value) : h('span.none', value ?? '–'));

export const life = (of: LockLife | undefined): Child => of && state(LIVES[of]);

export const bar = (part: number, look = ''): Tree =>
  h('span.track', h(`span.fill.${look}`, { '--part': part.toFixed(3) }));

export const COUNTING = 'Counting has just started.';

/** Of each lease in sight: its longest time, and its end. A page may stay open for weeks, so it forgets them at times. */
const leases = new Map<string, readonly [longest: number, until: number]>();
const MAX_LEASES = 5_000;

/** The rest of a lease. It shrinks, and is full again when the lease is renewed. */
export function lease(key: string, until: number | undefined, now: number, leaseMs: number | null = 0): Child {
  if (!until) return NONE;
  const left = Math.max(0, until - now);
  const [longest, before] = leases.get(key) ?? [1, until];
  const full = Math.max(longest, leaseMs ?? 0, left);
  if (leases.size > MAX_LEASES) leases.clear();
  leases.set(key, [full, until]);
  return h('span.lease', left ? span(left) : 'expired', bar(left / full, until > before ? 'new' : ''));
}

/** The columns of a table of locks. */
export const lockColumns = (at: number): Column<LockRow>[] => [
  [
    'Resource',
    ({ resource, mode }) => [toLock(resource), ' ', mode !== 'exclusive' && h('span.tag', mode)],
    'lead',
    'resource',
  ],
  ['Work', work, '', 'group'],
  ['Instance', (row) => twoLines(life(row.life), toInstance(row)), '', 'instance'],
  ['Held for', lasts(at), 'number', 'since'],
  ['Lease left', ({ key, until }) => lease(key, until, at, session!.leaseMs), 'number', 'until'],
  [
    'Waiting',
    ({ waiters, oldestWaitSince }) =>
      twoLines(h(waiters ? 'span' : 'span.none', waiters), oldestWaitSince && ['oldest ', since(oldestWaitSince, at)]),
    'number',
    'waiters',
  ],
];

/** The parts that the list lacks. */
export function missing({ silent, silentCount, unreadable, unlistedHeld, unlistedWaiting }: Completeness): Child {
  const notes = [
    silentCount > 0 && [
      `${plural(silentCount, 'instance')} did not answer`,
      silent[0] && [': ', names(silent.slice(0, 3))],
      silentCount > 3 && ' and others',
      '. ',
    ],
    unreadable > 0 && `${plural(unreadable, 'answer')} could not be read. `,
    unlistedHeld + unlistedWaiting > 0 && `Not listed: ${count(unlistedHeld)} held, ${count(unlistedWaiting)} waiting.`,
  ];
  return notes.some(Boolean) && h('p.partial', 'Partial. ', notes);
}

let typing = 0;

/** The field that `/` leads to, and choices of few, as links. */
export function tools(label: string, states?: Readonly<Record<string, string>>, ...others: Child[]): Tree {
  const { query } = here();
  return h(
    'div.tools',
    h(
      'label.filter',
      h('span.unseen', label),
      h('input', {
        type: 'search',
        id: 'filter',
        placeholder: label,
        value: query.filter ?? '',
        oninput: ({ target }: InputEvent) => {
          clearTimeout(typing);
          typing = window.setTimeout(
            () => location.replace(but({ filter: (target as HTMLInputElement).value, limit: undefined })),
            250,
          );
        },
      }),
      h('kbd', { 'aria-hidden': 'true' }, '/'),
    ),
    states &&
      h(
        'div.choice',
        { role: 'group', 'aria-label': 'State' },
        Object.entries(states).map(([state, text]) =>
          h(
            'a',
            {
              href: but({ state, limit: undefined }),
              'aria-current': (query.state ?? '') === state && 'true',
            },
            text,
          ),
        ),
      ),
    others,
  );
}

/** The number of further rows, and a way to them. */
export function more(listed: number, total: number): Child {
  const limit = Math.min(1_000, listed * 4);
  return (
    total > listed &&
    h(
      'p.more',
      `${count(total - listed)} more. `,
      listed < limit && here().query.limit !== '1000'
        ? h('a', { href: but({ limit: `${limit}` }) }, 'Show more')
        : 'Filter for them.',
    )
  );
}

export const select = (
  label: string,
  values: Readonly<Record<string, string>>,
  chosen: string,
  choose: (value: string) => void,
): Tree =>
  h(
    'label',
    h('span.unseen', label),
    h(
      'select',
      { onchange: ({ target }: Event) => choose((target as HTMLSelectElement).value) },
      Object.entries(values).map(([value, text]) => h('option', { value, selected: value === chosen }, text)),
    ),
  );

// The frame of the page, and the view of its address.
import { but, here, to } from './address.js';
import { type Child, h, show, type Tree } from './dom.js';
import { clock, span, state } from './format.js';
import {
  answeredAt,
  body,
  isFinal,
  isPaused,
  look,
  notice,
  pause,
  type Problem,
  problem,
  session,
  start,
  tell,
} from './live.js';
import { select } from './parts.js';
import { blockers } from './views/blockers.js';
import { instances, leaders } from './views/fleet.js';
import { job, jobs } from './views/jobs.js';
import { lock } from './views/lock.js';
import { locks } from './views/locks.js';
import { overview } from './views/now.js';

const VIEWS = { now: overview, locks, lock, blockers, jobs, job, leaders, instances } as unknown as Readonly<
  Record<string, (body: unknown) => Child>
>;

const ENTRIES: Readonly<Record<string, string>> = {
  now: 'Now',
  locks: 'Locks',
  blockers: 'Blockers',
  jobs: 'Jobs',
  leaders: 'Leaders',
  instances: 'Instances',
};

/** The view whose heading has the focus after a link. */
const place = (): string => here().view + (here().query.resource ?? here().query.name);
let placed = place();

function draw(): void {
  const { view, query } = here();
  const title = query.resource ?? query.name ?? ENTRIES[view] ?? view;
  const found = body();
  const seenAt = answeredAt();
  document.title = `${title} · ${session?.title ?? 'Locks'}`;
  show(
    page,
    h('header', brand(), navigation(view), status()),
    h(
      'main',
      { key: view, 'aria-busy': !seenAt },
      h('p.notice', { role: 'status', key: 'notice' }, notice),
      problem
        ? [
            h('h1.said.state.bad', headOf(problem)),
            h('p.first', problem.message),
            h(
              'p.about',
              seenAt > 0 && `Last seen at ${clock(seenAt)}. `,
              isFinal() ? 'This page has stopped refreshing.' : 'This page keeps refreshing.',
            ),
            h('button', { onclick: () => look() }, 'Refresh now'),
          ]
        : found && session
          ? VIEWS[view]?.(found)
          : [h('h1', title), h('p.about', 'Asking…')],
    ),
  );
}

function headOf({ code, status }: Problem): string {
  if (code === 'REDIS_UNAVAILABLE') return 'Locks are unavailable.';
  const heads: Record<number, string> = {
    0: 'No answer.',
    401: 'You are signed out.',
    403: 'You are not allowed to see this page.',
    429: 'Too many requests.',
  };
  return heads[status] ?? `That did not work (${status}).`;
}

function brand(): Tree {
  const { title = 'Locks', services = [] } = session ?? {};
  return h(
    'div.brand',
    h('a', { href: to('now') }, title),
    services.length > 1 &&
      select(
        'Lock service',
        Object.fromEntries(services.map((each) => [each, each])),
        here().query.service ?? services[0]!,
        (service) => {
          location.hash = but({ service });
        },
      ),
  );
}

function navigation(current: string): Tree {
  return h(
    'nav',
    { 'aria-label': 'Views' },
    Object.entries(ENTRIES).map(([view, text]) =>
      h('a', { href: to(view), 'aria-current': `${current}s`.startsWith(view) && 'page' }, text),
    ),
  );
}

function status(): Tree {
  const seenAt = answeredAt();
  const word = problem
    ? isFinal()
      ? 'bad Stopped'
      : 'bad Retrying'
    : isPaused
      ? 'calm Paused'
      : seenAt
        ? 'good Live'
        : 'calm Loading';
  const age = Date.now() - seenAt;
  return h(
    'div.status',
    h('span.age', state(word, 'strong'), seenAt > 0 && [' ', h('span', age < 3_000 ? 'now' : `${span(age)} old`)]),
    h('button', { onclick: pause }, isPaused ? 'Resume' : 'Pause'),
  );
}

const page = document.createElement('div');
document.body.replaceChildren(page);

/** After a link, the focus is on the heading of the new view. */
onhashchange = () => {
  if (isLost()) return;
  document.querySelector('dialog')?.close();
  tell('');
  look();
  draw();
  if (place() !== placed) {
    scrollTo(0, 0);
    const head = document.querySelector('h1');
    if (head) head.tabIndex = -1;
    head?.focus();
  }
  placed = place();
};

onkeydown = (event) => {
  const field = document.querySelector<HTMLInputElement>('#filter');
  const target = event.target as HTMLElement;
  if (event.key === '/' && field && !target.matches('input, select') && !document.querySelector('dialog')) {
    event.preventDefault();
    field.select();
  } else if (event.key === 'Escape' && target === field) target.blur();
};

/** An unknown address leads to the first page. */
function isLost(): boolean {
  const isUnknown = !Object.hasOwn(VIEWS, here().view);
  if (isUnknown) location.replace(to('now'));
  return isUnknown;
}

isLost();
start(draw);
draw();
setInterval(() => document.hidden || draw(), 1_000);

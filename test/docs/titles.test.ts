import { join } from 'node:path';
import { GUIDES, readGuide } from './guides.js';

const pages = GUIDES.filter((path) => /^docs\/(guide|migration|operations|reference)\//.test(path));

/** Search words, and the page that has to have them in a heading. */
const WORDS: Record<string, string> = {
  ACL: 'docs/operations/acl.md',
  TTL: 'docs/guide/choosing-a-mode.md',
  watchdog: 'docs/guide/how-it-works.md',
  '3 a.m.': 'docs/operations/at-3-am.md',
  'command line': 'docs/reference/command-line.md',
  fleet: 'docs/operations/fleet.md',
  health: 'docs/operations/health.md',
  metrics: 'docs/operations/metrics.md',
  alerts: 'docs/operations/metrics.md',
  dashboard: 'docs/operations/metrics.md',
  contention: 'docs/operations/contention.md',
  trace: 'docs/operations/traces.md',
  APM: 'docs/operations/traces.md',
  Datadog: 'docs/operations/traces.md',
  warnings: 'docs/operations/logs.md',
  race: 'docs/guide/race-tool.md',
  Jest: 'docs/guide/testing.md',
  Vitest: 'docs/guide/testing.md',
  'node:test': 'docs/guide/testing.md',
  mocks: 'docs/guide/testing.md',
  'fake timers': 'docs/guide/testing.md',
  GraphQL: 'docs/guide/with-graphql.md',
  microservices: 'docs/guide/request-handlers.md',
  WebSocket: 'docs/guide/with-websockets.md',
  transactions: 'docs/guide/with-transactions.md',
  'typeorm-transactional': 'docs/guide/with-transactions.md',
  MikroORM: 'docs/guide/with-transactions.md',
  'fencing tokens': 'docs/guide/fencing.md',
  TypeORM: 'docs/guide/fencing-drivers.md',
  Prisma: 'docs/guide/fencing-drivers.md',
  Redlock: 'docs/guide/quorum.md',
  redlock: 'docs/migration/from-redlock.md',
  'redis-semaphore': 'docs/migration/from-redis-semaphore.md',
  murlock: 'docs/migration/from-nest-modules.md',
  '@nestjs-redis/lock': 'docs/migration/from-nest-modules.md',
  'SET NX': 'docs/migration/from-set-nx.md',
  deadlock: 'docs/guide/several-resources.md',
  semaphore: 'docs/guide/semaphore.md',
  'leader election': 'docs/guide/leader-election.md',
  cron: 'docs/guide/cron.md',
  migrations: 'docs/guide/exec.md',
  doctor: 'docs/operations/acl.md',
  misfire: 'docs/operations/jobs.md',
  Sentinel: 'docs/operations/topologies.md',
  Cluster: 'docs/operations/topologies.md',
  capacity: 'docs/operations/benchmarks.md',
};

it.each(Object.entries(WORDS))('a heading has the word "%s": %s', (word, page) => {
  const headings = readGuide(page).match(/^#+ .*$/gm) ?? [];
  expect(headings.filter((heading) => heading.toLowerCase().includes(word.toLowerCase()))).not.toEqual([]);
});

it('every page of the guides has a title of its own', () => {
  const titles = pages.map((page) => /^# (.*)$/m.exec(readGuide(page))?.[1]);
  expect(titles).not.toContain(undefined);
  expect(new Set(titles).size).toBe(titles.length);
});

it.each(GUIDES)('%s has no mark of a merge', (page) => {
  expect(readGuide(page)).not.toMatch(/^(?:<{7}|>{7}) /m);
});

it('the list of all pages names each page once', () => {
  const listed = [...readGuide('docs/contents.md').matchAll(/^- \[[^\]]+\]\(([^)]+)\)/gm)];
  const names = listed.map(([, link]) => join('docs', link!)).filter((name) => name.startsWith('docs/'));
  const all = GUIDES.filter((path) => path.startsWith('docs/') && path !== 'docs/contents.md');
  expect(names.toSorted()).toEqual(all.toSorted());
  expect(readGuide('README.md')).toContain('](docs/contents.md)');
});

it('a page about one library has at most 120 lines', () => {
  const lines = (page: string) => readGuide(page).trimEnd().split('\n').length;
  expect(pages.filter((page) => /\/with-(?!transactions)[\w-]+\.md$/.test(page) && lines(page) > 120)).toEqual([]);
});

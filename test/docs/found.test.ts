import { GUIDES, readGuide } from './guides.js';

/** Search terms, and the page that has to be among the first three. */
const QUESTIONS: readonly (readonly [question: string, page: string])[] = [
  ['how to install nestjs redis lock', 'docs/guide/getting-started.md'],
  ['forRootAsync config service', 'docs/guide/getting-started.md'],
  ['lock a method with a decorator', 'docs/guide/decorators.md'],
  ['lock a block of code', 'docs/guide/lock-service.md'],
  ['acquire release using', 'docs/guide/lock-service.md'],
  ['lock a http request handler', 'docs/guide/request-handlers.md'],
  ['lock TTL expiration', 'docs/guide/choosing-a-mode.md'],
  ['lock expires before job ends', 'docs/guide/choosing-a-mode.md'],
  ['reentrant lock', 'docs/guide/choosing-a-mode.md'],
  ['retry until the lock is free', 'docs/guide/choosing-a-mode.md'],
  ['fair queue first come first served', 'docs/guide/waiting.md'],
  ['wait timeout waitMs', 'docs/guide/waiting.md'],
  ['redis is down what happens', 'docs/guide/waiting.md'],
  ['deadlock two locks', 'docs/guide/several-resources.md'],
  ['read write lock', 'docs/guide/read-write.md'],
  ['limit concurrency semaphore', 'docs/guide/semaphore.md'],
  ['cron job runs on every instance', 'docs/guide/cron.md'],
  ['deduplicate cron', 'docs/guide/cron.md'],
  ['missed cron tick catch up', 'docs/operations/jobs.md'],
  ['leader election', 'docs/guide/leader-election.md'],
  ['run migrations once per deploy', 'docs/guide/exec.md'],
  ['idempotent webhook', 'docs/guide/cookbook.md'],
  ['debounce across instances', 'docs/guide/cookbook.md'],
  ['prevent overselling stock', 'docs/guide/cookbook.md'],
  ['fencing token', 'docs/guide/fencing.md'],
  ['typeorm prisma fencing', 'docs/guide/fencing-drivers.md'],
  ['transaction commit before release', 'docs/guide/with-transactions.md'],
  ['bullmq job order per customer', 'docs/guide/cookbook.md'],
  ['test without redis jest mock', 'docs/guide/testing.md'],
  ['kubernetes graceful shutdown', 'docs/operations/kubernetes.md'],
  ['readiness liveness probe', 'docs/operations/health.md'],
  ['lock does not lock', 'docs/operations/troubleshooting.md'],
  ['stuck lock', 'docs/operations/troubleshooting.md'],
  ['unlock force release', 'docs/operations/at-3-am.md'],
  ['who holds the lock', 'docs/operations/at-3-am.md'],
  ['prometheus metrics dashboard', 'docs/operations/metrics.md'],
  ['opentelemetry spans', 'docs/operations/traces.md'],
  ['redis cluster sentinel elasticache', 'docs/operations/topologies.md'],
  ['why not redlock', 'docs/why.md'],
  ['nest 11 ioredis 5 peer dependency', 'docs/guide/peers.md'],
];

/** They say nothing of what is looked for. */
const COMMON = new Set('a an and the of to in on is it for with how do i what my by at or'.split(' '));

/** Of one word, its forms are one: `locks`, `locked`, `locking`. */
const stem = (word: string): string =>
  word.length <= 4 ? word.replace(/s$/, '') : word.replace(/(?:ing|ed|es|s|ies|y|ment|ion)$/, '');

const wordsOf = (text: string): string[] =>
  text
    .toLowerCase()
    .split(/[^\p{L}\p{N}]+/u)
    .filter((word) => word !== '' && !COMMON.has(word))
    .map(stem);

interface Entry {
  readonly page: string;
  readonly title: ReadonlySet<string>;
  readonly start: ReadonlySet<string>;
}

const index: readonly Entry[] = GUIDES.filter((page) => /^docs\/(?!internals|contents)/.test(page)).map((page) => {
  const text = readGuide(page);
  const [heading] = /^# .*$/m.exec(text)!;
  const rest = text.slice(text.indexOf(heading) + heading.length).trim();
  return { page, title: new Set(wordsOf(heading)), start: new Set(wordsOf(rest.slice(0, 200))) };
});

/** A word counts by how few pages have it, and three times in a title. */
function find(question: string): string[] {
  const scores = index.map(({ page, title, start }) => {
    let score = 0;
    for (const word of new Set(wordsOf(question))) {
      const pages = index.filter((each) => each.title.has(word) || each.start.has(word)).length;
      if (pages === 0) continue;
      const rarity = Math.log(1 + index.length / pages);
      if (title.has(word)) score += 3 * rarity;
      else if (start.has(word)) score += rarity;
    }
    return { page, score };
  });
  return scores
    .filter(({ score }) => score > 0)
    .toSorted((a, b) => b.score - a.score)
    .map(({ page }) => page);
}

describe('by its title and its first 200 characters', () => {
  it('are asked forty questions', () => {
    expect(QUESTIONS).toHaveLength(40);
  });

  it.each(QUESTIONS)('"%s" finds %s among the first three', (question, page) => {
    expect(find(question).slice(0, 3)).toContain(page);
  });

  it('a question that is about nothing here finds nothing', () => {
    expect(find('butterfly')).toEqual([]);
  });
});

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { ENTRY_POINTS } from '../../scripts/entry-points.mjs';
import { count, isNounClause, MAX_NOUN_CLAUSES, MIN_YOU, PATTERNS, readTexts } from '../../tools/words/count.mjs';
import { repositoryFiles } from '../support/process/repository-files.js';
import { blocksOf, GUIDES, readGuide, ROOT, tablesOf } from './guides.js';

describe('titles', () => {
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

  // Search words are in docs/contents.md, which the site takes the descriptions of its pages from.
  it.each(GUIDES)('%s has no heading with words in brackets', (page) => {
    const prose = readGuide(page).replaceAll(/^( *)```\w*\n[^]*?^\1```$/gm, '');
    expect(prose.match(/^#+ .* \(.*$/gm) ?? []).toEqual([]);
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
});

describe('sentences', () => {
  /** The pages for users. The internals have words of their own. */
  const written = GUIDES.filter(
    (path) => path === 'README.md' || /^docs\/(guide|operations|migration|[\w-]+\.md)/.test(path),
  );

  /** The rule is 25. The few longer sentences are lists of names. */
  const MAX_WORDS = 28;

  /** Excluded because it quotes the log. */
  const pages = written.filter((path) => path !== 'docs/operations/logs.md');

  /** The lines of a page without code, quotes and names. */
  function proseOf(page: string): string[] {
    return readGuide(page)
      .replace(/^( *)```\w*\n[^]*?^\1```$/gm, (block) => block.replace(/[^\n]/g, ''))
      .replace(/^<!--.*-->$/gm, '')
      .split('\n')
      .map((line) => (line.startsWith('>') ? '' : line.replace(/`[^`]*`/g, '').replace(/"[^"]*"/g, '')));
  }

  const found = (rule: RegExp): string[] =>
    pages.flatMap((page) =>
      proseOf(page).flatMap((line, index) => (rule.test(line) ? [`${page}:${index + 1}: ${line.trim()}`] : [])),
    );

  /** The sentences of a page, without tables, headings, links and code. */
  function sentencesOf(page: string): string[] {
    const text = readGuide(page)
      .replaceAll(/^( *)```\w*\n[^]*?^\1```$/gm, '\n')
      .replaceAll(/^(?:<!--|\||#|>).*$/gm, '')
      .replaceAll(/\]\([^)]*\)/g, ']')
      .replaceAll(/`[^`]*`/g, '`code`');
    return text
      .split(/\n\s*\n|\n(?= *(?:[-*]|\d+\.) )/)
      .flatMap((block) => block.replaceAll(/\s+/g, ' ').split(/(?<=[.!?:])(?:\*\*)? (?=[A-Z\d`*"[])/));
  }

  /** The page of benchmarks quotes machines and other programs. */
  it.each(pages.filter((page) => page !== 'docs/operations/benchmarks.md'))('%s has sentences of one idea', (page) => {
    const long = sentencesOf(page).filter(
      (sentence) => sentence.split(' ').filter((word) => /[\p{L}\p{N}]/u.test(word)).length > MAX_WORDS,
    );
    expect(long).toEqual([]);
  });

  it('no list item begins with a pronoun whose noun is elsewhere', () => {
    expect(found(/^ *(?:[-*]|\d+\.) +(?:\*\*)?(?:It|They|These|Those|This|He|She)\b/)).toEqual([]);
  });

  it('the first guide explains five words before all others', () => {
    const [, box] = /^# .*\n\n((?:>.*\n)+)/.exec(readGuide('docs/guide/getting-started.md')) ?? [];
    for (const word of ['lease', 'holder', 'waiter', 'fencing token', 'tick']) expect(box).toContain(`**${word}**`);
  });
});

/** The columns of a line that the site shows at a width of 1,280 pixels. */
const COLUMNS = 76;
/** Commands are wrapped there. What a terminal prints is as wide as it is. */
const LANGUAGES = ['ts', 'js', 'json', 'yaml'];
it.each(GUIDES)('%s has no code that is cut off', (page) => {
  const wide = blocksOf(page)
    .filter(({ language }) => LANGUAGES.includes(language))
    .flatMap(({ code }) => code.split('\n'))
    // Ignores the promised output, which a test needs in the same line.
    .map((line) => line.replace(/(console\.log\(.*\);) \/\/ .*/, '$1'))
    .filter((line) => line.length > COLUMNS && !/ from '| A stock\./.test(line));
  expect(wide).toEqual([]);
});

it.each(GUIDES.filter((page) => page !== 'CONTRIBUTING.md'))('%s has no table that is padded with spaces', (page) => {
  const rows = readGuide(page)
    .replaceAll(/^( *)```[^]*?^\1```$/gm, '')
    .split('\n')
    .filter((line) => line.startsWith('|'));
  // A comment before it keeps a table from being aligned: nobody reads the source of such a table.
  expect(rows.filter((row) => / {3,}\||-{6,}/.test(row))).toEqual([]);
});

const texts = readTexts();

describe.each(['docs', 'comments', 'messages'] as const)('the %s', (kind) => {
  it.each(PATTERNS)('have at most $max of "$name" per 1,000 words', ({ pattern, max }) => {
    const { places, rate } = count(texts[kind], pattern);
    expect(rate > max ? places : []).toEqual([]);
  });
});

it('the docs talk to the reader', () => {
  expect(count(texts.docs, /\byou(?:rs?)?\b/gi).rate).toBeGreaterThanOrEqual(MIN_YOU);
});

it('doc comments start with a verb or a noun', () => {
  const clauses = texts.heads.filter(isNounClause);
  expect(texts.heads.length).toBeGreaterThan(1_000);
  expect(clauses.length > MAX_NOUN_CLAUSES * texts.heads.length ? clauses : []).toEqual([]);
});

it('limits are called MAX_ and MIN_', () => {
  expect(texts.superlatives).toEqual([]);
});

it.each([
  ['told', 'An observer is told of the loss.'],
  ['says', 'The error says which lock it was.'],
  ['where', 'Set, where a label was given, or not where the lock is free.'],
  ['that of', 'It waits like that of the quorum.'],
  ['Of each', 'It asks all. Of each answer, the first line counts.'],
  ['in vain', 'The call waits in vain, and the process stood still.'],
  ['nobody', 'Nobody polls.'],
  ['so long', 'It is kept for so long.'],
])('the count of "%s" finds: %s', (name, text) => {
  const { pattern } = PATTERNS.find((each) => each.name === name)!;
  const { places, rate } = count([{ path: 'a.md', text }], pattern);
  expect(places).toContain(`a.md: ${text}`);
  expect(rate).toBeGreaterThan(50);
});

describe('the glossary', () => {
  const words = tablesOf('docs/internals/glossary.md')
    .filter(({ header }) => header[0] === 'Word')
    .flatMap(({ rows }) => rows.map(([word]) => word!));

  it('names no type that does not exist', () => {
    const types = words.flatMap((word) => /^`([A-Z]\w+)`$/.exec(word)?.[1] ?? []);
    const text = readdirSync(join(ROOT, 'lib'), { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.ts'))
      .map((name) => readFileSync(join(ROOT, 'lib', name), 'utf8'))
      .join('\n');
    expect(types).toContain('StoreLease');
    expect(types.filter((type) => !new RegExp(`(?:class|interface|type) ${type}\\b`).test(text))).toEqual([]);
  });

  it('has each word once', () => {
    expect(words.filter((word, index) => words.indexOf(word) !== index)).toEqual([]);
  });
});

const PICTURE = /!\[([^\]]*)\]\(([^)\s]+\.(?:svg|png))\)/g;

/** Each picture that a page shows: its path, and what is said of it to a reader who does not see it. */
const shown = GUIDES.flatMap((page) =>
  [...readGuide(page).matchAll(PICTURE)].map(([, alt, link]) => ({
    page,
    alt: alt!,
    path: join(dirname(page), link!),
  })),
);
const drawn = repositoryFiles().filter((file) => /^docs\/.*\.svg$/.test(file));

it.each(shown)('$page shows $path, and says in words what is seen', ({ path, alt }) => {
  expect(existsSync(join(ROOT, path))).toBe(true);
  expect(alt.split(' ').length).toBeGreaterThanOrEqual(8);
});

describe.each(drawn)('%s', (path) => {
  const svg = readFileSync(join(ROOT, path), 'utf8');

  it('is on a page, and small', () => {
    expect(shown.map((picture) => picture.path)).toContain(path);
    expect(Buffer.byteLength(svg)).toBeLessThan(6_000);
  });

  it('reads on a light page and on a dark one: it has a ground of its own, and no color of the page', () => {
    const [, width, height] = /viewBox="0 0 (\d+) (\d+)"/.exec(svg)!;
    expect(svg).toContain(`<rect x="0.5" y="0.5" width="${Number(width) - 1}" height="${Number(height) - 1}" rx="8"`);
    expect(svg).not.toContain('currentColor');
  });

  it('has a title, and loads nothing', () => {
    expect(svg).toMatch(/<title[^>]*>.{20,}<\/title>/);
    expect(svg).not.toMatch(/href|@import|url\((?!#)/);
  });
});

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

const foldersIn = (path: string): string[] =>
  readdirSync(join(ROOT, path), { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => `${path}/${name}`);

it('the tree in CONTRIBUTING.md has each folder of lib/', () => {
  const [tree] = /^```\nlib\/kernel[^]*?^```$/m.exec(readGuide('CONTRIBUTING.md'))!;
  for (const folder of foldersIn('lib')) expect(tree).toContain(`${folder}/`);
});

describe('the page about the architecture', () => {
  const page = readGuide('docs/internals/architecture.md');

  it('names each room of lib, each layer, feature and extra, and no other', () => {
    for (const room of foldersIn('lib')) expect(page).toMatch(new RegExp(`${room}\\b|\\*\\*${room.slice(4)}\\*\\*`));
    const inner = ['kernel', 'features', 'extras'].flatMap((room) => foldersIn(`lib/${room}`));
    for (const room of inner) expect(page).toContain(`\`${room.split('/')[2]}\``);
    for (const [, path] of page.matchAll(/\b(lib\/[\w/-]+\w)(?![\w.*/-])/g)) {
      expect(readdirSync(join(ROOT, path!))).not.toEqual([]);
    }
  });

  it('has each entry point in its picture', () => {
    const picture = page.slice(page.indexOf('```mermaid'), page.indexOf('An arrow means'));
    const boxes = [...picture.matchAll(/\w+\["([^"]*)"\] -->/g)].flatMap(([, text]) => text!.split(', '));
    for (const { name } of ENTRY_POINTS) expect(boxes).toContain(name);
  });
});

import { readdirSync, readFileSync } from 'node:fs';
import { type Hover, startEditor, TYPES_FOLDER } from './editor.js';
import { IMPORTS, method, MISTAKES } from './mistakes.js';

const editor = startEditor();

describe('the compiler', () => {
  const fixtures = readdirSync(TYPES_FOLDER).filter((name) => name.endsWith('.ts'));
  for (const fixture of fixtures) editor.open(fixture);

  it.each(fixtures)('accepts what is right and refuses what is marked as wrong in test/types/%s', (fixture) => {
    expect(readFileSync(TYPES_FOLDER + fixture, 'utf8')).toContain('@ts-expect-error');
    expect(editor.answersTo(fixture)).toEqual([]);
  });
});

describe('what the compiler says first of a mistake', () => {
  for (const [mistake, text] of MISTAKES) editor.open(`${mistake}.ts`, IMPORTS + text);

  it.each(MISTAKES)('%s', (mistake, _text, at, expected) => {
    const [first] = editor.answersTo(`${mistake}.ts`);
    const lines = first?.text.split('\n').slice(0, expected.split('\n').length);
    expect([first?.at, lines?.join('\n')]).toEqual([at, expected]);
  });
});

describe('what an editor shows', () => {
  const onceMethod = "@^Once({ key: 'a', resultTtlMs: 1 }) async run() {}";
  const onceCall = "async run() { return locks.^once('a', { resultTtlMs: 1 }, () => 1); }";
  const shown = [
    // A line that begins with @ ends the text of a hover, also in a block of code.
    ['DistributedLock', "@^DistributedLock('a') async run() {}", "@DistributedLock('reports')"],
    ['ReadLock', "@^ReadLock('a') async run() {}", "@ReadLock('price-list')"],
    ['WriteLock', "@^WriteLock('a') async run() {}", "@WriteLock('price-list')"],
    ['DistributedSemaphore', "@^DistributedSemaphore({ key: 'a', permits: 1 }) async run() {}", 'permits: 3 }'],
    ['LockHandler', "@^LockHandler('a') async run() {}", "@LockHandler({ key: 'exports', permits: 3 })"],
    ['Once', onceMethod, 'resultTtlMs: 60_000 })'],
    ['LeaderOnly', "@^LeaderOnly('a') async run() {}", "@LeaderOnly('mailer')"],
    ['SingletonCron', "@^SingletonCron('* * * * *') async run() {}", '@SingletonCron(CronExpression'],
    ['SingletonInterval', '@^SingletonInterval(1_000) async run() {}', '@SingletonInterval(30_000)'],
    ['SingletonTimeout', '@^SingletonTimeout(1_000) async run() {}', '@SingletonTimeout(5_000)'],
  ] as const;
  const parameters = [
    ['DistributedLock', "@^DistributedLock('reports') async run() {}"],
    ['LockHandler', "@^LockHandler('reports') async run() {}"],
  ] as const;
  const options = [
    ['leaseMs', "@DistributedLock({ key: 'a', ^leaseMs: 1_000 }) async run() {}", '15000', '50 ms to 24 h'],
    ['unavailableMs', "@DistributedLock({ key: 'a', ^unavailableMs: 1_000 }) async run() {}", '2000', '0 ms or more'],
    ['waitMs', "readonly m = RedisLockModule.forRoot({ connection: '', ^waitMs: 1 });", '18000', '0 ms or more'],
  ] as const;
  const forRoot = 'readonly m = RedisLockModule.^forRoot({ connection: "memory:" });';

  /** `^` stands before the word that the user points to. */
  const marked = [forRoot, onceCall, ...[...shown, ...parameters, ...options].map(([, text]) => text)];
  const files = new Map(
    marked.map((text, index) => [text, { name: `hover-${index}.ts`, text: IMPORTS + method(text) }]),
  );
  for (const { name, text } of files.values()) editor.open(name, text.replace('^', ''));

  const hoverIn = (text: string): Hover => {
    const file = files.get(text)!;
    return editor.hoverAt(file.name, file.text.indexOf('^'));
  };

  it('of forRoot: an example that begins with the connection', () => {
    expect(hoverIn(forRoot).text).toMatch(/RedisLockModule\.forRoot\(\{\n {2}connection: 'redis:\/\/localhost:6379',/);
  });

  it.each(shown)('of @%s: all of its text, with the examples', (name, text, example) => {
    const hover = hoverIn(text);
    expect(hover.text).toContain(example);
    expect(Object.keys(hover.tags)).not.toContain(name);
    expect((hover.text.match(/```/g) ?? []).length % 2).toBe(0);
  });

  it.each([onceMethod, onceCall])('of once: first that the work may run again, %s', (text) => {
    expect(hoverIn(text).text).toMatch(/^\*\*Not exactly-once: the (method|work) may run again after a crash\*\*/);
  });

  it.each(parameters)('of @%s: what its parameter is', (_, text) => {
    const hover = hoverIn(text);
    expect(hover.signature).toContain('(keyOrOptions: ');
    expect(hover.tags['param']).toMatch(/^keyOrOptions the name of the resource, several names, or a function/);
  });

  it.each(options)('of the option %s: its default, and what is allowed', (_, text, fallback, allowed) => {
    const { tags } = hoverIn(text);
    expect(tags['default']).toBe(fallback);
    expect(tags['allowed']).toContain(allowed);
  });
});

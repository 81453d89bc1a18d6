import { fileURLToPath } from 'node:url';
import ts from 'typescript';
import { TYPES_FOLDER } from './compile.js';

const FILE = `${TYPES_FOLDER}hover.ts`;

/** What an editor shows; `^` stands before the word that the user points to. */
const hoversIn = (marked: string): { signature: string; text: string; tags: Record<string, string> } => {
  const at = marked.indexOf('^');
  const text = marked.replace('^', '');
  const { config } = ts.readConfigFile(`${TYPES_FOLDER}tsconfig.json`, ts.sys.readFile) as { config: unknown };
  const { options } = ts.parseJsonConfigFileContent(config, ts.sys, TYPES_FOLDER);
  const textOf = (path: string): string | undefined => (path === FILE ? text : ts.sys.readFile(path));
  const service = ts.createLanguageService({
    getCompilationSettings: () => options,
    getScriptFileNames: () => [FILE],
    getScriptVersion: () => '1',
    getScriptSnapshot: (path) => {
      const found = textOf(path);
      return found === undefined ? undefined : ts.ScriptSnapshot.fromString(found);
    },
    getCurrentDirectory: () => fileURLToPath(new URL('.', `file://${TYPES_FOLDER}`)),
    getDefaultLibFileName: ts.getDefaultLibFilePath,
    fileExists: (path) => textOf(path) !== undefined,
    readFile: textOf,
    readDirectory: ts.sys.readDirectory,
    directoryExists: ts.sys.directoryExists,
    getDirectories: ts.sys.getDirectories,
  });
  const info = service.getQuickInfoAtPosition(FILE, at)!;
  const tags = (info.tags ?? []).map(({ name, text: parts }) => [name, ts.displayPartsToString(parts)]);
  return {
    signature: ts.displayPartsToString(info.displayParts),
    text: ts.displayPartsToString(info.documentation),
    tags: Object.fromEntries(tags) as Record<string, string>,
  };
};

const method = (text: string): string =>
  [
    "import { DistributedLock, DistributedSemaphore, LeaderOnly, LockHandler, ReadLock, RedisLockModule, WriteLock } from 'nestjs-redis-lock';",
    "import { SingletonCron, SingletonInterval, SingletonTimeout } from 'nestjs-redis-lock/schedule';",
    `export class Shop {\n${text}\n}`,
  ].join('\n');

describe('what an editor shows', () => {
  it('of forRoot: an example that begins with the connection', () => {
    const { text } = hoversIn(method('readonly m = RedisLockModule.^forRoot({ connection: "memory:" });'));
    expect(text).toMatch(/RedisLockModule\.forRoot\(\{\n {2}connection: 'redis:\/\/localhost:6379',/);
  });

  // A line that begins with @ ends the text of a hover, also in a block of code.
  it.each([
    ['DistributedLock', "@^DistributedLock('a') async run() {}", "@DistributedLock('reports')"],
    ['ReadLock', "@^ReadLock('a') async run() {}", "@ReadLock('price-list')"],
    ['WriteLock', "@^WriteLock('a') async run() {}", "@WriteLock('price-list')"],
    ['DistributedSemaphore', "@^DistributedSemaphore({ key: 'a', permits: 1 }) async run() {}", 'permits: 3 }'],
    ['LockHandler', "@^LockHandler('a') async run() {}", "@LockHandler({ key: 'exports', permits: 3 })"],
    ['LeaderOnly', "@^LeaderOnly('a') async run() {}", "@LeaderOnly('mailer')"],
    ['SingletonCron', "@^SingletonCron('* * * * *') async run() {}", '@SingletonCron(CronExpression'],
    ['SingletonInterval', '@^SingletonInterval(1_000) async run() {}', '@SingletonInterval(30_000)'],
    ['SingletonTimeout', '@^SingletonTimeout(1_000) async run() {}', '@SingletonTimeout(5_000)'],
  ])('of @%s: all of its text, with the examples', (name, text, example) => {
    const hover = hoversIn(method(text));
    expect(hover.text).toContain(example);
    expect(Object.keys(hover.tags)).not.toContain(name);
    expect((hover.text.match(/```/g) ?? []).length % 2).toBe(0);
  });

  it.each([
    ['DistributedLock', "@^DistributedLock('reports') async run() {}"],
    ['LockHandler', "@^LockHandler('reports') async run() {}"],
  ])('of @%s: what its parameter is', (_, text) => {
    const hover = hoversIn(method(text));
    expect(hover.signature).toContain('(keyOrOptions: ');
    expect(hover.tags['param']).toMatch(/^keyOrOptions the name of the resource, several names, or a function/);
  });

  it.each([
    ['leaseMs', "@DistributedLock({ key: 'a', ^leaseMs: 1_000 }) async run() {}", '30000', '50 ms to 24 h'],
    ['unavailableMs', "@DistributedLock({ key: 'a', ^unavailableMs: 1_000 }) async run() {}", '2000', '0 ms and more'],
    ['waitMs', "readonly m = RedisLockModule.forRoot({ connection: '', ^waitMs: 1 });", '10000', '0 ms and more'],
  ])('of the option %s: its default, and what is allowed', (_, text, fallback, allowed) => {
    const { tags } = hoversIn(method(text));
    expect(tags['default']).toBe(fallback);
    expect(tags['allowed']).toContain(allowed);
  });
});

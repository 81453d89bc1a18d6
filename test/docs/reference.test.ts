import { existsSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { Redis } from 'ioredis';
import ts from 'typescript';
import { RedisLatchStore } from '../../lib/redis/redis-latch-store.js';
import { RedisLockStore } from '../../lib/redis/redis-lock-store.js';
import { RedisTickLedger } from '../../lib/redis/redis-tick-store.js';
import { useRedis } from '../support/redis/redis-server.js';
import { blocksOf, GUIDES, readGuide, ROOT, tablesOf } from './guides.js';
import { createSnippetProgram } from './snippet-program.js';

const TYPES = `
import type * as lock from 'nestjs-redis-lock';
type Errors = { [K in keyof typeof lock]: (typeof lock)[K] extends abstract new (...args: never[]) => infer E ? E extends lock.LockError ? E : never : never };
export type Codes = { [K in keyof Errors as [Errors[K]] extends [never] ? never : K extends 'LockError' ? never : K]: Errors[K]['code'] };
export type Events = { [E in lock.LockEvent as E['type']]: keyof Omit<E, 'type'> };
export interface Types { codes: Codes; events: { [E in lock.LockEvent as E['type']]: E } }
`;

/** The codes of the error classes by class, and the fields of the events by type. */
function declared(): { codes: Record<string, string>; events: Record<string, string[]> } {
  const program = createSnippetProgram({ 'types.ts': TYPES });
  const checker = program.getTypeChecker();
  const source = program.getSourceFiles().find(({ fileName }) => fileName.endsWith('/types.ts'))!;
  const types = checker.getTypeAtLocation(source.statements.find(ts.isInterfaceDeclaration)!);
  const membersOf = (name: string): [string, ts.Type][] =>
    checker
      .getTypeOfSymbol(types.getProperty(name)!)
      .getProperties()
      .map((property) => [property.name, checker.getTypeOfSymbol(property)]);
  return {
    codes: Object.fromEntries(membersOf('codes').map(([name, type]) => [name, (type as ts.StringLiteralType).value])),
    events: Object.fromEntries(
      membersOf('events').map(([name, type]) => [
        name,
        type
          .getProperties()
          .map((field) => field.name)
          .filter((field) => field !== 'type'),
      ]),
    ),
  };
}

function tableWith(path: string, ...header: string[]): readonly (readonly string[])[] {
  const table = tablesOf(path).find((candidate) => header.every((cell, index) => candidate.header[index] === cell));
  return table!.rows;
}

const plain = (cell: string): string => cell.replace(/`/g, '');

describe('the reference', () => {
  const { codes, events } = declared();

  it('lists every error with its code', () => {
    const listed = tableWith('docs/reference/errors.md', '`code`', 'Class').map(([code, name]) => [
      plain(name!),
      plain(code!),
    ]);
    expect(Object.fromEntries(listed)).toEqual(codes);
  });

  it('lists every event with its fields', () => {
    const listed = tableWith('docs/reference/events.md', '`type`', 'With').map(([type, fields]) => [
      plain(type!),
      /`(.*?)`/.exec(fields!)![1]!.split(', '),
    ]);
    expect(Object.fromEntries(listed)).toEqual(events);
  });
});

describe('the README', () => {
  it('has at most 10,000 bytes: what is longer belongs into a guide', () => {
    expect(Buffer.byteLength(readGuide('README.md'))).toBeLessThanOrEqual(10_000);
  });

  it('shows a first snippet of at most ten lines of code', () => {
    const [first] = blocksOf('README.md');
    expect(first!.code.split('\n').filter((line) => line.trim() !== '').length).toBeLessThanOrEqual(10);
  });
});

describe('the links of the guides', () => {
  const links = GUIDES.flatMap((guide) =>
    [...readGuide(guide).matchAll(/\]\(([^)\s]+)\)/g)].map((match) => [guide, match[1]!] as const),
  ).filter(([, link]) => !/^https?:/.test(link));

  it.each(links)('%s: %s', (guide, link) => {
    const [path, anchor] = link.split('#');
    const target = path ? normalize(join(dirname(guide), path)) : guide;
    expect(existsSync(join(ROOT, target))).toBe(true);
    if (anchor) expect(anchorsOf(target)).toContain(anchor);
  });

  /** As GitHub makes them of the headings. */
  function anchorsOf(guide: string): string[] {
    return [...readGuide(guide).matchAll(/^#+ (.*)$/gm)].map((match) =>
      match[1]!
        .toLowerCase()
        .replace(/[^\p{L}\p{N}\s_-]/gu, '')
        .replace(/\s/g, '-'),
    );
  }
});

it('the guides name no file that is not there', () => {
  const missing = GUIDES.filter((guide) => guide !== 'CHANGELOG.md').flatMap((guide) =>
    [...readGuide(guide).matchAll(/`((?:docs|lib|sample-app|scripts|test|tools)\/[\w./-]+)`/g)]
      .map((match) => match[1]!)
      .filter((path) => !path.includes('node_modules') && !existsSync(join(ROOT, path)))
      .map((path) => `${guide}: ${path}`),
  );
  expect(missing).toEqual([]);
});

describe('the ACL user of docs/operations/acl.md', () => {
  let admin: Redis;
  let store: RedisLockStore;

  // Before the server, which useRedis() stops.
  afterAll(async () => {
    await admin?.quit();
    await store?.close();
  });
  const redis = useRedis();

  beforeAll(async () => {
    const { code } = blocksOf('docs/operations/acl.md').find(({ language }) => language === 'text')!;
    const [, name, ...rules] = code.trim().split(/\s+/);
    admin = new Redis(redis().url);
    await admin.call('ACL', 'SETUSER', name!, ...rules);
    const connection = { host: '127.0.0.1', port: redis().port, username: name!, password: 'secret' };
    store = new RedisLockStore({ connection, keyPrefix: 'lock', instanceId: 'one', leaseMs: 1_000 });
    expect(await store.start(5_000)).toBe(true);
  });

  it.each(['exclusive', 'reentrant'] as const)('may hold %s locks', async (mode) => {
    const ownership = { resource: mode, owner: `${store.clientId}/1`, mode };
    const other = { ...ownership, owner: `${store.clientId}/2` };
    const queueing = { sentAt: 1, maxWaiters: 10 };
    expect(await store.acquire(ownership, 1_000, queueing)).toMatchObject({ status: 'granted' });
    expect(await store.acquire(other, 1_000, queueing)).toMatchObject({ status: 'queued' });
    expect(await store.setDepth(ownership, 2, 1_000)).toBe(mode === 'reentrant');
    expect(await store.renew(ownership, 1_000)).toBe(true);
    expect(await store.verify(ownership)).toBe(true);
    expect(await store.inspect(mode)).toMatchObject({ mode });
    const next = { ...ownership, owner: `${store.clientId}/3` };
    expect(await store.rotate(ownership, next, 1_000, queueing)).toMatchObject({ released: true });
    for (const { owner } of [other, next]) expect(await store.release({ ...ownership, owner })).toBe(true);
  });

  it('may share locks, hand them on, and look after them', async () => {
    const reader = (number: number) => ({ resource: 'm', owner: `${store.clientId}/${number}`, mode: 'read' as const });
    const writer = { ...reader(1), mode: 'write' as const };
    expect(await store.acquire(writer, 1_000)).toMatchObject({ status: 'granted' });
    expect(await store.downgrade(writer, 1_000)).toBe(true);
    expect(await store.acquire(reader(2), 1_000)).toMatchObject({ status: 'granted' });
    expect(await store.release(writer)).toBe(true);
    const token = await store.transfer(reader(2), { to: reader(3).owner, leaseMs: 1_000 });
    expect(await store.list('m', 10)).toEqual(['m']);
    expect(await store.forceRelease('m', token!)).toBe(true);
    const permits = { count: 1, total: 2, isResized: false };
    const permit = { resource: 's', owner: `${store.clientId}/4`, mode: 'semaphore' as const, permits };
    expect(await store.acquire(permit, 1_000)).toMatchObject({ status: 'granted' });
    expect(await store.resize('s', 3)).toBe(true);
    expect(await store.inspect('s')).toMatchObject({ permits: { total: 3, available: 2 } });
    expect(await store.release(permit)).toBe(true);
  });

  it('may run singleton jobs', async () => {
    const ledger = new RedisTickLedger(store);
    const tick = { resource: 'cron:job', tick: '1' };
    const ownership = { resource: 'cron:job', owner: `${store.clientId}/3`, mode: 'exclusive' as const };
    const claim = { ownership, leaseMs: 1_000, keepMs: 1_000, overlap: 'skip' as const, takeOver: 'nothing' as const };
    expect(await ledger.claim(tick, claim)).toMatchObject({ status: 'granted' });
    await expect(ledger.finish(tick, ownership, 1_000)).resolves.toBeUndefined();
  });

  it('may use latches', async () => {
    const latches = new RedisLatchStore(store);
    const terms = { name: 'import', count: 1, ttlMs: 1_000 };
    expect(await latches.wait(terms, 1_000)).toMatchObject({ remaining: 1 });
    expect(await latches.countDown(terms, 'a')).toMatchObject({ remaining: 0 });
    expect(await latches.read(terms)).toMatchObject({ remaining: 0 });
    expect(await admin.hkeys('lock:{import}:latch')).toEqual(['count', 'open']);
  });

  it('may not touch anything else', async () => {
    const read = { name: 'read', lua: `return redis.call('GET', KEYS[1])`, sha: '0'.repeat(40) };
    await expect(store.run(read, ['somebody-elses'], [])).rejects.toThrow(/NOPERM|ACL/);
  });
});

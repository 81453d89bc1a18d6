import { existsSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { Redis } from 'ioredis';
import * as fence from '../../lib/fence.js';
import * as lock from '../../lib/index.js';
import { LockError, type LockEvent } from '../../lib/index.js';
import * as schedule from '../../lib/schedule.js';
import { DEFAULT_OPTIONS } from '../../lib/kernel/api/lock-options.js';
import { RedisLockStore } from '../../lib/redis/redis-lock-store.js';
import { RedisJobStore } from '../../lib/features/jobs/redis/redis-job-store.js';
import { scriptOf } from '../../lib/redis/script/script.js';
import { useRedis } from '../support/redis/redis-server.js';
import { api, errors, events, gaps, pages } from './generated.js';
import { blocksOf, GUIDES, readGuide, ROOT } from './guides.js';
import './reference-options.js';

type ErrorClass = new (...args: unknown[]) => LockError;

describe('the generated reference', () => {
  it.each(pages.map(({ path, text, fresh }) => [path.replace(ROOT, ''), text, fresh]))(
    '%s is what the declarations say: else run `npm run docs:reference`',
    (_path, text, fresh) => expect(text).toBe(fresh),
  );

  it('has every option, error and event of the public types, and says something of each', () => {
    expect(gaps).toEqual([]);
  });

  it('names each lock option that a module sets for all its calls', () => {
    const page = readGuide('docs/reference/module-options.md');
    const [before] = page.split('<!-- generated');
    const names = Object.keys(DEFAULT_OPTIONS);
    expect(names).toContain('leaseMs');
    expect(names.filter((name) => !before!.includes(`\`${name}\``))).toEqual([]);
  });

  it('lists every error class with the code of its instances', () => {
    const classes = Object.entries({ ...lock, ...fence, ...schedule } as Record<string, unknown>).filter(
      (entry): entry is [string, ErrorClass] =>
        typeof entry[1] === 'function' && entry[1].prototype instanceof LockError,
    );
    const codes = classes.map(([name, Class]) => [
      name,
      new Class('x', ['shutdown'], 1, ...(name === 'FencedCommandError' ? ['x'] : [])).code,
    ]);
    expect(codes.length).toBeGreaterThan(10);
    expect(Object.fromEntries(errors.map(({ name, code }) => [name, code]))).toEqual(Object.fromEntries(codes));
  });

  it('lists every event with its fields', () => {
    const ofLock = 'resource mode group service';
    const ofLease = `fencingToken ${ofLock}`;
    const ofTick = 'group job tick service';
    const ofLeadership = 'group leadership resource service';
    const ofResult = 'group resource service';
    // The compiler wants each type of event here.
    const types: Record<LockEvent['type'], string> = {
      acquired: `${ofLease} waitedMs hasWaited handedOn attempts`,
      waiting: `${ofLock} holders holderCount place`,
      waitingLong: `${ofLock} holders holderCount waitedMs place`,
      notAcquired: `${ofLock} resources waitedMs hasWaited error`,
      released: `${ofLease} heldMs`,
      lost: `${ofLease} heldMs reason error`,
      leaked: `${ofLease} heldMs callSite isRenewed`,
      heldLong: `${ofLease} heldMs`,
      eventLoopBlocked: `${ofLease} blockedMs leaseMs leftMs`,
      lockOrder: 'service edges',
      superseded: `${ofLease} holder by`,
      leaseAbandoned: `${ofLease} heldMs`,
      releasedAfterLoss: ofLease,
      releaseFailed: `${ofLease} heldMs isEnd error`,
      renewalFailed: `${ofLease} error`,
      renewalRecovered: `${ofLease} failures failedForMs`,
      tickStarted: `${ofTick} rerun attempt manual catchUp delayMs`,
      tickFinished: `${ofTick} rerun attempt manual catchUp ranMs outcome`,
      overlapLong: `${ofTick} manual catchUp overlap ranMs ticks`,
      tickSkipped: `${ofTick} reason by pauseReason until registered attempts lateMs clockBehindMs`,
      tickMissed: 'service group job count first last ticks catchUp afterStop',
      tickFailed: `${ofTick} error`,
      onceReturned: `${ofResult} outcome waitedMs`,
      resultTooLarge: `${ofResult} bytes maxBytes`,
      resultUnreadable: `${ofResult} error`,
      campaigning: ofLeadership,
      elected: `${ofLeadership} fencingToken`,
      demoted: `${ofLeadership} fencingToken reason ledMs`,
      campaignFailed: `${ofLeadership} error`,
      callbackFailed: 'service group resource leadership callback error',
      forceReleased: 'service group resource fencingToken holder label by reason',
      jobCommand: 'service group job command by reason until',
      draining: 'service resources drainMs',
      drained: 'service resources waitedMs',
    };
    expect(Object.fromEntries(events.map(({ type, fields }) => [type, fields.join(' ')]))).toEqual(types);
  });
});

describe('the public names', () => {
  it('are in api.md and in the shapes behind it: else run `npm run api`', () => {
    expect(Object.keys(api)).toEqual(['api.md', 'tools/api/shapes.md']);
    for (const [path, text] of Object.entries(api)) expect({ path, text }).toEqual({ path, text: readGuide(path) });
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
    const owner = { resource: mode, id: `${store.clientId}/1`, mode };
    const other = { ...owner, id: `${store.clientId}/2` };
    const queueing = { sentAt: 1, maxWaiters: 10 };
    expect(await store.acquire(owner, 1_000, queueing)).toMatchObject({ status: 'granted' });
    expect(await store.acquire(other, 1_000, queueing)).toMatchObject({ status: 'queued' });
    expect(await store.setDepth(owner, 2, 1_000)).toBe(mode === 'reentrant');
    expect(await store.renew(owner, 1_000)).toBe(true);
    expect(await store.verify(owner)).toBe(true);
    expect(await store.inspect(mode)).toMatchObject({ mode });
    const next = { ...owner, id: `${store.clientId}/3` };
    expect(await store.rotate(owner, next, 1_000, queueing)).toMatchObject({ released: true });
    for (const { id } of [other, next]) expect(await store.release({ ...owner, id })).toBe(true);
  });

  it('may share locks, hand them on, and look after them', async () => {
    const reader = (number: number) => ({ resource: 'm', id: `${store.clientId}/${number}`, mode: 'read' as const });
    const writer = { ...reader(1), mode: 'write' as const };
    expect(await store.acquire(writer, 1_000)).toMatchObject({ status: 'granted' });
    expect(await store.downgrade(writer, 1_000)).toBe(true);
    const read = await store.acquire(reader(2), 1_000);
    expect(await store.release(writer)).toBe(true);
    expect(await store.list('m', 10)).toEqual(['m']);
    expect(await store.forceRelease('m', (read as { fencingToken: number }).fencingToken)).toBe(true);
    const permits = { count: 1, total: 2, isResized: false };
    const permit = { resource: 's', id: `${store.clientId}/4`, mode: 'semaphore' as const, permits };
    expect(await store.acquire(permit, 1_000)).toMatchObject({ status: 'granted' });
    expect(await store.resize('s', 3)).toBe(true);
    expect(await store.inspect('s')).toMatchObject({ permits: { total: 3, available: 2 } });
    expect(await store.release(permit)).toBe(true);
  });

  it('may run singleton jobs', async () => {
    const jobs = new RedisJobStore(store);
    const tick = { resource: 'cron:job', tick: '1' };
    const owner = { resource: 'cron:job', id: `${store.clientId}/3`, mode: 'exclusive' as const };
    const claim = { owner, leaseMs: 1_000, claimTtlMs: 1_000, overlap: 'skip' as const, takeOver: 'nothing' as const };
    expect(await jobs.claim(tick, claim)).toMatchObject({ status: 'granted' });
    await expect(jobs.end(owner, { claim: { tick: tick.tick, to: 'finished', claimTtlMs: 1_000 } })).resolves.toBe(
      true,
    );
  });

  it('may not touch anything else', async () => {
    const read = scriptOf('read', `return redis.call('GET', KEYS[1])`);
    await expect(store.run(read, ['somebody-elses'], [])).rejects.toThrow(/NOPERM|ACL/);
  });
});

import type { Lease, RedisLockService } from 'nestjs-redis-lock';
import { passThroughLocks } from 'nestjs-redis-lock/testing';
import { useKitApps } from '../kit-apps.js';

const start = useKitApps();

type Use = (locks: RedisLockService) => unknown;
const held = async (locks: RedisLockService, use: (lease: Lease) => unknown, options = {}): Promise<unknown> => {
  const lease = await locks.acquire('x', options);
  try {
    return await use(lease);
  } finally {
    await lease.release();
  }
};

const USES: Record<string, Use> = {
  lease: (locks) => locks.acquire('x'),
  'several resources': (locks) => locks.acquire(['b', 'a']),
  'lease that it tries': (locks) => locks.tryAcquire('x'),
  'work that throws': (locks) => locks.using('x', () => Promise.reject(new Error('no'))),
  'work under a lease': (locks) => locks.using('x', (lease) => lease),
  'work that it tries': (locks) => locks.tryUsing('x', async () => 7),
  'sync work': (locks) => locks.using('x', () => 7),
  current: (locks) => locks.using('x', () => locks.current('x')),
  'no current': (locks) => locks.current('x') === undefined,
  'other current': (locks) => locks.using('x', () => locks.current('y') === undefined),
  inspect: (locks) => held(locks, () => locks.inspect('x')),
  'inspect a reader': (locks) => held(locks, () => locks.inspect('x'), { mode: 'read' }),
  'inspect a label': (locks) => held(locks, () => locks.inspect('x'), { label: 'because' }),
  'inspect a free one': (locks) => locks.inspect('x'),
  'inspect a semaphore': async (locks) => {
    const pool = locks.semaphore('pool', { permits: 3 });
    const lease = await pool.acquire({ count: 2 });
    return [lease, await locks.inspect('pool')];
  },
  list: (locks) => held(locks, () => locks.list()),
  'list of a prefix': (locks) => held(locks, () => locks.list({ prefix: 'y' })),
  health: (locks) => locks.health(),
  explain: async (locks) => Object.keys(await locks.explain('x')),
  contention: (locks) => locks.contention(),
  extend: (locks) => held(locks, (lease) => lease.extend(60_000), { watchdog: false }),
  'extend a renewed one': (locks) => held(locks, (lease) => lease.extend(60_000)),
  verify: (locks) => held(locks, (lease) => lease.verify?.()),
  'release twice': (locks) => held(locks, (lease) => lease.release()),
  'use after release': async (locks) => {
    const lease = await locks.acquire('x');
    await lease.release();
    return [lease.isHeld(), lease.signal.aborted, lease.assertHeld()];
  },
  'extend after release': async (locks) => {
    const lease = await locks.acquire('x');
    await lease.release();
    return lease.extend(1_000);
  },
  'reentry of an exclusive lock': (locks) => locks.using('x', () => locks.using('x', { waitMs: 50 }, async () => 7)),
  reentry: (locks) =>
    locks.using('x', { mode: 'reentrant' }, () => locks.using('x', { mode: 'reentrant' }, async () => 7)),
  downgrade: (locks) => held(locks, (lease) => lease.downgrade(), { mode: 'write' }),
  'downgrade of an exclusive lock': (locks) => held(locks, (lease) => lease.downgrade()),
  'force release': (locks) => held(locks, (lease) => locks.forceRelease('x', { fencingToken: lease.fencingToken })),
  'force release of none': (locks) => locks.forceRelease('x', { fencingToken: 7 }),
  'wait until free': (locks) => locks.waitUntilFree('x'),
  leadership: (locks) => locks.leadership('mailer') === undefined,
  campaign: (locks) => Object.keys(locks.campaign('mailer')).sort(),
  'campaign twice': (locks) => [locks.campaign('mailer'), locks.campaign('mailer')].length,
  'single run': (locks) =>
    locks.runSingleton(
      { job: 'a', tick: '1', overlap: 'skip', onCrash: 'skip', claimTtlMs: 60_000, lock: {} },
      async () => 7,
    ),
  'aborted signal': (locks) => locks.acquire('x', { signal: AbortSignal.abort() }),
  'leader name': (locks) => locks.acquire('leader:x'),
  'too long a name': (locks) => locks.acquire('x'.repeat(600)),
  'no work': (locks) => locks.using('x', undefined as never),
  'unknown option': (locks) => locks.acquire('x', { waitMS: 1 } as never),
  'watchdog with a wrong lease': (locks) => locks.acquire('x', { leaseMs: 0 }),
  'wrong semaphore': (locks) => locks.semaphore('x', { permits: 0 }),
  'too many permits': (locks) => locks.semaphore('x', { permits: 1 }).acquire({ count: 2 }),
};

/** The names and kinds of what a value has, without what differs from run to run. */
function shapeOf(value: unknown): unknown {
  if (value instanceof Error) return `${value.name}: ${value.message.replaceAll(/\d+/g, '#')}`;
  if (Array.isArray(value)) return value.map(shapeOf);
  if (value === null || typeof value !== 'object') return value === null ? null : typeof value;
  const entries = Object.entries(value as Record<string, unknown>);
  if (Object.getPrototypeOf(value) === Object.prototype) {
    return Object.fromEntries(entries.map(([name, each]) => [name, shapeOf(each)]));
  }
  return { class: value.constructor.name, names: entries.map(([name]) => name).sort() };
}

async function outcome(use: Use, locks: RedisLockService): Promise<unknown> {
  try {
    return { resolved: shapeOf(await use(locks)) };
  } catch (error) {
    return { threw: shapeOf(error) };
  }
}

describe('passThroughLocks', () => {
  it.each(Object.entries(USES))('has the same shape as the real service: %s', async (_, use) => {
    const { service } = await start();
    expect(await outcome(use, passThroughLocks())).toEqual(await outcome(use, service));
  });
});

import type { LockOwner } from '../../../lib/kernel/store/lock-store.js';
import { createOwnerId } from '../../../lib/kernel/store/ask.js';
import { SystemRandom } from '../../../lib/kernel/util/clock.js';
import { RedisJobStore } from '../../../lib/features/jobs/redis/redis-job-store.js';
import { eventually } from '../../support/expect/eventually.js';
import { instancesOf } from '../../support/redis/instances-of.js';
import { type LockInstance, useAdmin, useInstances } from '../../support/redis/lock-instances.js';
import { documentedUser } from '../../support/redis/lock-user.js';
import { take, type TakeOptions } from '../../support/expect/mixed-sections.js';
import { track } from '../../support/expect/tracked.js';
import { useRedis } from '../../support/redis/redis-server.js';

const WAYS: TakeOptions[] = [{}, { mode: 'reentrant' }, { mode: 'read' }, { mode: 'write' }, { permits: 3, count: 2 }];

const { password, rules } = documentedUser();
/** The rights of the line. The other rules name the user and remove default rights. */
const RIGHTS = rules.filter((rule) => /^[+~&]/.test(rule));
/** ioredis tells Redis 7.2 and later its name and version; it does not matter whether it may. */
const HARMLESS = /^client\|setinfo$/i;

/** Redis's name for each kind of right. */
const KINDS: Record<string, string> = { '~': 'key', '&': 'channel', '+': 'command' };
/** The wait of a step that lacks a right. */
const LONG_MS = 2_000;

/** Redis's record of a denied command. */
interface Denial {
  reason: string;
  object: string;
}

describe('the ACL line of docs/operations/acl.md', () => {
  const redis = useRedis();
  const admin = useAdmin(() => redis().url);
  const start = useInstances(() => redis().url);

  const connectAs = async (allowed: readonly string[]): Promise<LockInstance> => {
    await admin().script('FLUSH');
    const denied = rules.filter((rule) => rule.startsWith('-') || rule === 'resetchannels');
    await admin().call('ACL', 'SETUSER', 'app', 'reset', 'on', `>${password}`, ...denied, ...allowed);
    await admin().call('ACL', 'LOG', 'RESET');
    return start({ connection: redis().url.replace('://', `://app:${password}@`), patienceMs: 300 });
  };
  /** Also of the commands inside scripts, and of those whose refusal a script takes. */
  const denials = async (): Promise<Denial[]> => {
    const entries = (await admin().call('ACL', 'LOG')) as (string | number)[][];
    return entries
      .map((entry) => Object.fromEntries(entry.map((field, index) => [field, entry[index + 1]])) as unknown as Denial)
      .filter(({ object }) => !HARMLESS.test(object));
  };

  /** Everything that there is, once; as far as it can be done. */
  const tour = ({ instanceId, locks, store }: LockInstance, other: LockInstance): (() => Promise<unknown>)[] => [
    ...WAYS.map((options, index) => async () => {
      const name = `way ${index}`;
      const untilQueued = (id: string) =>
        eventually(async () => expect(instancesOf((await other.locks.inspect(name)).waiters)).toEqual([id]), LONG_MS);
      const lease = await take(locks, name, options);
      await lease.extend();
      await lease.verify();
      if (options.mode === 'write') await lease.downgrade();
      if (options.permits) await locks.semaphore(name, { permits: 3 }).resize(3);
      if (lease.permits !== undefined && lease.permits > 1) await lease.releasePermits(1);
      // Passes it to another process, and back.
      const next = take(other.locks, name, options.permits ? { permits: 3, count: 3 } : { mode: 'write' });
      await untilQueued(other.instanceId);
      await lease.release();
      const held = await next;
      const back = take(locks, name, options);
      await untilQueued(instanceId);
      await held.release();
      const { fencingToken } = await back;
      await locks.operators.forceRelease(name, { fencingToken });
    }),
    async () => {
      // One of two readers has died; and a queue is full.
      const reader = (): LockOwner => ({
        resource: 'read',
        id: createOwnerId(store.clientId, new SystemRandom()),
        mode: 'read',
      });
      await store.acquire(reader(), LONG_MS);
      await store.acquire(reader(), 1);
      await eventually(async () => expect((await other.locks.inspect('read')).holders).toHaveLength(1), LONG_MS);
      const [writer, next] = [reader(), reader()].map((owner): LockOwner => ({ ...owner, mode: 'write' }));
      for (const waiter of [writer!, next!]) await store.acquire(waiter, LONG_MS, { sentAt: 1, maxWaiters: 1 });
      await store.release(writer!);
    },
    () => locks.using('a', { mode: 'reentrant' }, () => locks.using('a', { mode: 'reentrant' }, async () => undefined)),
    () => locks.operators.list(),
    () => locks.fleet(),
    () => locks.health(),
    () => store.rollCalls.connected(),
    async () => {
      const jobs = new RedisJobStore(store);
      const owner = {
        resource: 'job',
        id: createOwnerId(store.clientId, new SystemRandom()),
        mode: 'exclusive' as const,
      };
      const tick = { resource: 'job', tick: '1' };
      await jobs.claim(tick, {
        owner,
        leaseMs: 1_000,
        claimTtlMs: 1_000,
        overlap: 'skip',
        takeOver: 'nothing',
      });
      await jobs.end(owner, { claim: { tick: tick.tick, to: 'finished', claimTtlMs: 1_000 } });
      await store.release(owner);
    },
    async () => {
      const jobs = new RedisJobStore(store);
      const times = { leaseMs: 1_000, claimTtlMs: 1_000 };
      const note = { kind: 'tick', historySize: 1 } as const;
      const claims = ['1', '2'].map(async (name, index) => {
        const id = createOwnerId(store.clientId, new SystemRandom());
        const owner = { resource: `job ${index}`, id, mode: 'exclusive' as const };
        const tick = { resource: owner.resource, tick: name };
        await jobs.claim(tick, { owner, ...times, overlap: 'skip', takeOver: 'nothing', note });
        const [state] = await jobs.look([owner.resource], 1);
        const fencingToken = state?.running?.fencingToken ?? 0;
        await jobs.end(owner, { run: { fencingToken, outcome: index === 0 ? 'ok' : 'none' } });
      });
      await Promise.all(claims);
    },
    async () => {
      await admin().set('lock:{strange}', 'not a lock');
      await expect(locks.acquire('strange')).rejects.toThrow(/WRONGTYPE/);
    },
  ];

  it('is enough: Redis denies nothing', async () => {
    for (const step of tour(await connectAs(RIGHTS), await start())) await step();
    expect(await denials()).toEqual([]);
  });

  it.each(RIGHTS)('has no more than what is needed: without %s something is denied', async (right) => {
    const [instance, other] = [await connectAs(RIGHTS.filter((allowed) => allowed !== right)), await start()];
    for (const step of tour(instance, other)) {
      // A step that lacks a right may wait for long for what cannot come. What Redis has denied by then is enough.
      const ended = track(step());
      await eventually(
        async () => expect(ended.state !== 'pending' || (await denials()).length > 0).toBe(true),
        30_000,
      );
      if ((await denials()).length > 0) break;
    }
    const found = await denials();
    await Promise.all([instance, other].map(({ locks }) => locks.shutdown(0)));
    expect(found.length).toBeGreaterThan(0);
    for (const { reason, object } of found) {
      expect(reason).toBe(KINDS[right[0]!]);
      if (reason === 'command') expect(object.toLowerCase()).toBe(right.slice(1).toLowerCase());
    }
  });

  it('does not reach the keys and channels of others', async () => {
    const { locks } = await connectAs(RIGHTS);
    const stranger = await start({ keyPrefix: 'other', connection: redis().url.replace('://', `://app:${password}@`) });
    await expect(stranger.locks.acquire('a', { waitMs: 0 })).rejects.toMatchObject({ code: 'LOCK_UNAVAILABLE' });
    expect((await locks.acquire('a')).isHeld()).toBe(true);
  });
});

import type { Lease } from '../../../lib/kernel/api/lease.js';
import { RedisJobStore } from '../../../lib/features/jobs/redis/redis-job-store.js';
import { eventually, rejection } from '../../support/expect/eventually.js';
import { gate, track } from '../../support/expect/tracked.js';
import { type LockInstance, untilQueued, useAdmin, useInstances } from '../../support/redis/lock-instances.js';
import { documentedUser } from '../../support/redis/lock-user.js';
import { useRedis } from '../../support/redis/redis-server.js';

/** Long enough that no lock becomes free by the end of its lease. */
const LONG = { leaseMs: 60_000, waitMs: 60_000 };
const REFUSED_MS = 1_000;
/** After a mend, each refused command is sent within 2 s, and one behind the other. The rest is for a busy machine. */
const SOON_MS = 2_500;

const { name: USER, password: PASSWORD, rules: RULES } = documentedUser();

/** Ways in which an operator revokes a right of the user, and restores it. */
const REFUSALS: [string, take: string[][], giveBack: string[][]][] = [
  ['EVALSHA', [['ACL', 'SETUSER', USER, '-evalsha']], [['ACL', 'SETUSER', USER, '+evalsha']]],
  ['the keys', [['ACL', 'SETUSER', USER, 'resetkeys', '~other:*']], [['ACL', 'SETUSER', USER, 'resetkeys', '~lock:*']]],
  ['the user', [['ACL', 'DELUSER', USER]], [['ACL', 'SETUSER', USER, ...RULES]]],
  [
    'the user for a while (off)',
    [
      ['ACL', 'SETUSER', USER, 'off'],
      ['CLIENT', 'KILL', 'USER', USER],
    ],
    [['ACL', 'SETUSER', USER, 'on']],
  ],
  [
    'the password',
    [
      ['ACL', 'SETUSER', USER, 'resetpass', '>another-password'],
      ['CLIENT', 'KILL', 'USER', USER],
    ],
    [['ACL', 'SETUSER', USER, 'resetpass', `>${PASSWORD}`]],
  ],
];

describe('an instance that Redis refuses everything for a second', () => {
  const redis = useRedis();
  const admin = useAdmin(() => redis().url);
  const start = useInstances(() => redis().url);

  const run = async (commands: string[][]): Promise<void> => {
    for (const [command, ...args] of commands) await admin().call(command!, ...args);
  };

  it.each(REFUSALS)('without %s: all it frees is free soon after the mend', async (_what, take, giveBack) => {
    await run([['ACL', 'SETUSER', USER, 'reset', ...RULES]]);
    const [refused, other, next] = await Promise.all([
      start({ connection: redis().url.replace('://', `://${USER}:${PASSWORD}@`) }),
      start(),
      start(),
    ]);

    // Everything that has to arrive, each about a resource of its own.
    const plain = await refused.locks.acquire('release', LONG);
    const kept = await refused.locks.acquire('retain', { ...LONG, minHoldMs: 1_500 });
    const writer = await refused.locks.acquire('downgrade', { ...LONG, mode: 'write' });
    const permits = await refused.locks.semaphore('lowerPermits', { permits: 2 }).acquire({ ...LONG, count: 2 });
    const rotated = await refused.locks.acquire('rotate', { ...LONG, strictOrder: true });
    const rotatedTo = rejection(refused.locks.acquire('rotate', { ...LONG, strictOrder: true }));
    const [runEnds, ran] = [gate(), runOf(refused)];
    const controller = new AbortController();
    const holder = await other.locks.acquire('withdrawal', LONG);
    const withdrawn = rejection(refused.locks.acquire('withdrawal', { ...LONG, signal: controller.signal }));
    await untilQueued(other, 'withdrawal', refused);
    await eventually(() => expect(ran.hasBegun()).toBe(true));

    const waiting = [
      ...['release', 'retain', 'rotate', 'withdrawal'].map((name) => next.locks.acquire(name, LONG)),
      next.locks.acquire('downgrade', { ...LONG, mode: 'read' }),
      next.locks.semaphore('lowerPermits', { permits: 2 }).acquire({ ...LONG, count: 1 }),
    ].map((call) => track<Lease>(call));
    await eventually(async () => {
      for (const name of ['release', 'retain', 'rotate', 'withdrawal', 'downgrade', 'lowerPermits']) {
        expect((await other.store.inspect(name)).waiters.at(-1)?.instanceId).toBe(next.instanceId);
      }
    });

    await run(take);
    runEnds.open();
    controller.abort();
    const failed = [
      ...[plain, kept, rotated].map((lease) => rejection(lease.release())),
      rejection(writer.downgrade()),
      rejection(permits.releasePermits(1)),
    ];
    for (const error of await Promise.all(failed)) expect(error).toMatchObject({ code: 'LOCK_UNAVAILABLE' });
    expect(await withdrawn).toMatchObject({ code: 'LOCK_ABORTED' });
    ran.end();
    await holder.release();
    await new Promise((resolve) => setTimeout(resolve, REFUSED_MS));
    expect(waiting.slice(0, 3).map(({ state }) => state)).toEqual(['pending', 'pending', 'pending']);
    expect((await other.store.inspect('cron:endRun')).holders).toHaveLength(1);

    await run(giveBack);
    await eventually(async () => {
      expect(waiting.map(({ state }) => state)).toEqual(waiting.map(() => 'fulfilled'));
      expect((await other.store.inspect('cron:endRun')).holders).toEqual([]);
    }, SOON_MS);
    await rotatedTo;
    await ran.done;
    for (const { value } of waiting) await value.release();
    await writer.release();
    await permits.release();
    await eventually(() => expect(refused.locks.stats().orphanReleases).toBe(0));
    const left = await admin().keys('lock:{*}');
    expect(left.filter((key) => !key.startsWith('lock:{cron:endRun}:'))).toEqual([]);
  });
});

/** A run of a job, whose end is a command of its own. */
function runOf({ locks, store }: LockInstance) {
  const end = gate();
  let began = false;
  const options = {
    job: 'endRun',
    tick: '1',
    overlap: 'skip',
    onCrash: 'skip',
    claimTtlMs: 60_000,
    lock: LONG,
  } as const;
  const done = locks.jobs.runs(new RedisJobStore(store)).run(options, () => {
    began = true;
    return end.opened;
  });
  return { done, end: () => end.open(), hasBegun: () => began };
}

import { LockTimeoutError } from '../../../lib/core/api/errors.js';
import { eventually, rejection, untilAborted } from '../../support/expect/eventually.js';
import { useAdmin, useInstances } from '../../support/redis/lock-instances.js';
import { useProcesses } from '../../support/process/lock-process.js';
import { conflicts, type MixedSection, type Way } from '../../support/expect/mixed-sections.js';
import { useRedis } from '../../support/redis/redis-server.js';

const HEARTBEAT_MS = 1_250 + 3_000;
const ALL = ['a', 'b', 'c'];
/** All of them, and overlapping parts; names with braces are no hash tags: they are all in slots of their own. */
const SETS = [ALL, ALL, ['a', 'b'], ['b', 'c'], ['c', 'a'], ['b', '{a}', '{b}'], ['{a}', 'c']];
/** In three processes, 51. */
const CALLERS = 17;
/** How long the processes work, without a pause. */
const FOR_MS = process.env['TEST_SPEED'] === 'long' ? 6_000 : 1_500;

describe('several resources at once', () => {
  const redis = useRedis();
  const admin = useAdmin(() => redis().url);
  const start = useInstances(() => redis().url);
  const startProcess = useProcesses(() => redis().url);
  const expectNothingLeft = () => eventually(async () => expect(await admin().keys('*')).toEqual(['lock:fence']));

  it.each<[string, Way[]]>([
    ['exclusively', SETS.map((resources) => ({ resources }))],
    [
      'to read and to write',
      SETS.flatMap((resources) => [
        { resources, options: { mode: 'read' as const } },
        { resources, options: { mode: 'write' as const } },
      ]),
    ],
  ])(
    'processes that take overlapping sets %s, in any order, never wait for each other for ever',
    async (_how, ways) => {
      const processes = await Promise.all([1, 2, 3].map(() => startProcess()));
      const work = { callers: CALLERS, forMs: FOR_MS, ways };
      // A deadlock would end in a time-out after a minute. A busy machine needs more than one round for so many.
      const sections: MixedSection[] = [];
      for (let seed = 1; sections.length <= 100; seed += processes.length) {
        const shares = await Promise.all(processes.map((each, i) => each.ask('mixed', { ...work, seed: seed + i })));
        expect(shares.map((share) => share.length)).not.toContain(0);
        sections.push(...shares.flat());
      }
      for (const resource of new Set(SETS.flat())) {
        expect(sections.some(({ resources }) => resources.includes(resource))).toBe(true);
        expect(conflicts(sections, resource)).toEqual([]);
      }
      await expectNothingLeft();
    },
  );

  it('a process that is killed when it has half of them leaves nothing when its lease is over', async () => {
    const { locks } = await start();
    const victim = await startProcess(1_500);
    const last = await locks.acquire('c', { leaseMs: 60_000 });
    const lost = rejection(victim.ask('acquire', ALL, { waitMs: 60_000 }));
    await eventually(async () => expect((await locks.inspect('c')).waiters).toHaveLength(1));
    expect((await admin().keys('lock:{*')).sort()).toEqual(['lock:{a}', 'lock:{b}', 'lock:{c}', 'lock:{c}:waiters']);
    const from = performance.now();
    await victim.kill();
    await lost;
    await last.release();
    const lease = await locks.acquire(ALL, { waitMs: 60_000 });
    expect(performance.now() - from).toBeLessThan(1_500 + HEARTBEAT_MS);
    await lease.release();
    await expectNothingLeft();
  });

  it('a call that times out leaves nothing, in each mode', async () => {
    const [a, b] = [await start(), await start()];
    const leases = await Promise.all(
      (['exclusive', 'read', 'write'] as const).map(async (mode) => {
        const [first, middle, last] = ALL.map((name) => `${name} ${mode}`) as [string, string, string];
        const held = await a.locks.acquire(middle, { mode: 'write' });
        const error = await rejection(b.locks.acquire([first, middle, last], { mode, waitMs: 300 }));
        expect(error).toBeInstanceOf(LockTimeoutError);
        return held;
      }),
    );
    const held = ['lock:{b exclusive}', 'lock:{b read}', 'lock:{b write}'];
    await eventually(async () => expect((await admin().keys('*')).sort()).toEqual(['lock:fence', ...held]));
    for (const lease of leases) {
      expect(await lease.verify()).toBe(true);
      await lease.release();
    }
    await expectNothingLeft();
  });

  it('readers of overlapping sets read side by side, and a writer of one of them waits for those who have it', async () => {
    const [a, b, c] = [await start(), await start(), await start()];
    const one = await a.locks.acquire(['a', 'b'], { mode: 'read' });
    const two = await b.locks.acquire(['b', 'c'], { mode: 'read' });
    expect([one.isHeld(), two.isHeld()]).toEqual([true, true]);
    expect(await c.locks.tryAcquire('b', { mode: 'write' })).toBeNull();
    await two.release();
    const writer = await c.locks.acquire('c', { mode: 'write' });
    expect(writer.fencingToken).toBeGreaterThan(two.fencingTokenOf('c'));
    await Promise.all([one.release(), writer.release()]);
    await expectNothingLeft();
  });

  it('the loss of one of them is the loss of all, and what is left is given back', async () => {
    const { locks } = await start({ defaults: { leaseMs: 600 } });
    const lease = await locks.acquire(ALL);
    const { signal } = lease;
    await admin().del('lock:{b}');
    await untilAborted(signal);
    expect(lease.isHeld()).toBe(false);
    await lease.release();
    await expectNothingLeft();
  });
});

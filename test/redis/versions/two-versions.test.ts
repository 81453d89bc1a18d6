import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { eventually } from '../../support/expect/eventually.js';
import { conflicts, type MixedSection, mostAtOnce, type Way } from '../../support/expect/mixed-sections.js';
import { track } from '../../support/expect/tracked.js';
import { LockProcess, useProcesses } from '../../support/process/lock-process.js';
import { useAdmin } from '../../support/redis/lock-instances.js';
import { useRedis } from '../../support/redis/redis-server.js';
import { EARLIER } from './earlier.js';

/** Longer than any test takes. A wait of this length has lost its wake-up. */
const LONG_MS = 120_000;
/** A lost message costs a second or more, which would triple the time for so many handovers. */
const HAND_OVERS = 90;
const HAND_OVERS_MS = 30_000;

/** Sections of each caller. */
const TIMES = process.env['TEST_SPEED'] === 'long' ? 40 : 20;

type Both = readonly [one: LockProcess, other: LockProcess];

describe('two versions on one Redis', () => {
  const redis = useRedis();
  const admin = useAdmin(() => redis().url);
  const startNew = useProcesses(() => redis().url);
  const startEarlier = useProcesses(() => redis().url, EARLIER.program);
  const folder = mkdtempSync(join(tmpdir(), 'versions-'));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  /** Two of each version, the versions taking turns. They live as long as the file: none of them is killed, or has another lease. */
  let four: [earlier: LockProcess, now: LockProcess, earlier: LockProcess, now: LockProcess];
  beforeAll(async () => {
    const programs = [EARLIER.program, undefined, EARLIER.program, undefined];
    four = (await Promise.all(
      programs.map((program) => LockProcess.start(redis().url, 10_000, program)),
    )) as typeof four;
  });
  afterAll(() => Promise.all(four.map((each) => each.kill())));

  const places = async (resource: string): Promise<string[]> =>
    (await admin().zrange(`lock:{${resource}}:waiters`, '0', '-1')).filter((member) => member.startsWith(' '));
  const untilQueued = (resource: string, count: number): Promise<void> =>
    eventually(async () => expect(await places(resource)).toHaveLength(count));
  const expectNothingLeft = (): Promise<void> =>
    eventually(async () => expect(await admin().keys('lock:{*')).toEqual([]));

  const WAYS: Record<string, readonly Way[]> = {
    'exclusive locks': [{ resources: 'x' }],
    'reentrant locks': [{ resources: 'x', options: { mode: 'reentrant' } }],
    'readers and writers': [
      { resources: 'x', options: { mode: 'read' } },
      { resources: 'x', options: { mode: 'read' } },
      { resources: 'x', options: { mode: 'write' } },
    ],
    'permits of a semaphore': [
      { resources: 'x', options: { permits: 3 } },
      { resources: 'x', options: { permits: 3, count: 2 } },
    ],
    'several resources in any order': [{ resources: ['x', 'y', 'z'] }, { resources: ['z', 'x'] }, { resources: 'y' }],
  };

  it.each(Object.entries(WAYS))('%s: no overlap, tokens that grow, and no caller waits forever', async (_, ways) => {
    const work = (seed: number) => ({ callers: 3, times: TIMES, ways, seed });
    const done = await Promise.all(four.map((each, index) => each.ask('mixed', work(index + 1))));
    const sections: MixedSection[] = done.flat();
    expect(sections).toHaveLength(four.length * 3 * TIMES);
    for (const resource of ['x', 'y', 'z']) expect(conflicts(sections, resource, 3)).toEqual([]);
    // They did meet, and compatible ones were inside together.
    for (const mode of ['read', 'semaphore'] as const) {
      if (sections.some((section) => section.mode === mode)) expect(mostAtOnce(sections, 'x', mode)).toBeGreaterThan(1);
    }
    await expectNothingLeft();
  });

  describe.each([
    [
      'the earlier one first',
      (): Both => [four[0], four[1]],
      async (leaseMs: number): Promise<Both> => [await startEarlier(leaseMs), await startNew(leaseMs)],
    ],
    [
      'the new one first',
      (): Both => [four[1], four[0]],
      async (leaseMs: number): Promise<Both> => [await startNew(leaseMs), await startEarlier(leaseMs)],
    ],
  ])('%s', (order, both, startBoth) => {
    /** Another name, because processes remember the previous one. */
    const job = `report ${order}`;

    it('the lock goes to and fro, each time by a message', async () => {
      const [one, other] = both();
      const file = join(folder, 'counter');
      writeFileSync(file, '0');
      const begunAt = performance.now();
      const work = { callers: 1, times: HAND_OVERS / 2 };
      const sections = await Promise.all([one, other].map((each) => each.ask('countInFile', 'x', file, work)));
      expect(performance.now() - begunAt).toBeLessThan(HAND_OVERS_MS);
      expect(Number(readFileSync(file, 'utf8'))).toBe(HAND_OVERS);
      const values = sections.flat().map(({ value }) => value);
      expect(values.toSorted((a, b) => a - b)).toEqual(Array.from({ length: HAND_OVERS }, (_value, index) => index));
      await expectNothingLeft();
    });

    it('waiters of both are served in the order they came, though they wait longer than a place lasts', async () => {
      const [, , , holder] = four;
      await holder.ask('acquire', 'x');
      const waiters = [...(await startBoth(900)), await startEarlier(900)];
      const served: number[] = [];
      const waiting: Promise<void>[] = [];
      for (const [index, waiter] of waiters.entries()) {
        const acquired = waiter.ask('acquire', 'x', { waitMs: LONG_MS });
        waiting.push(
          acquired.then(async () => {
            served.push(index);
            await waiter.ask('release', 'x');
          }),
        );
        await untilQueued('x', index + 1);
      }
      const ends = async (): Promise<number[]> => (await places('x')).map((place) => Number(place.split(' ')[3]));
      const first = await ends();
      // Each place would have ended twice since.
      await eventually(async () =>
        expect((await ends()).map((end, index) => end - first[index]! >= 1_800)).toEqual([true, true, true]),
      );
      await holder.ask('release', 'x');
      await Promise.all(waiting);
      expect(served).toEqual([0, 1, 2]);
      await expectNothingLeft();
    });

    it('a holder that dies delays the other version by its lease', async () => {
      const [one, other] = await startBoth(600);
      const { fencingToken } = await one.ask('acquire', 'x');
      const waiting = other.ask('acquire', 'x', { waitMs: LONG_MS });
      await untilQueued('x', 1);
      await one.kill();
      expect((await waiting).fencingToken).toBeGreaterThan(fencingToken);
    });

    it('each of fifty ticks of a job runs once', async () => {
      const [one, other] = both();
      const last = Math.floor(Date.now() / 1_000) * 1_000;
      const tokens: number[] = [];
      for (let at = last - 49_000; at <= last; at += 1_000) {
        const ran = await Promise.all([one, other, one, other].map((each) => each.ask('runTick', job, at)));
        tokens.push(...ran.filter((token) => token !== null));
      }
      expect(tokens).toHaveLength(50);
      expect(tokens).toEqual(tokens.toSorted((a, b) => a - b));
    });

    it('a pause of one version stops the ticks of the other, until it is resumed by either', async () => {
      const [one, other] = both();
      const at = Math.floor(Date.now() / 1_000) * 1_000;
      await one.ask('pauseJob', job);
      expect(await other.ask('runTick', job, at)).toBeNull();
      await other.ask('resumeJob', job);
      expect(await one.ask('runTick', job, at + 1_000)).toEqual(expect.any(Number));
    });

    it('a watcher of a resource is notified by the other store', async () => {
      const [one, other] = both();
      await one.ask('acquire', 'x');
      const waiting = track(other.ask('waitUntilFree', 'x', LONG_MS));
      await eventually(async () => expect(await admin().zcard('lock:{x}:waiters')).toBe(1));
      await one.ask('release', 'x');
      await eventually(() => expect(waiting.state).toBe('fulfilled'));
    });

    it('a writer that reads from now on lets readers of the other in', async () => {
      const [one, other] = both();
      await one.ask('acquire', 'x', { mode: 'write' });
      const reading = other.ask('acquire', 'x', { mode: 'read', waitMs: LONG_MS });
      await untilQueued('x', 1);
      await one.ask('downgrade', 'x');
      expect(await reading).toMatchObject({ isHeld: true });
      expect(await one.ask('state', 'x')).toMatchObject({ isHeld: true });
      await Promise.all([one, other].map((each) => each.ask('release', 'x')));
    });

    it('an operator ends a lease of the other version, whose holder learns of it', async () => {
      const [one, other] = await startBoth(900);
      const { fencingToken } = await one.ask('acquire', 'x');
      const [shown] = await other.ask('list', 'x');
      expect(shown?.holders).toEqual([expect.objectContaining({ instanceId: one.instanceId, fencingToken })]);
      expect(await other.ask('forceRelease', 'x', fencingToken)).toBe(true);
      await eventually(async () => expect((await one.ask('state', 'x')).reason).toBe('takenOver'));
    });
  });

  it('a lease that goes from one process of the earlier version to another excludes the new one all the while', async () => {
    const [giver, other, taker] = four;
    // Only the earlier version has these verbs.
    const ask = <T>(to: LockProcess, ...call: unknown[]): Promise<T> =>
      (to.ask as (...args: unknown[]) => Promise<T>).apply(to, call);
    const { fencingToken } = await giver.ask('acquire', 'x');
    const text = await ask<string>(giver, 'transfer', 'x');
    const isTaken = async (): Promise<void> => {
      await expect(other.ask('acquire', 'x', { waitMs: 0 })).rejects.toThrow('held');
      expect((await other.ask('list', 'x'))[0]?.holders).toMatchObject([{ fencingToken }]);
    };
    await isTaken();
    expect(await ask(taker, 'adopt', text, 'x')).toMatchObject({ isHeld: true, fencingToken });
    await isTaken();
    await taker.ask('release', 'x');
    expect((await other.ask('acquire', 'x')).fencingToken).toBeGreaterThan(fencingToken);
    await other.ask('release', 'x');
    await expectNothingLeft();
  });
});

import type { SingletonRunOptions } from '../../../../lib/features/jobs/core/singleton-run-options.js';
import { RedisJobStore } from '../../../../lib/features/jobs/redis/redis-job-store.js';
import { forgetful } from '../../../support/world/forgetful.js';
import { commandCounts, resetCounts, useAdmin, useInstances } from '../../../support/redis/lock-instances.js';
import { useRedis } from '../../../support/redis/redis-server.js';

const MINUTE_MS = 60_000;

describe('the record of a job costs', () => {
  const redis = useRedis();
  const admin = useAdmin(() => redis().url);
  const start = useInstances(() => redis().url);

  const optionsOf = (changes: Partial<SingletonRunOptions>): SingletonRunOptions => ({
    job: 'report',
    tick: 'a tick',
    overlap: 'skip',
    onCrash: 'skip',
    claimTtlMs: 1_000,
    lock: {},
    ...changes,
  });

  async function open() {
    const { locks, store } = await start();
    const jobs = new RedisJobStore(store);
    return { store, jobs, with: locks.jobs.runs(jobs), without: locks.jobs.runs(forgetful(jobs)) };
  }

  it.each([
    ['skip', 2],
    ['retry', 3],
  ] as const)('no command more per tick, with onCrash: %s', async (onCrash, commands) => {
    const { with: runs, without } = await open();
    const countOf = async (run: () => Promise<unknown>): Promise<number> => {
      await run();
      await resetCounts(admin());
      await run();
      const { evalsha = 0, eval: evaluated = 0 } = await commandCounts(admin());
      return evalsha + evaluated;
    };
    let ticks = 0;
    const options = () => optionsOf({ tick: `${++ticks}`, onCrash });
    expect(await countOf(() => without.run(options(), () => undefined))).toBe(commands);
    expect(await countOf(() => runs.run(options(), () => undefined))).toBe(commands);
    const failing = () => runs.run(options(), () => Promise.reject(new Error('no'))).catch(() => undefined);
    expect(await countOf(failing)).toBe(commands);
  });

  it('one command for an instance that does not get the tick', async () => {
    const { with: runs } = await open();
    const { with: others } = await open();
    await runs.run(optionsOf({ tick: '1' }), () => undefined);
    await others.run(optionsOf({ tick: '1' }), () => undefined);
    await resetCounts(admin());
    await others.run(optionsOf({ tick: '1' }), () => undefined);
    expect((await commandCounts(admin())).evalsha).toBe(1);
  });

  async function bytesOf(historyMessages: boolean): Promise<number> {
    const { with: runs } = await open();
    const at = Date.now();
    // As long as they may be in the worst case.
    const error = Object.assign(new Error('m'.repeat(400)), { name: 'N'.repeat(100), code: 'C'.repeat(100) });
    const usual = Object.assign(new Error('m'.repeat(400)), { name: 'QueryFailedError', code: 'ECONNREFUSED' });
    for (let run = 0; run < 110; run++) {
      const tick = new Date(at + run * MINUTE_MS).toISOString();
      const work = () => {
        if (run === 50) throw error;
        if (historyMessages || run % 10 === 0) throw usual;
      };
      const plan = { schedule: '0 * * * * * Europe/Berlin', next: at + (run + 1) * MINUTE_MS };
      await runs.run(optionsOf({ tick, historyMessages }), work, plan).catch(() => undefined);
    }
    const keys = ['runs', 'job', 'instances'].map((name) => `lock:{cron:report}:${name}`);
    expect(await admin().llen(keys[0]!)).toBe(100);
    const sizes = await Promise.all(keys.map((key) => admin().memory('USAGE', key, 'SAMPLES', 0)));
    return sizes.reduce<number>((sum, size) => sum + (size ?? 0), 0);
  }

  it.each([
    ['without messages, one run in ten an error', false, 25],
    ['with messages, every run an error with a long one', true, 50],
  ])('little memory for 100 runs %s', async (_what, historyMessages, mostKb) => {
    const bytes = await bytesOf(historyMessages);
    expect(bytes).toBeLessThanOrEqual(mostKb * 1024);
  });

  it.each([
    [47, 'weekly UTC'],
    [49, 'hourly UTC'],
  ])('after %i hours with requests of another release only, the schedule %s', async (hours, known) => {
    const { with: runs, jobs } = await open();
    const now = Date.now();
    await jobs.register([{ resource: 'cron:report', schedule: 'weekly UTC', next: now + 168 * 60 * MINUTE_MS }]);
    await admin().hset('lock:{cron:report}:job', 'stated', now - hours * 60 * MINUTE_MS);
    const due = { at: now + MINUTE_MS, maxClockSkewMs: 2 * MINUTE_MS };
    await runs.run(optionsOf({ due }), () => undefined, { schedule: 'hourly UTC', next: now + 60 * MINUTE_MS });
    expect((await jobs.look(['cron:report'], 1))[0]).toMatchObject({ schedule: known, runs: [{ outcome: 'ok' }] });
  });

  it('every key but an endless pause expires, a week after the next tick at the earliest', async () => {
    const { with: runs, jobs } = await open();
    const next = Date.now() + 30 * 24 * 60 * MINUTE_MS;
    const plan = { schedule: 'monthly UTC', next };
    const due = { at: Date.now(), maxClockSkewMs: 1_000 };
    await runs.run(optionsOf({ due }), () => undefined, plan);
    // By hand: nothing ends sooner for it.
    await runs.run(optionsOf({ tick: 'by hand', manual: true }), () => undefined);
    await jobs.register([{ resource: 'cron:report', schedule: 'monthly UTC', next }]);
    await jobs.pause('cron:report', {});
    const keys = (await admin().keys('lock:*')).toSorted();
    const endless = [];
    for (const key of keys) if ((await admin().pttl(key)) === -1) endless.push(key);
    expect(endless).toEqual(['lock:fence', 'lock:{cron:report}:paused']);
    for (const name of ['runs', 'job', 'instances', 'last-tick']) {
      const ttl = await admin().pttl(`lock:{cron:report}:${name}`);
      expect([name, Date.now() + ttl]).toEqual([name, expect.any(Number)]);
      expect(Date.now() + ttl).toBeGreaterThan(next + 7 * 24 * 60 * MINUTE_MS - 5_000);
    }
  });
});

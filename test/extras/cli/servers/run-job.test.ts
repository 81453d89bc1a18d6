import { Injectable, Module } from '@nestjs/common';
import { ScheduleModule } from '@nestjs/schedule';
import { type LockEvent, RedisLockModule } from 'nestjs-redis-lock';
import { SingletonCron, SingletonJobs, type SingletonRun } from 'nestjs-redis-lock/schedule';
import { eventually } from '../../../support/expect/eventually.js';
import { gate } from '../../../support/expect/tracked.js';
import { useAdmin } from '../../../support/redis/lock-instances.js';
import { useRedis } from '../../../support/redis/redis-server.js';
import { useApps } from '../../../nest/nest-apps.js';
import { runHere } from '../run-cli.js';

const YEARLY = '0 0 0 1 1 *';
const ID = 'a'.repeat(22);

/** `run-job.slow.test.ts` uses the first one of Redis. */
const DATABASES = process.env['TEST_SPEED'] === 'long' ? [0, 3] : [3];

describe.each(DATABASES)('job --run, in database %d', (database) => {
  const redis = useRedis();
  const admin = useAdmin(() => redis().url);
  const start = useApps();
  const runs: SingletonRun[] = [];
  let end = gate();
  const url = () => `${redis().url}/${database}`;
  const run = (...argv: string[]) =>
    runHere(['job', ...argv, '--prefix', 'lock'], { env: { REDIS_URL: url(), NO_COLOR: '1' }, isTerminal: true });

  @Injectable()
  class Reports {
    @SingletonCron(YEARLY, { name: 'nightly', overlap: 'skip' })
    async nightly(of: SingletonRun): Promise<void> {
      runs.push(of);
      await end.opened;
    }

    @SingletonCron(YEARLY, { name: 'broken' })
    async broken(): Promise<void> {
      throw new TypeError('no toner, password s3cret');
    }
  }

  const startApp = async () => {
    const events: LockEvent[] = [];
    @Module({
      imports: [
        ScheduleModule.forRoot(),
        RedisLockModule.forRoot({ connection: url(), observers: [(event) => void events.push(event)] }),
      ],
      providers: [Reports],
    })
    class App {}
    const { app, log } = await start({ imports: [App] });
    const jobs = app.get(SingletonJobs);
    await eventually(async () => expect((await jobs.get('nightly')).instances.length).toBeGreaterThan(0));
    return { jobs, events, log };
  };

  beforeEach(() => {
    runs.length = 0;
    end = gate();
    end.open();
  });

  it('runs the job on one instance of two, also while it is paused, and says how it ended', async () => {
    const apps = [await startApp(), await startApp()];
    await apps[0]!.jobs.pause('nightly');
    const { code, stdout, stderr } = await run('nightly', '--run', '--by', 'ann', '--reason', 'OPS-17');
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toMatch(/^nightly ran on \S+: ok after .+\.\n$/);
    expect(runs).toMatchObject([{ manual: true, tick: expect.stringMatching(/^manual:\S+ by ann$/) }]);
    const [newest] = await apps[0]!.jobs.history('nightly');
    expect(newest).toMatchObject({ manual: true, by: 'ann', outcome: 'ok' });
    const told = apps.flatMap(({ events }) => events.filter(({ type }) => type === 'jobCommand'));
    expect(told.filter((event) => 'command' in event && event.command === 'runNow')).toMatchObject([
      { job: 'nightly', by: 'ann', reason: 'OPS-17' },
    ]);
    expect(apps.flatMap(({ log }) => log.at('log')).join('\n')).toContain('runs now, on this instance');
  });

  it('exits with 1 if the run fails, without the text of its error', async () => {
    const { log } = await startApp();
    const { code, stdout } = await run('broken', '--run');
    expect(code).toBe(1);
    expect(stdout).toMatch(/^broken ran on \S+: error \(TypeError\)/);
    expect(log.at('error').join()).toContain('no toner');
    await admin().select(database);
    const keys = await admin().keys('lock:{cron:broken}:request:*');
    expect(keys).toHaveLength(1);
    expect(await admin().get(keys[0]!)).toMatch(/"outcome":"error","message":"TypeError"/);
    expect(await admin().pttl(keys[0]!)).toBeGreaterThan(0);
  });

  it('says that an earlier run has not ended, and leaves a run alone that takes longer', async () => {
    await startApp();
    end = gate();
    const first = await run('nightly', '--run', '--wait', '1s');
    expect(first).toMatchObject({ code: 5, stdout: '', stderr: expect.stringContaining('The run continues.') });
    const second = await run('nightly', '--run');
    expect(second).toMatchObject({ code: 1, stdout: '', stderr: expect.stringContaining('did not run the job') });
    expect(runs).toHaveLength(1);
    end.open();
    await eventually(async () => expect((await run('nightly', '--history')).stdout).toContain('ok'));
  });

  it('runs nothing for a message without a request', async () => {
    const { jobs } = await startApp();
    for (const id of [ID, 'x']) await admin().publish(`lock:roll:${database}`, `request ${id} cron:nightly`);
    for (let sent = 0; sent < 100; sent++) await admin().publish(`lock:roll:${database}`, `request ${ID} cron:nightly`);
    // Messages arrive in order, so this one is the last.
    expect(await run('nightly', '--run')).toMatchObject({ code: 0 });
    expect(runs).toHaveLength(1);
    expect(await jobs.history('nightly')).toHaveLength(1);
  });

  it('is run for each of two operators, one after the other or refused', async () => {
    await startApp();
    const both = await Promise.all([run('nightly', '--run', '--by', 'ann'), run('nightly', '--run', '--by', 'bob')]);
    expect(both.filter(({ code }) => code === 0).length).toBe(runs.length);
    expect(runs.length).toBeGreaterThan(0);
  });
});

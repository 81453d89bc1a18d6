import { Injectable } from '@nestjs/common';
import { ScheduleModule } from '@nestjs/schedule';
import { InvalidLockOptionsError, type LockEvent, LockUnavailableError, RedisLockModule } from 'nestjs-redis-lock';
import {
  JobNotFoundError,
  SingletonCron,
  SingletonInterval,
  SingletonJobs,
  type SingletonRun,
} from 'nestjs-redis-lock/schedule';
import { eventually } from '../../../../support/expect/eventually.js';
import { gate } from '../../../../support/expect/tracked.js';
import { useRedis } from '../../../../support/redis/redis-server.js';
import { inMemory, useApps } from '../../../../nest/nest-apps.js';

const YEARLY = '0 0 0 1 1 *';
const DAY_MS = 24 * 60 * 60 * 1_000;

describe.each(['memory', 'Redis'])('SingletonJobs shows and changes jobs, in %s', (kind) => {
  const redis = useRedis();
  const start = useApps();
  let end = gate();
  let prefixes = 0;
  let keyPrefix: string;

  @Injectable()
  class Reports {
    @SingletonCron(YEARLY, { name: 'nightly-report', timeZone: 'Europe/Vienna', historySize: 3 })
    async nightly(): Promise<void> {
      await end.opened;
    }

    @SingletonCron(YEARLY, { name: 'broken', historyMessages: true })
    async broken(): Promise<void> {
      throw Object.assign(new TypeError('no toner'), { code: 'E_TONER' });
    }

    @SingletonInterval('poll', 100)
    async poll(run: SingletonRun): Promise<void> {
      run.lease.assertHeld();
    }
  }

  beforeEach(() => {
    keyPrefix = `records-${++prefixes}`;
    end = gate();
    end.open();
  });

  async function startApp(instanceId: string, providers: (new () => object)[] = [Reports]) {
    const events: LockEvent[] = [];
    const connection = kind === 'Redis' ? redis().url : 'memory:';
    const module = inMemory({ connection, keyPrefix, instanceId, observers: [(event) => void events.push(event)] });
    const { app } = await start({ imports: [ScheduleModule.forRoot(), module], providers });
    return { app, jobs: app.get(SingletonJobs), events };
  }

  it('lists jobs with their runs: running, ended, failed', async () => {
    const { jobs } = await startApp('anna');
    // The application registers its jobs within a second of its start.
    await eventually(async () => {
      const { cron, timeZone, nextDueAt } = await jobs.get('nightly-report');
      expect([cron, timeZone]).toEqual([YEARLY, 'Europe/Vienna']);
      expect(nextDueAt).toBeGreaterThan(Date.now());
    });
    end = gate();
    const call = jobs.runNow('nightly-report', { by: 'ann' });
    await jobs.runNow('broken').catch(() => {});
    await eventually(async () => expect((await jobs.get('nightly-report')).running).toBeDefined());
    const all = await jobs.list();
    expect(all.map(({ name, isHere }) => [name, isHere])).toEqual([
      ['broken', true],
      ['nightly-report', true],
      ['poll', true],
    ]);
    const run = { manual: true, by: 'ann', instanceId: 'anna', rerun: false };
    expect(all[1]).toMatchObject({ running: run, lastRun: run, missed: 0 });
    expect(all[1]!.running).not.toHaveProperty('endedAt');
    expect(all[1]).not.toHaveProperty('pause');
    expect(all[0]).toMatchObject({
      lastRun: { outcome: 'error', errorName: 'TypeError', errorCode: 'E_TONER', errorMessage: 'no toner' },
    });
    expect(all[0]).not.toHaveProperty('lastSuccessAt');
    end.open();
    await call;
    const info = await jobs.get('nightly-report');
    expect(info).not.toHaveProperty('running');
    expect(info.lastRun).toMatchObject({ outcome: 'ok', by: 'ann' });
    expect(info.lastSuccessAt).toBe(info.lastRun!.endedAt);
    expect(info.instances.map(({ instanceId }) => instanceId)).toEqual(['anna']);
  });

  it('keeps historySize runs, the newest first, and returns as many as asked for', async () => {
    const { jobs } = await startApp('anna');
    for (const by of ['1', '2', '3', '4']) await jobs.runNow('nightly-report', { by });
    const bys = async (limit?: number) => {
      const runs = await jobs.history('nightly-report', limit === undefined ? {} : { limit });
      return runs.map(({ by }) => by);
    };
    expect(await bys()).toEqual(['4', '3', '2']);
    expect(await bys(1)).toEqual(['4']);
  });

  it('pauses a job for the fleet, until it is resumed: its ticks are skipped, and manual runs work', async () => {
    const { jobs, events } = await startApp('anna');
    const paused = () => events.filter((event) => event.type === 'tickSkipped' && event.reason === 'paused');
    const started = () => events.filter((event) => event.type === 'tickStarted' && event.job === 'poll');
    await eventually(() => expect(started().length).toBeGreaterThan(0));
    const why = { by: 'ann', reason: 'OPS-17' };
    expect(await jobs.pause('poll', why)).toBeUndefined();
    await eventually(() => expect(paused().length).toBeGreaterThan(1));
    expect(paused()[0]).toMatchObject({ job: 'poll', by: 'ann', pauseReason: 'OPS-17' });
    const before = started().length;
    expect((await jobs.get('poll')).pause).toMatchObject(why);
    await jobs.runNow('poll');
    expect(started()).toHaveLength(before + 1);
    const until = new Date(Date.now() + DAY_MS);
    expect(await jobs.pause('poll', { until })).toMatchObject(why);
    expect((await jobs.get('poll')).pause).toMatchObject({ until: until.getTime() });
    expect((await jobs.get('poll')).pause).not.toHaveProperty('by');
    expect(await jobs.resume('poll')).toMatchObject({ until: until.getTime() });
    expect(await jobs.resume('poll')).toBeUndefined();
    expect(events.filter((event) => event.type === 'jobCommand' && event.command === 'resume')).toHaveLength(1);
    await eventually(() => expect(started().length).toBeGreaterThan(before + 1));
    expect(await jobs.get('poll')).not.toHaveProperty('pause');
  });

  it.each([
    ['limit', (jobs: SingletonJobs) => jobs.history('poll', { limit: 0 })],
    ['limit', (jobs: SingletonJobs) => jobs.history('poll', { limit: 1_001 })],
    ['by', (jobs: SingletonJobs) => jobs.pause('poll', { by: '' })],
    ['until', (jobs: SingletonJobs) => jobs.pause('poll', { until: new Date(0) })],
    ['until', (jobs: SingletonJobs) => jobs.pause('poll', { until: new Date(NaN) })],
    ['until', (jobs: SingletonJobs) => jobs.pause('poll', { until: 'tomorrow' as never })],
    ['untl', (jobs: SingletonJobs) => jobs.pause('poll', { untl: 5 } as never)],
  ])('refuses a wrong %s before a request: %p', async (option, call) => {
    const { jobs } = await startApp('anna');
    const error = await call(jobs).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(InvalidLockOptionsError);
    expect(error).toMatchObject({ option });
    expect(await jobs.get('poll')).not.toHaveProperty('pause');
  });

  if (kind === 'memory') return;

  it('knows the jobs of another application, can pause them, and lists their instances', async () => {
    const anna = await startApp('anna');
    await anna.jobs.runNow('nightly-report');
    const { jobs } = await startApp('ben', []);
    await eventually(async () => expect((await jobs.list()).map(({ name }) => name)).toContain('nightly-report'));
    const info = await jobs.get('nightly-report');
    expect(info).toMatchObject({ isHere: false, lastRun: { instanceId: 'anna', outcome: 'ok' } });
    expect(await jobs.history('nightly-report')).toHaveLength(1);
    const error = await jobs.runNow('nightly-report').catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(JobNotFoundError);
    expect(error).toMatchObject({ instances: ['anna'] });
    expect((error as Error).message).toBe(
      'This instance has no code for the job "nightly-report": it is of another application, or it was removed here. ' +
        'These instances have it: "anna". Run it there.',
    );
    await jobs.pause('nightly-report', { by: 'ben' });
    expect((await anna.jobs.get('nightly-report')).pause).toMatchObject({ by: 'ben' });
  });
});

describe('SingletonJobs without Redis', () => {
  const redis = useRedis();
  const start = useApps();

  it('reports that Redis is unreachable', async () => {
    const module = inMemory({ connection: redis().url, attemptTimeoutMs: 200 });
    const { app } = await start({ imports: [ScheduleModule.forRoot(), module] });
    const jobs = app.get(SingletonJobs);
    await redis().kill();
    await expect(jobs.list()).rejects.toThrow(LockUnavailableError);
    await expect(jobs.runNow('any')).rejects.toThrow(JobNotFoundError);
    await redis().restart();
  });

  it('keeps no records on a quorum, and reports why; manual runs work there', async () => {
    class Jobs {
      @SingletonCron(YEARLY, { name: 'mine' })
      async mine(): Promise<string | undefined> {
        return 'done';
      }
    }
    const module = RedisLockModule.forRoot({ quorum: { connections: [redis().url] }, restartQuarantineMs: 0 });
    const { app } = await start({ imports: [ScheduleModule.forRoot(), module], providers: [Jobs] });
    const jobs = app.get(SingletonJobs);
    expect(await jobs.runNow('mine')).toBe('done');
    for (const call of [jobs.list(), jobs.get('mine'), jobs.history('mine'), jobs.pause('mine'), jobs.resume('mine')]) {
      const error = await call.catch((thrown: unknown) => thrown);
      expect(error).toBeInstanceOf(LockUnavailableError);
      expect((error as Error).message).toContain('a quorum keeps no records of jobs');
    }
    await expect(jobs.runNow('other')).rejects.toThrow(JobNotFoundError);
  });
});

import { Injectable } from '@nestjs/common';
import { ScheduleModule } from '@nestjs/schedule';
import { InvalidLockOptionsError, LockError, LockShutdownError, RedisLockService } from 'nestjs-redis-lock';
import { SingletonCron, SingletonJobs } from 'nestjs-redis-lock/schedule';
import { rejection } from '../../../../support/expect/eventually.js';
import { useRedis } from '../../../../support/redis/redis-server.js';
import { inMemory, useApps } from '../../../../nest/nest-apps.js';

const YEARLY = '0 0 0 1 1 *';
const READERS = ['list', 'get', 'history', 'pause', 'resume'] as const;
const nothing = (): void => {};

type AnyMethod = (name?: unknown) => unknown;

describe('SingletonJobs refuses', () => {
  const redis = useRedis();
  const start = useApps();
  let prefixes = 0;

  @Injectable()
  class Declared {
    @SingletonCron(YEARLY, { name: 'declared' })
    async run(): Promise<void> {}
  }

  async function startApp(connection = 'memory:', providers: (new (jobs: never) => object)[] = [Declared]) {
    const module = inMemory({ connection, keyPrefix: `input-${++prefixes}`, instanceId: 'anna' });
    const { app } = await start({ imports: [ScheduleModule.forRoot(), module], providers });
    return { app, jobs: app.get(SingletonJobs) };
  }

  /** Calls a method by its name. What it throws is returned, as is what it rejects with. */
  async function failure(jobs: SingletonJobs, method: string, ...args: unknown[]): Promise<Error> {
    return rejection((async () => (jobs as unknown as Record<string, AnyMethod>)[method]!(...(args as [])))());
  }

  it.each(['get', 'history', 'pause', 'resume', 'runNow', 'remove', 'reschedule'])(
    'of a name that is no text: %s',
    async (method) => {
      const { jobs } = await startApp();
      for (const name of [undefined, null, 5, '']) {
        const error = await failure(jobs, method, name, method === 'reschedule' ? YEARLY : undefined);
        expect(error).toBeInstanceOf(InvalidLockOptionsError);
        expect(error.message).toContain('a singleton job as its name');
      }
    },
  );

  it('a call before the application has started, when its jobs are not known yet', async () => {
    const early: Promise<Error>[] = [];
    @Injectable()
    class TooEarly {
      constructor(jobs: SingletonJobs) {
        for (const method of READERS) early.push(failure(jobs, method, 'declared'));
      }
    }
    Reflect.defineMetadata('design:paramtypes', [SingletonJobs], TooEarly);
    const { jobs } = await startApp('memory:', [Declared, TooEarly]);
    for (const [index, error] of (await Promise.all(early)).entries()) {
      expect(error).toBeInstanceOf(InvalidLockOptionsError);
      expect(error.message).toMatch(
        new RegExp(`^SingletonJobs\\.${READERS[index]} was called before the application has started\\.`),
      );
    }
    expect(await jobs.pause('declared')).toBeUndefined();
  });

  it('a call after the shutdown', async () => {
    const { app, jobs } = await startApp(redis().url);
    await app.close();
    const add = (): void => jobs.add({ name: 'late', cron: YEARLY }, nothing);
    expect(add).toThrow(new LockShutdownError('', 'SingletonJobs.add was refused'));
    expect(add).toThrow('SingletonJobs.add was refused: this application is shutting down.');
    expect((await failure(jobs, 'runNow', 'declared')).message).toMatch(/^SingletonJobs\.runNow was refused/);
    expect((await failure(jobs, 'list')).message).toMatch(/^Redis could not list jobs: this lock service is closed/);
  });

  it.each([
    [{ timeZone: 'Mars/Olympus' }, 'timeZone', /"0 0 0 1 1 \*" in the time zone "Mars\/Olympus"\. .*Invalid timezone/],
    [{ timeZone: '' }, 'timeZone', /timeZone must be the name of a time zone, not ""/],
    [{ timeZone: 'UTC', utcOffset: 60 }, 'timeZone', /timeZone/],
    [{ utcOffset: 1_440 }, 'utcOffset', /utcOffset must be an integer from -1439 to 1439 \(minutes\), not 1440/],
    [{ utcOffset: '60' }, 'utcOffset', /not "60"/],
    [{ tz: 'UTC' }, 'tz', /does not know the option "tz"\. It knows: /],
    [{ cron: new Date(0) }, 'cron', /cannot be scheduled: 1970-01-01T00:00:00\.000Z\./],
    [{ cron: {} }, 'cron', /an object \(Object\)\. It must be a cron expression, a Date or a DateTime of luxon/],
  ])('the schedule of an added job: %p', async (changes, option, message) => {
    const { jobs } = await startApp();
    const error = await failure(jobs, 'add', { name: 'mine', cron: YEARLY, ...changes }, nothing);
    expect(error).toBeInstanceOf(InvalidLockOptionsError);
    expect(error).toMatchObject({ option });
    expect(error.message).toMatch(message);
  });

  it.each([
    [new Date(0), '1970-01-01T00:00:00.000Z'],
    [new Date(NaN), 'an invalid Date'],
    [8.64e15 + 1, '8640000000000001'],
  ])('the end of a pause: %p', async (until, described) => {
    const { jobs } = await startApp();
    const error = await failure(jobs, 'pause', 'declared', { until });
    expect(error.message).toBe(`until must be a Date in the future, or its milliseconds, not ${described}.`);
  });

  it.each(['memory', 'Redis'])('a job that this instance has removed, in %s', async (kind) => {
    const { app, jobs } = await startApp(kind === 'Redis' ? redis().url : undefined);
    jobs.add({ name: 'mine', cron: YEARLY }, nothing);
    await jobs.runNow('mine');
    jobs.remove('mine');
    const error = await failure(jobs, 'runNow', 'mine');
    expect(error).toBeInstanceOf(LockError);
    expect(error.message).toBe(
      'This instance has no code for the job "mine": it is of another application, or it was removed here. ' +
        'No other instance has it now.',
    );
    expect(error).toMatchObject({ instances: [] });
    expect((await jobs.get('mine')).instances).toEqual([]);
    expect(await app.get(RedisLockService).inspect('cron:mine')).toMatchObject({ holders: [] });
  });
});

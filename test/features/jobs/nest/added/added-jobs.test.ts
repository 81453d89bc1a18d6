import { Injectable, type OnApplicationBootstrap, type OnModuleInit } from '@nestjs/common';
import { ScheduleModule, SchedulerRegistry } from '@nestjs/schedule';
import {
  InvalidLockOptionsError,
  LockBusyError,
  LockError,
  type LockEvent,
  LockShutdownError,
  LockUnavailableError,
  RedisLockModule,
  RedisLockService,
} from 'nestjs-redis-lock';
import {
  type AddedJob,
  JobNotFoundError,
  SingletonCron,
  SingletonInterval,
  SingletonJobs,
  type SingletonRun,
} from 'nestjs-redis-lock/schedule';
import { inMemory, useApps } from '../../../../nest/nest-apps.js';
import { eventually, rejection } from '../../../../support/expect/eventually.js';
import { gate } from '../../../../support/expect/tracked.js';
import { useRedis } from '../../../../support/redis/redis-server.js';

const YEARLY = '0 0 0 1 1 *';
const nothing = (): void => {};

@Injectable()
class Declared {
  @SingletonCron(YEARLY, { name: 'declared' })
  async declared(): Promise<void> {}
}

describe('a job that SingletonJobs.add has added', () => {
  const redis = useRedis();
  const start = useApps();
  let prefixes = 0;

  async function startApp(options: { connection?: string; keyPrefix?: string; providers?: never[] } = {}) {
    const { providers = [Declared], ...module } = options;
    const events: LockEvent[] = [];
    const observers = [(event: LockEvent) => void events.push(event)];
    const { app, log } = await start({
      imports: [ScheduleModule.forRoot(), inMemory({ ...module, observers })],
      providers,
    });
    const started = (): string[] => events.flatMap((event) => (event.type === 'tickStarted' ? [event.tick] : []));
    return { app, log, events, started, jobs: app.get(SingletonJobs), registry: app.get(SchedulerRegistry) };
  }

  it('runs each tick on one instance, of any kind, and is in the registry of the scheduler', async () => {
    const options = { connection: redis().url, keyPrefix: `added-${++prefixes}` };
    const apps = [await startApp(options), await startApp(options)];
    const at = new Date(Date.now() + 700);
    const runs: SingletonRun[] = [];
    for (const { jobs } of apps) {
      const work = (run: SingletonRun): void => void runs.push(run);
      jobs.add({ name: 'each-second', cron: '* * * * * *', timeZone: 'Asia/Tokyo' }, work);
      jobs.add({ name: 'poll', intervalMs: 300 }, work);
      jobs.add({ name: 'once', at }, work);
    }
    for (const { registry } of apps) {
      expect([...registry.getCronJobs().keys()].sort()).toEqual(['declared', 'each-second', 'once']);
      expect(registry.getIntervals()).toEqual(['poll']);
    }
    const ticksOf = (name: string): string[] => runs.flatMap(({ job, tick }) => (job === name ? [tick] : []));
    await eventually(() => {
      expect(ticksOf('each-second').length).toBeGreaterThan(2);
      expect(ticksOf('poll').length).toBeGreaterThan(2);
      expect(ticksOf('once')).toEqual([at.toISOString()]);
    });
    for (const { jobs } of apps) {
      jobs.remove('each-second');
      jobs.remove('poll');
    }
    const ticks = ticksOf('each-second');
    expect(new Set(ticks).size).toBe(ticks.length);
    expect(ticks.every((tick) => new Date(tick).getTime() % 1_000 === 0)).toBe(true);
    // Nothing is left of a job that runs once.
    await eventually(() => {
      for (const { registry } of apps) expect([...registry.getCronJobs().keys()]).toEqual(['declared']);
    });
    for (const { registry, log } of apps) {
      expect(registry.getIntervals()).toEqual([]);
      expect([...log.at('error'), ...log.at('warn')]).toEqual([]);
    }
    expect(apps[0]!.events.find((event) => 'job' in event && event.job === 'poll')).toMatchObject({ group: 'poll' });
  });

  it('needs no decorated job in the application', async () => {
    const { jobs, registry } = await startApp({ providers: [] });
    jobs.add({ name: 'alone', cron: YEARLY }, nothing);
    expect(registry.getCronJob('alone').nextDate().toMillis()).toBeGreaterThan(Date.now());
    expect([...registry.getCronJobs().keys()]).toEqual(['alone']);
  });

  it('runs manually, and is refused while it runs', async () => {
    const { jobs } = await startApp();
    const end = gate();
    const work = async ({ manual }: SingletonRun) => {
      await end.opened;
      return manual;
    };
    jobs.add({ name: 'mine', cron: YEARLY }, work);
    const call = jobs.runNow('mine');
    await expect(jobs.runNow('mine')).rejects.toThrow(LockBusyError);
    end.open();
    expect(await call).toBe(true);
  });

  it('logs errors of its work like the scheduler, and keeps firing', async () => {
    const { jobs, log, started } = await startApp();
    jobs.add({ name: 'broken', intervalMs: 100 }, () => Promise.reject(new TypeError('no toner')));
    await eventually(() => expect(started().length).toBeGreaterThan(1));
    jobs.remove('broken');
    await eventually(() => expect(log.at('error').length).toBeGreaterThan(1));
    expect(new Set(log.at('error'))).toEqual(new Set(['TypeError: no toner']));
  });

  it('finishes its run after it is removed, and its name is free at once', async () => {
    const { app, jobs, registry } = await startApp();
    const end = gate();
    let ended = 0;
    jobs.add({ name: 'long', intervalMs: 100 }, async () => {
      await end.opened;
      ended++;
    });
    const locks = app.get(RedisLockService);
    await eventually(async () => expect((await locks.inspect('cron:long')).holders).toHaveLength(1));
    jobs.remove('long');
    expect(registry.getIntervals()).toEqual([]);
    jobs.add({ name: 'long', cron: YEARLY }, nothing);
    expect(registry.doesExist('cron', 'long')).toBe(true);
    // The run of the old one has the lock.
    await expect(jobs.runNow('long')).rejects.toThrow(LockBusyError);
    end.open();
    await eventually(() => expect(ended).toBe(1));
  });

  it('runs at its date although the timer of the scheduler fires once more afterwards', async () => {
    const { jobs, registry } = await startApp();
    const ran = gate();
    jobs.add({ name: 'once', at: new Date(Date.now() + 500) }, async () => ran.open());
    const { cronTime } = registry.getCronJob('once');
    await ran.opened;
    await eventually(() => expect(() => cronTime.sendAt()).toThrow('Date in past'));
    expect(cronTime.getTimeout()).toBe(0);
  });

  it('ends when the application deletes it in the registry', async () => {
    const { jobs, registry } = await startApp();
    jobs.add({ name: 'mine', cron: YEARLY }, nothing);
    registry.deleteCronJob('mine');
    expect(() => jobs.remove('mine')).toThrow(JobNotFoundError);
    await expect(jobs.runNow('mine')).rejects.toThrow(JobNotFoundError);
    jobs.add({ name: 'mine', intervalMs: 60_000 }, nothing);
    expect(registry.getIntervals()).toEqual(['mine']);
  });

  it('follows another schedule, in its zone', async () => {
    const { jobs, registry, started } = await startApp();
    jobs.add({ name: 'mine', cron: YEARLY, timeZone: 'Asia/Tokyo' }, nothing);
    jobs.reschedule('mine', '0 30 6 * * *');
    expect(registry.getCronJob('mine').nextDate().toUTC().toFormat('HH:mm')).toBe('21:30');
    expect(registry.getCronJob('mine').isActive).toBe(true);
    expect(() => jobs.reschedule('mine', '0 0 30 2 *')).toThrow(InvalidLockOptionsError);
    expect(() => jobs.reschedule('mine', 'noon')).toThrow(
      'cron of SingletonJobs.reschedule("mine") cannot be scheduled: "noon"',
    );
    expect(registry.getCronJob('mine').nextDate().toUTC().toFormat('HH:mm')).toBe('21:30');
    jobs.reschedule('mine', '* * * * * *');
    await eventually(() => expect(started().length).toBeGreaterThan(0));
    jobs.reschedule('declared', '0 0 1 * *');
    expect(registry.getCronJob('declared').cronTime.source).toBe('0 0 1 * *');
  });

  const job = (changes: object): AddedJob => ({ name: 'mine', ...changes }) as AddedJob;

  it.each([
    [{ cron: '* * 99 * *' }, 'cron', '"* * 99 * *". The package cron reports: "Field value (99) is out of range"'],
    [{ cron: 'noon' }, 'cron', '"noon". The package cron reports: "Unknown alias: noo"'],
    [{ cron: '0 0 30 2 *' }, 'cron', 'No execution date was found'],
    [{ cron: 5 }, 'cron', 'cron of SingletonJobs.add({ name: "mine" }) cannot be scheduled: 5'],
    [{ cron: null }, 'cron', 'cannot be scheduled: null'],
    [{ cron: YEARLY, timeZone: 'Mars/Olympus' }, 'timeZone', 'Invalid timezone'],
    [{ cron: YEARLY, timeZone: 'Asia/Tokyo', utcOffset: 60 }, 'timeZone', 'timeZone'],
    [{ at: new Date(NaN) }, 'at', 'must be a valid Date'],
    [{ at: '2030-01-01' }, 'at', 'must be a valid Date'],
    [{ at: new Date(0) }, 'at', 'is in the past: 1970-01-01T00:00:00.000Z'],
    [{ intervalMs: 99 }, 'intervalMs', 'intervalMs must be an integer from 100 to 2147483647'],
    [{ intervalMs: 1_000, jitterMs: 501 }, 'jitterMs', 'jitterMs must be at most half of intervalMs: 500, not 501'],
    [{ intervalMs: 1_000, onCrash: 'retry' }, 'onCrash', 'has no option "onCrash"'],
    [
      { intervalMs: 1_000, cron: YEARLY },
      'intervalMs',
      'needs one of cron, intervalMs and at, and has cron and intervalMs',
    ],
    [{}, 'cron', 'needs one of cron, intervalMs and at, and has none of them'],
    [{ name: '', cron: YEARLY }, 'name', 'name must be 1 to 200 characters'],
    [{ name: undefined, cron: YEARLY }, 'name', 'name must be 1 to 200 characters'],
    [{ cron: YEARLY, overlap: 'never' }, 'overlap', 'overlap must be one of'],
    [{ cron: YEARLY, service: 'billing' }, 'service', 'has no option "service"'],
  ])('is refused with %p, and nothing is left of it', async (changes, option, message) => {
    const { jobs, registry } = await startApp();
    let error: unknown;
    try {
      jobs.add(job(changes), nothing);
    } catch (thrown) {
      error = thrown;
    }
    expect(error).toBeInstanceOf(InvalidLockOptionsError);
    expect((error as Error).message).toContain(message);
    expect(error).toMatchObject({ option });
    expect([...registry.getCronJobs().keys(), ...registry.getIntervals()]).toEqual(['declared']);
    jobs.add({ name: 'mine', cron: YEARLY }, nothing);
  });

  it('must have a unique name, and a work', async () => {
    const { jobs, registry } = await startApp();
    jobs.add({ name: 'mine', cron: YEARLY }, nothing);
    const timer = setInterval(nothing, 60_000);
    registry.addInterval('of-the-application', timer);
    expect(() => jobs.add({ name: 'mine', intervalMs: 1_000 }, nothing)).toThrow(
      'A job called "mine" was added already.',
    );
    expect(() => jobs.add({ name: 'declared', cron: YEARLY }, nothing)).toThrow(
      'A job called "declared" is declared by a decorator on Declared.declared.',
    );
    expect(() => jobs.add({ name: 'of-the-application', cron: YEARLY }, nothing)).toThrow(
      'is in the SchedulerRegistry already, as interval',
    );
    expect(() => jobs.add({ name: 'idle', cron: YEARLY }, undefined as never)).toThrow('work of SingletonJobs.add');
    expect(() => jobs.add(undefined as never, nothing)).toThrow('SingletonJobs.add must be an object');
    expect(registry.getIntervals()).toEqual(['of-the-application']);
    expect([...registry.getCronJobs().keys()]).toEqual(['declared', 'mine']);
  });

  it('is removed only if it was added', async () => {
    const { jobs } = await startApp();
    jobs.add({ name: 'mine', cron: YEARLY }, nothing);
    expect(() => jobs.remove('mien')).toThrow('This instance has no job called "mien". Did you mean "mine"?');
    expect(() => jobs.remove('declared')).toThrow('is declared by a decorator on Declared.declared');
    expect(() => jobs.reschedule('mien', YEARLY)).toThrow(JobNotFoundError);
    jobs.remove('mine');
    expect(() => jobs.remove('mine')).toThrow(JobNotFoundError);
    jobs.add({ name: 'poll', intervalMs: 60_000 }, nothing);
    expect(() => jobs.reschedule('poll', YEARLY)).toThrow('has no cron expression in the SchedulerRegistry');
  });

  it('can be added from onApplicationBootstrap() on, and until the shutdown', async () => {
    @Injectable()
    class Starting implements OnModuleInit, OnApplicationBootstrap {
      readonly errors: unknown[] = [];

      constructor(readonly jobs: SingletonJobs) {
        this.#add('constructor');
      }

      onModuleInit(): void {
        this.#add('onModuleInit');
      }

      onApplicationBootstrap(): void {
        this.#add('onApplicationBootstrap');
      }

      #add(name: string): void {
        try {
          this.jobs.add({ name, cron: YEARLY }, nothing);
        } catch (error) {
          this.errors.push(error);
        }
      }
    }
    const { app, jobs, registry } = await startApp({ providers: [Starting] as never[] });
    const { errors } = app.get(Starting);
    expect(errors).toHaveLength(2);
    for (const error of errors) {
      expect(error).toBeInstanceOf(InvalidLockOptionsError);
      expect((error as Error).message).toContain('Call it in onApplicationBootstrap() or later.');
    }
    expect([...registry.getCronJobs().keys()]).toEqual(['onApplicationBootstrap']);
    await app.close();
    expect([...registry.getCronJobs().keys()]).toEqual([]);
    expect(() => jobs.add({ name: 'late', cron: YEARLY }, nothing)).toThrow(LockShutdownError);
    expect(() => jobs.remove('onApplicationBootstrap')).toThrow(LockShutdownError);
    expect([...registry.getCronJobs().keys()]).toEqual([]);
  });

  it('needs the ScheduleModule', async () => {
    const { app } = await start({ imports: [inMemory()] });
    expect(() => app.get(SingletonJobs).add({ name: 'mine', cron: YEARLY }, nothing)).toThrow(
      'Import ScheduleModule.forRoot() of @nestjs/schedule in the root module.',
    );
  });
});

const READERS = ['list', 'get', 'history', 'pause', 'resume'] as const;

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
        new RegExp(`^SingletonJobs\\.${READERS[index]} was called before the application had started\\.`),
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
    [{ tz: 'UTC' }, 'tz', /has no option "tz"\. Known options: /],
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
      'This instance has no code for the job "mine": the job belongs to another application, or was removed here. ' +
        'No other instance has it now.',
    );
    expect(error).toMatchObject({ instances: [] });
    expect((await jobs.get('mine')).instances).toEqual([]);
    expect(await app.get(RedisLockService).inspect('cron:mine')).toMatchObject({ holders: [] });
  });
});

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
      'This instance has no code for the job "nightly-report": the job belongs to another application, or was removed here. ' +
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

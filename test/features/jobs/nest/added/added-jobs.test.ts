import { Injectable, type OnApplicationBootstrap, type OnModuleInit } from '@nestjs/common';
import { ScheduleModule, SchedulerRegistry } from '@nestjs/schedule';
import {
  InvalidLockOptionsError,
  LockBusyError,
  type LockEvent,
  LockShutdownError,
  RedisLockService,
} from 'nestjs-redis-lock';
import {
  JobNotFoundError,
  type AddedJob,
  SingletonCron,
  SingletonJobs,
  type SingletonRun,
} from 'nestjs-redis-lock/schedule';
import { eventually } from '../../../../support/expect/eventually.js';
import { gate } from '../../../../support/expect/tracked.js';
import { useRedis } from '../../../../support/redis/redis-server.js';
import { inMemory, useApps } from '../../../../nest/nest-apps.js';

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
    [{ cron: '* * 99 * *' }, 'cron', '"* * 99 * *". The package cron says: "Field value (99) is out of range"'],
    [{ cron: 'noon' }, 'cron', '"noon". The package cron says: "Unknown alias: noo"'],
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
    [{ intervalMs: 1_000, onCrash: 'retry' }, 'onCrash', 'does not know the option "onCrash"'],
    [
      { intervalMs: 1_000, cron: YEARLY },
      'intervalMs',
      'needs one of cron, intervalMs and at, and has cron and intervalMs',
    ],
    [{}, 'cron', 'needs one of cron, intervalMs and at, and has none of them'],
    [{ name: '', cron: YEARLY }, 'name', 'name must be 1 to 200 characters'],
    [{ name: undefined, cron: YEARLY }, 'name', 'name must be 1 to 200 characters'],
    [{ cron: YEARLY, overlap: 'never' }, 'overlap', 'overlap must be one of'],
    [{ cron: YEARLY, service: 'billing' }, 'service', 'does not know the option "service"'],
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

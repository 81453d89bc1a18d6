import { Injectable, Scope, SetMetadata } from '@nestjs/common';
import { ScheduleModule } from '@nestjs/schedule';
import { Redis } from 'ioredis';
import {
  InvalidLockOptionsError,
  LockBusyError,
  type LockEvent,
  LockShutdownError,
  RedisLockModule,
  RedisLockService,
} from 'nestjs-redis-lock';
import {
  JobNotFoundError,
  SingletonCron,
  SingletonInterval,
  SingletonJobs,
  type SingletonRun,
} from 'nestjs-redis-lock/schedule';
import type { MissedTicks } from '../../../../../lib/features/jobs/core/missed-ticks.js';
import type { Watched } from '../../../../../lib/features/jobs/core/watched-job.js';
import { watchJob } from '../../../../../lib/features/jobs/nest/run-job.js';
import { resolveJobOptions, TICK_OPTIONS } from '../../../../../lib/features/jobs/nest/singleton-options.js';
import { keepParts, type ServiceParts } from '../../../../../lib/nest/service-parts.js';
import { inMemory, useApps } from '../../../../nest/nest-apps.js';
import { eventually } from '../../../../support/expect/eventually.js';
import { gate } from '../../../../support/expect/tracked.js';
import { useRedis } from '../../../../support/redis/redis-server.js';

const HOUR = 60 * 60 * 1000;
/** Of a job that does not fire while a test runs: half an hour from now. */
const hourly = `0 ${(new Date().getUTCMinutes() + 30) % 60} * * * *`;

type MissedEvent = Extract<LockEvent, { type: 'tickMissed' }>;

describe('a @SingletonCron whose ticks were missed', () => {
  const redis = useRedis();
  const start = useApps();
  let keyPrefix: string;
  let prefixes = 0;
  let instances = 0;
  let events: LockEvent[];
  let runs: SingletonRun[];

  beforeEach(() => {
    keyPrefix = `missed-${++prefixes}`;
    events = [];
    runs = [];
  });

  function missed(): MissedEvent[] {
    return events.filter((event): event is MissedEvent => event.type === 'tickMissed');
  }

  async function startApp(options: object = {}, cronTime = hourly) {
    class Jobs {
      @SingletonCron(cronTime, { name: 'job', timeZone: 'UTC', ...options })
      async run(run: SingletonRun): Promise<void> {
        runs.push(run);
      }
    }
    const observers = [(event: LockEvent) => void events.push(event)];
    return start({
      imports: [
        ScheduleModule.forRoot(),
        // An attempt that is not answered within a second, on a busy machine, would be warned of, too.
        inMemory({
          connection: redis().url,
          keyPrefix,
          observers,
          instanceId: `app-${++instances}`,
          attemptTimeoutMs: 20_000,
        }),
      ],
      providers: [Jobs],
    });
  }

  /** Simulates a downtime of all instances, after a shutdown or a kill. */
  async function wentDownBefore(ms: number, end: () => Promise<unknown>, isKilled = false): Promise<void> {
    const client = new Redis(redis().url);
    const key = (kind: string): string => `${keyPrefix}:{cron:job}:${kind}`;
    await eventually(async () => expect(await client.exists(key('last-tick'))).toBe(1));
    await end();
    const since = Date.now() - ms;
    await client.set(key('last-tick'), since, 'KEEPTTL');
    expect(await client.zcard(key('instances'))).toBe(0);
    expect(Number(await client.hget(key('job'), 'down'))).toBeGreaterThan(since);
    if (isKilled) await client.hdel(key('job'), 'down');
    else await client.hset(key('job'), 'down', since);
    client.disconnect();
  }

  async function wasDownFor(ms: number, options: object = {}, isKilled = false): Promise<void> {
    const { app } = await startApp(options);
    await wentDownBefore(ms, () => app.close(), isKilled);
    events.length = 0;
  }

  it('reports them once, and catches up with one run, if ten instances start at the same moment', async () => {
    const options = { onMissed: 'runOnce' };
    await wasDownFor(3 * HOUR, options, true);
    const apps = await Promise.all(Array.from({ length: 10 }, () => startApp(options)));
    await eventually(() => expect(runs).toHaveLength(1));
    const client = new Redis(redis().url);
    // All of them have looked.
    await eventually(async () => expect(await client.zcard(`${keyPrefix}:{cron:job}:instances`)).toBe(10));
    client.disconnect();
    await eventually(() => expect(missed()).toHaveLength(1));
    await Promise.all(apps.map(({ app }) => app.close()));
    expect(missed()).toMatchObject([{ job: 'job', count: 3, catchUp: true }]);
    expect(missed()[0]!.ticks).toHaveLength(3);
    expect(runs).toMatchObject([{ job: 'job', rerun: false, manual: false, missed: { count: 3 } }]);
    expect(runs[0]!.missed!.last).toBe(missed()[0]!.last);
    expect(events.find(({ type }) => type === 'tickStarted')).toMatchObject({ catchUp: true });
    const lines = apps.flatMap(({ log }) => log.at('log')).filter((line) => line.includes(' missed: '));
    expect(lines).toHaveLength(1);
    expect(lines[0]).toMatch(/^3 ticks of job "job" were missed: .* UTC\. .* One catch-up run follows\. See docs/);
  });

  it('catches up if the job was added while the application runs, until it is removed', async () => {
    const add = async (options: object) => {
      const observers = [(event: LockEvent) => void events.push(event)];
      const imports = [ScheduleModule.forRoot(), inMemory({ connection: redis().url, keyPrefix, observers })];
      const { app } = await start({ imports });
      const jobs = app.get(SingletonJobs);
      jobs.add({ name: 'job', cron: hourly, timeZone: 'UTC', ...options }, (run) => void runs.push(run));
      return { app, jobs };
    };
    const { app } = await add({});
    await wentDownBefore(5 * HOUR, () => app.close());
    const { jobs } = await add({ onMissed: 'runOnce' });
    await eventually(() => expect(runs).toMatchObject([{ job: 'job', missed: { count: 5 } }]));
    expect(missed()).toMatchObject([{ job: 'job', count: 5, catchUp: true }]);
    jobs.remove('job');
  });

  it('only reports them, by default', async () => {
    await wasDownFor(2 * HOUR, {}, true);
    await startApp();
    await eventually(() => expect(missed()).toMatchObject([{ count: 2, catchUp: false }]));
    expect(missed()[0]).not.toHaveProperty('afterStop');
    expect(runs).toEqual([]);
  });
});

describe('a job that is watched', () => {
  it.each([
    ['a cron job is given its grace after the longest random delay', 300_000, () => undefined, 360_000],
    ['the ticks of an interval are never missed', 0, undefined, Infinity],
  ])('%s', (_, jitterMs, schedule, graceMs) => {
    const added: Watched['job'][] = [];
    const missed = { add: (job: Watched['job']) => added.push(job) } as unknown as MissedTicks;
    const options = resolveJobOptions({ jitterMs }, 'Jobs.run', TICK_OPTIONS);
    const service = {} as RedisLockService;
    keepParts(service, { jobs: { missed } } as unknown as ServiceParts);
    watchJob(service, { name: 'job', options, schedule, tickAt: undefined as never, run: undefined as never });
    expect(added).toMatchObject([{ job: 'job', graceMs, historySize: 100, onMissed: 'skip' }]);
  });
});

describe('the options for missed ticks', () => {
  const start = useApps();

  it.each([
    ['a graceMs of no time', { graceMs: 0 }, 'graceMs'],
    ['a graceMs of more than a day', { graceMs: 86_400_001 }, 'graceMs'],
    ['another word', { onMissed: 'run' }, 'onMissed'],
    ['a time of nothing', { onMissed: 'runOnce', catchUpWindowMs: 0 }, 'catchUpWindowMs'],
    ['a time for a run that there is not', { catchUpWindowMs: 60_000 }, 'catchUpWindowMs'],
    ['reruns that there are not', { maxReruns: 2 }, 'maxReruns'],
  ])('are refused when the class is defined: %s', (_, options, option) => {
    const define = () => {
      class Jobs {
        @SingletonCron(hourly, { name: 'job', ...(options as object) })
        async run(): Promise<void> {}
      }
      return Jobs;
    };
    expect(define).toThrow(InvalidLockOptionsError);
    expect(define).toThrow(expect.objectContaining({ option }) as Error);
  });

  it('are refused for a job on a date, and for an interval', () => {
    const onDate = () => {
      class Jobs {
        @SingletonCron(new Date(Date.now() + HOUR), { name: 'job', onMissed: 'runOnce' })
        async run(): Promise<void> {}
      }
      return Jobs;
    };
    const onInterval = () => {
      class Jobs {
        @SingletonInterval(1_000, { name: 'job', ...({ onMissed: 'skip' } as object) })
        async run(): Promise<void> {}
      }
      return Jobs;
    };
    expect(onDate).toThrow(/needs a cron expression/);
    expect(onInterval).toThrow(/onMissed/);
  });

  it("onMissed: 'runOnce' on a quorum is refused when the application starts", async () => {
    class Jobs {
      @SingletonCron(hourly, { name: 'job', onMissed: 'runOnce' })
      async run(): Promise<void> {}
    }
    const unreachable = ['redis://127.0.0.1:1', 'redis://127.0.0.1:2', 'redis://127.0.0.1:3'];
    const quorum = unreachable;
    const imports = [
      ScheduleModule.forRoot(),
      RedisLockModule.forRoot({ quorum: { connections: quorum }, attemptTimeoutMs: 100 }),
    ];
    await expect(start({ imports, providers: [Jobs] })).rejects.toThrow(
      /"job" \(Jobs\.run\).*a quorum keeps no records/,
    );
  });
});

const YEARLY = '0 0 0 1 1 *';

/** A decorator that replaces the method, as tracers do. */
function wrapped(calls: string[]): MethodDecorator {
  return (_target, key, descriptor: PropertyDescriptor) => {
    const original = descriptor.value as (...args: unknown[]) => unknown;
    const replacement = function (this: object) {
      calls.push(String(key));
      return original.call(this);
    };
    for (const each of Reflect.getMetadataKeys(original)) {
      Reflect.defineMetadata(each, Reflect.getMetadata(each, original), replacement);
    }
    descriptor.value = replacement;
  };
}

describe('SingletonJobs.runNow', () => {
  const start = useApps();
  const runs: SingletonRun[] = [];
  const above: string[] = [];
  let end = gate();

  @Injectable()
  class Reports {
    @wrapped(above)
    @SingletonCron(YEARLY, { name: 'nightly-report', onCrash: 'retry' })
    async nightly(run: SingletonRun): Promise<string | undefined> {
      runs.push(run);
      await end.opened;
      return `report by ${this.constructor.name}`;
    }

    @SingletonCron(YEARLY, { name: 'patient', overlap: 'wait' })
    async patient(run: SingletonRun): Promise<void> {
      runs.push(run);
      await end.opened;
    }

    @SingletonInterval(3_600_000)
    async poll(run: SingletonRun): Promise<void> {
      runs.push(run);
    }

    @SingletonCron(YEARLY, { name: 'broken' })
    @SetMetadata('any', 'thing')
    async broken(): Promise<void> {
      throw new TypeError('no toner');
    }

    /** Calls itself by hand: that is no manual run. */
    @SingletonCron(YEARLY, { name: 'nested' })
    async nested(run: SingletonRun): Promise<void> {
      runs.push(run);
      await this.poll(run);
    }
  }

  beforeEach(() => {
    runs.length = 0;
    above.length = 0;
    end = gate();
    end.open();
  });

  async function startApp(extra: { providers?: (new (...args: never[]) => object)[] } = {}) {
    const events: LockEvent[] = [];
    const { app, log } = await start({
      imports: [ScheduleModule.forRoot(), inMemory({ observers: [(event) => void events.push(event)] })],
      providers: [Reports, ...(extra.providers ?? [])],
    });
    return { app, jobs: app.get(SingletonJobs), events, log };
  }

  it('runs a decorated job here, through all its decorators, under its lock, and returns its result', async () => {
    const { app, jobs, events } = await startApp();
    end = gate();
    const call = jobs.runNow('nightly-report', { by: 'ann' });
    await eventually(() => expect(runs).toHaveLength(1));
    expect((await app.get(RedisLockService).inspect('cron:nightly-report')).holders).toHaveLength(1);
    end.open();
    expect(await call).toBe('report by Reports');
    expect(above).toEqual(['nightly']);
    expect(runs).toMatchObject([{ job: 'nightly-report', manual: true, rerun: false }]);
    expect(runs[0]!.tick).toMatch(/^manual:\d{4}-.*Z:[0-9a-f]{8} by ann$/);
    const ticks = events.filter(({ type }) => type.startsWith('tick'));
    expect(ticks).toMatchObject([
      { type: 'tickStarted', manual: true, group: 'nightly-report' },
      { type: 'tickFinished', manual: true, outcome: 'ok' },
    ]);
  });

  it('records who has requested it, and why, like pause and resume', async () => {
    const { app, jobs, events, log } = await startApp();
    const why = { by: 'ann', reason: 'of the audit' };
    await jobs.pause('Reports.poll', why);
    await jobs.resume('Reports.poll', why);
    await jobs.runNow('Reports.poll', why);
    expect(events.filter(({ type }) => type === 'jobCommand')).toMatchObject(
      ['pause', 'resume', 'runNow'].map((command) => ({ command, job: 'Reports.poll', group: 'Reports.poll', ...why })),
    );
    const asked = 'Requested by "ann". Reason: "of the audit". See docs/operations/logs.md#an-operator-acts.';
    expect(log.at('warn')).toContain(`The job "Reports.poll" is paused for the whole fleet until resume(). ${asked}`);
    expect(log.at('log')).toContain(`The job "Reports.poll" is no longer paused. ${asked}`);
    expect(log.at('log')).toContain(`The job "Reports.poll" runs now, on this instance. ${asked}`);

    const locks = app.get(RedisLockService);
    const { fencingToken } = await locks.acquire('order:7');
    await locks.forceRelease('order:7', { fencingToken, ...why });
    expect(log.at('warn').at(-1)).toMatch(/^forceRelease\(\) has ended the lease of "order:7" \(token \d+\), held by /);
    expect(log.at('warn').at(-1)).toContain(`. Requested by "ann". Reason: "of the audit". The work of the holder`);
  });

  it('runs as often as requested, and takes no tick of the schedule', async () => {
    const { app, jobs } = await startApp();
    await jobs.runNow('Reports.poll');
    await jobs.runNow('Reports.poll');
    await app.get(Reports).poll(undefined as never);
    await app.get(Reports).poll(undefined as never);
    expect(runs.map(({ manual, tick }) => [manual, tick.split(':')[0]])).toEqual([
      [true, 'manual'],
      [true, 'manual'],
      [false, 'interval'],
    ]);
  });

  it('applies to the named job, and not to jobs that this one calls', async () => {
    const { jobs } = await startApp();
    await jobs.runNow('nested');
    expect(runs.map(({ job, manual }) => [job, manual])).toEqual([
      ['nested', true],
      ['Reports.poll', false],
    ]);
  });

  it('is refused while the job runs, or waits if overlap allows it', async () => {
    const { jobs } = await startApp();
    end = gate();
    const first = jobs.runNow('nightly-report');
    const patient = [jobs.runNow('patient'), jobs.runNow('patient')];
    await expect(jobs.runNow('nightly-report')).rejects.toThrow(LockBusyError);
    end.open();
    await Promise.all([first, ...patient]);
    expect(runs.map(({ job }) => job).sort()).toEqual(['nightly-report', 'patient', 'patient']);
  });

  it.each([
    ['the name', '', undefined, 'a singleton job as its name'],
    ['the name', 5 as never, undefined, 'a singleton job as its name'],
    ['by', 'broken', { by: '' }, 'by must be 1 to 100 characters'],
    ['an option', 'broken', { bye: 'ann' } as never, 'Did you mean by?'],
    ['options', 'broken', 'ann' as never, 'runNow must be an object'],
  ])('refuses an invalid %s: %p, %p', async (_what, name, options, message) => {
    const { jobs } = await startApp();
    const error = await jobs.runNow(name, options).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(InvalidLockOptionsError);
    expect((error as Error).message).toContain(message);
    expect(runs).toEqual([]);
  });

  it('is refused before the start and after the shutdown', async () => {
    let early: unknown;
    @Injectable()
    class TooEarly {
      constructor(jobs: SingletonJobs) {
        jobs.runNow('broken').catch((error: unknown) => (early = error));
      }
    }
    const { app, jobs } = await startApp({ providers: [TooEarly] });
    expect(early).toBeInstanceOf(InvalidLockOptionsError);
    expect((early as Error).message).toContain('before the application had started');
    await app.close();
    await expect(jobs.runNow('broken')).rejects.toThrow(LockShutdownError);
  });

  it('knows no job of a request-scoped provider, which is never scheduled', async () => {
    @Injectable({ scope: Scope.REQUEST })
    class Scoped {
      @SingletonCron(YEARLY, { name: 'scoped' })
      async run(): Promise<void> {}
    }
    const { jobs } = await startApp({ providers: [Scoped] });
    await expect(jobs.runNow('scoped')).rejects.toThrow(JobNotFoundError);
  });

  it('does not run a job whose decorator was replaced by another one above', async () => {
    class Replaced {
      @((_target: object, _key: string | symbol, descriptor: PropertyDescriptor) => {
        descriptor.value = async () => {};
      })
      @SingletonCron(YEARLY, { name: 'replaced' })
      async run(): Promise<void> {}
    }
    const { jobs } = await startApp({ providers: [Replaced] });
    // Without its metadata, it is no job.
    await expect(jobs.runNow('replaced')).rejects.toThrow(JobNotFoundError);
  });
});

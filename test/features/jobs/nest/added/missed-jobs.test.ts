import type { Watched } from '../../../../../lib/features/jobs/core/watched-job.js';
import { InvalidLockOptionsError, type LockEvent, RedisLockModule, type RedisLockService } from 'nestjs-redis-lock';
import { ScheduleModule } from '@nestjs/schedule';
import { SingletonCron, SingletonInterval, SingletonJobs, type SingletonRun } from 'nestjs-redis-lock/schedule';
import { Redis } from 'ioredis';
import type { MissedTicks } from '../../../../../lib/features/jobs/core/missed-ticks.js';
import { watchJob } from '../../../../../lib/features/jobs/nest/run-job.js';
import { resolveJobOptions, TICK_OPTIONS } from '../../../../../lib/features/jobs/nest/singleton-options.js';
import { keepParts, type ServiceParts } from '../../../../../lib/nest/service-parts.js';
import { eventually } from '../../../../support/expect/eventually.js';
import { useRedis } from '../../../../support/redis/redis-server.js';
import { inMemory, useApps } from '../../../../nest/nest-apps.js';

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
    const lines = apps.flatMap(({ log }) => log.at('log')).filter((line) => line.includes('missed of job'));
    expect(lines).toHaveLength(1);
    expect(lines[0]).toMatch(
      /^3 ticks were missed of job "job": .* UTC\. .* One run for all of them follows\. See docs/,
    );
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

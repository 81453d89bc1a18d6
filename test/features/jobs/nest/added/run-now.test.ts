import { Injectable, Scope, SetMetadata } from '@nestjs/common';
import { ScheduleModule } from '@nestjs/schedule';
import {
  InvalidLockOptionsError,
  LockBusyError,
  type LockEvent,
  LockShutdownError,
  RedisLockService,
} from 'nestjs-redis-lock';
import {
  JobNotFoundError,
  SingletonCron,
  SingletonInterval,
  SingletonJobs,
  type SingletonRun,
} from 'nestjs-redis-lock/schedule';
import { eventually } from '../../../../support/expect/eventually.js';
import { gate } from '../../../../support/expect/tracked.js';
import { inMemory, useApps } from '../../../../nest/nest-apps.js';

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
    const asked = 'Asked for by "ann". Reason: "of the audit". See docs/operations/logs.md#an-operator-acts.';
    expect(log.at('warn')).toContain(`The job "Reports.poll" is paused for the whole fleet until resume(). ${asked}`);
    expect(log.at('log')).toContain(`The job "Reports.poll" is no longer paused. ${asked}`);
    expect(log.at('log')).toContain(`The job "Reports.poll" runs now, on this instance. ${asked}`);

    const locks = app.get(RedisLockService);
    const { fencingToken } = await locks.acquire('order:7');
    await locks.forceRelease('order:7', { fencingToken, ...why });
    expect(log.at('warn').at(-1)).toMatch(/^forceRelease\(\) has ended the lease of "order:7" \(token \d+\), held by /);
    expect(log.at('warn').at(-1)).toContain(`. Asked for by "ann". Reason: "of the audit". The work of its holder`);
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
    expect((early as Error).message).toContain('before the application has started');
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

import { Injectable } from '@nestjs/common';
import { ScheduleModule } from '@nestjs/schedule';
import { Test, type TestingModule } from '@nestjs/testing';
import {
  SingletonCron,
  SingletonInterval,
  SingletonJobs,
  type SingletonRun,
  SingletonTimeout,
} from 'nestjs-redis-lock/schedule';
import { RedisLockTestingModule, testLocks } from 'nestjs-redis-lock/testing';
import type { TestClock } from '../../../../lib/testing/fleet/test-fleet.js';

/** Counts the calls of a method, and lets them pass. */
function counted(calls: string[]): MethodDecorator {
  return (_target, key, descriptor: PropertyDescriptor) => {
    const { value } = descriptor as { value: (...args: unknown[]) => unknown };
    const wrapped = function (this: object, ...args: unknown[]): unknown {
      calls.push(String(key));
      return value.apply(this, args);
    };
    for (const each of Reflect.getMetadataKeys(value)) {
      Reflect.defineMetadata(each, Reflect.getMetadata(each, value), wrapped);
    }
    descriptor.value = wrapped;
  };
}

const calls: string[] = [];

@Injectable()
class Reports {
  readonly runs: SingletonRun[] = [];
  gate: Promise<void> | undefined;

  @counted(calls)
  @SingletonCron('0 0 3 * * *', { name: 'nightly', timeZone: 'UTC' })
  async nightly(run: SingletonRun): Promise<string | undefined> {
    this.runs.push(run);
    await this.gate;
    return `nightly ${run.tick}`;
  }

  @SingletonCron('0 0 4 * * *', { name: 'retried', timeZone: 'UTC', onCrash: 'retry' })
  async retried(run: SingletonRun): Promise<number | undefined> {
    this.runs.push(run);
    return run.attempt;
  }

  @SingletonCron('0 0 5 * * *', { name: 'failing', timeZone: 'UTC' })
  async failing(): Promise<void> {
    throw new RangeError('no paper');
  }

  @SingletonCron('0 30 * * * *', { name: 'caughtUp', timeZone: 'UTC', onMissed: 'runOnce', graceMs: 60_000 })
  async caughtUp(run: SingletonRun): Promise<void> {
    this.runs.push(run);
  }

  @SingletonInterval('poll', 600_000)
  async poll(run: SingletonRun): Promise<void> {
    this.runs.push(run);
  }

  @SingletonTimeout('warm', 2_000_000)
  async warm(run: SingletonRun): Promise<string | undefined> {
    this.runs.push(run);
    return 'warm';
  }
}

const HOUR_MS = 3_600_000;

const started: TestingModule[] = [];
beforeEach(() => {
  calls.length = 0;
});
afterEach(async () => {
  await Promise.all(started.splice(0).map((module) => module.close()));
});

/** A date at which no timer of the machine fires a job. */
const BEGIN = new Date('2031-05-05T12:00:00.200Z');

async function start(clock: TestClock = 'manual'): Promise<TestingModule> {
  const time = clock === 'manual' ? { clock, startsAt: BEGIN } : { clock };
  const locks = RedisLockTestingModule.forRoot({ fleet: 'jobs', ...time });
  const imports = [ScheduleModule.forRoot(), locks];
  const module = await Test.createTestingModule({ imports, providers: [Reports] }).compile();
  started.push(module);
  return module.init();
}

const runsOf = (modules: TestingModule[]): SingletonRun[] => modules.flatMap((module) => module.get(Reports).runs);

describe.each(['manual', 'real'] as const)('jobs.tick, with the %s clock', (clock) => {
  it.each(['nightly', 'retried', 'poll', 'warm'])('runs each tick of %s on one application', async (name) => {
    const modules = [await start(clock), await start(clock), await start(clock)];
    const { jobs } = testLocks(modules[1]!);
    const ticks = new Set<string>();
    for (let number = 1; number <= 20; number++) {
      const { tick, ranOn, skipped } = await jobs.tick(name);
      ticks.add(tick);
      expect(runsOf(modules)).toHaveLength(number);
      expect(ranOn).toMatch(/^app-[123]$/);
      expect(skipped).toHaveLength(2);
      expect(skipped.map(({ instanceId: instance }) => instance)).not.toContain(ranOn);
    }
    expect(ticks.size).toBe(20);
    expect(new Set(runsOf(modules).map(({ tick }) => tick))).toEqual(ticks);
  });
});

describe('jobs.tick', () => {
  it('fires the times of the schedule, one after the other, and reports the outcome of each application', async () => {
    const modules = [await start(), await start()];
    const { jobs } = testLocks(modules[0]!);
    const tick = '2031-05-06T03:00:00.000Z';
    const skipped = [{ instanceId: 'app-2', reason: 'claimed' }];
    expect(await jobs.tick('nightly')).toEqual({ tick, ranOn: 'app-1', result: `nightly ${tick}`, skipped });
    expect(await jobs.tick('nightly')).toMatchObject({ tick: '2031-05-07T03:00:00.000Z' });
    expect(calls).toEqual(['nightly', 'nightly', 'nightly', 'nightly']);
    const history = await modules[1]!.get(SingletonJobs).history('nightly');
    expect(history.map(({ tick, outcome, manual }) => ({ tick, outcome, manual }))).toEqual([
      { tick: '2031-05-07T03:00:00.000Z', outcome: 'ok', manual: false },
      { tick: '2031-05-06T03:00:00.000Z', outcome: 'ok', manual: false },
    ]);
  });

  it('runs none while the job is paused, or an earlier run has not ended', async () => {
    const modules = [await start(), await start()];
    const { jobs } = testLocks(modules[0]!);
    const operator = modules[1]!.get(SingletonJobs);
    await operator.pause('nightly');
    const paused = await jobs.tick('nightly');
    expect(paused.ranOn).toBeUndefined();
    expect(paused.skipped.map(({ reason }) => reason)).toContain('paused');
    await expect(jobs.run('nightly')).rejects.toMatchObject({ code: 'notRun', message: /is paused/ });
    await operator.resume('nightly');
    let open = (): void => {};
    modules[0]!.get(Reports).gate = new Promise((resolve) => (open = resolve));
    const running = jobs.run('nightly');
    await testLocks(modules[0]!).idle();
    const second = await jobs.tick('nightly');
    expect(second.ranOn).toBeUndefined();
    expect(second.skipped.map(({ reason }) => reason)).toContain('overlap');
    open();
    await running;
    expect(await jobs.tick('nightly')).toMatchObject({ ranOn: 'app-1' });
  });

  it('accounts the tick: it is not missed when its time has passed, and the next one is', async () => {
    const module = await start();
    const locks = testLocks(module);
    await locks.advance(60_000);
    const { tick } = await locks.jobs.tick('caughtUp');
    const history = async () => (await module.get(SingletonJobs).history('caughtUp')).map(({ outcome }) => outcome);
    await locks.advance(Date.parse(tick) - BEGIN.getTime() + HOUR_MS / 4);
    expect(await history()).toEqual(['ok']);
    await locks.advance(HOUR_MS);
    expect(await history()).toEqual(['ok', 'missed', 'ok']);
  });

  it('lets another application stand by for one that may die', async () => {
    const modules = [await start(), await start()];
    const { skipped } = await testLocks(modules[0]!).jobs.tick('retried');
    expect(skipped).toEqual([{ instanceId: 'app-2', reason: 'standsBy' }]);
    await testLocks(modules[0]!).advance(120_000);
    expect(runsOf(modules)).toHaveLength(1);
  });

  it('fails with the error of the job', async () => {
    const modules = [await start(), await start()];
    await expect(testLocks(modules[0]!).jobs.tick('failing')).rejects.toThrow(new RangeError('no paper'));
  });
});

describe('jobs.run', () => {
  it('resolves to the result of the method, even undefined, and runs the next tick each time', async () => {
    const module = await start();
    const { jobs } = testLocks(module);
    expect(await jobs.run('nightly')).toBe('nightly 2031-05-06T03:00:00.000Z');
    expect(await jobs.run('nightly')).toBe('nightly 2031-05-07T03:00:00.000Z');
    expect(await jobs.run('poll')).toBeUndefined();
    expect(runsOf([module])).toHaveLength(3);
    expect(calls).toEqual(['nightly', 'nightly']);
    await expect(jobs.run('failing')).rejects.toThrow(new RangeError('no paper'));
  });

  it('refuses a tick that has run, on any application', async () => {
    const modules = [await start(), await start()];
    const { jobs } = testLocks(modules[0]!);
    const tick = '2026-03-01T03:00:00.000Z';
    await jobs.run('nightly', { tick });
    for (const as of [modules[0]!, 'app-2', modules[1]!]) {
      await expect(jobs.run('nightly', { tick, as })).rejects.toMatchObject({
        name: 'TestKitError',
        code: 'notRun',
        message: /has run already.*Leave tick out/,
      });
    }
    expect(runsOf(modules)).toHaveLength(1);
    await jobs.run('nightly', { as: 'app-2' });
    expect(runsOf([modules[1]!])).toHaveLength(1);
  });

  it('runs a tick as after a crash, if the job is retried', async () => {
    const module = await start();
    const { jobs } = testLocks(module);
    const tick = '2031-05-06T04:00:00.000Z';
    expect(await jobs.run('retried', { tick, attempt: 3 })).toBe(3);
    expect(await jobs.run('retried')).toBe(1);
    await expect(jobs.run('retried', { attempt: 4 })).rejects.toMatchObject({ message: /Raise maxReruns/ });
    await expect(jobs.run('retried', { tick, attempt: 2 })).rejects.toMatchObject({ code: 'notRun' });
    await expect(jobs.run('nightly', { attempt: 2 })).rejects.toMatchObject({
      message: /needs a job with onCrash: 'retry'/,
    });
  });

  it('runs jobs that were added', async () => {
    const modules = [await start(), await start()];
    const ran: string[] = [];
    for (const module of modules) {
      const added = module.get(SingletonJobs);
      added.add({ name: 'digest', cron: '0 0 7 * * *', timeZone: 'UTC' }, ({ tick }) => void ran.push(tick));
      added.add({ name: 'sweep', intervalMs: 60_000 }, ({ tick }) => void ran.push(tick));
    }
    const { jobs } = testLocks(modules[0]!);
    for (const name of ['digest', 'digest', 'sweep', 'sweep']) await jobs.tick(name);
    await jobs.run('digest', { as: modules[1]! });
    expect(ran).toEqual([
      '2031-05-06T07:00:00.000Z',
      '2031-05-07T07:00:00.000Z',
      'interval:1',
      'interval:2',
      '2031-05-08T07:00:00.000Z',
    ]);
  });

  it('reports an invalid name, option or application', async () => {
    const module = await start();
    const { jobs } = testLocks(module);
    await expect(jobs.run('nigthly')).rejects.toMatchObject({
      code: 'unknownJob',
      message: /Did you mean "nightly"\?/,
    });
    await expect(jobs.tick('nigthly')).rejects.toMatchObject({
      code: 'unknownJob',
      message: /Did you mean "nightly"\?/,
    });
    await expect(jobs.run('nightly', { as: 'app-9' })).rejects.toMatchObject({ code: 'invalid', message: /"app-1"/ });
    await expect(jobs.run('nightly', { tick: 'tomorrow' })).rejects.toMatchObject({
      code: 'invalid',
      message: 'tick of jobs.run("nightly") must be an ISO 8601 time, like run.tick, not "tomorrow".',
    });
    await expect(jobs.run('nightly', { ticks: 'x' } as never)).rejects.toThrow(/Did you mean tick\?/);
    const early = await Test.createTestingModule({
      imports: [RedisLockTestingModule.forRoot()],
      providers: [Reports],
    }).compile();
    started.push(early);
    await expect(testLocks(early).jobs.run('nightly')).rejects.toMatchObject({ message: /Call app\.init\(\) first/ });
  });

  it('reports which lock service has the job', async () => {
    const imports = [RedisLockTestingModule.forRoot({ fleet: 'two' }), billing({ fleet: 'two' })];
    const module = await Test.createTestingModule({ imports, providers: [Reports] }).compile();
    started.push(await module.init());
    await expect(testLocks(module, 'billing').jobs.run('nightly')).rejects.toMatchObject({
      code: 'unknownJob',
      message: expect.stringContaining('The job "nightly" uses the lock service "default": call testLocks(app).jobs.'),
    });
    expect(await testLocks(module).jobs.run('nightly')).toMatch(/^nightly /);
  });

  it('accepts the time of a tick in any form', async () => {
    const module = await start();
    const { jobs } = testLocks(module);
    expect(await jobs.run('nightly', { tick: '2031-05-06T05:00:00+02:00' })).toBe('nightly 2031-05-06T03:00:00.000Z');
    await expect(jobs.run('nightly', { tick: '2031-05-06T03:00:00Z' })).rejects.toMatchObject({ code: 'notRun' });
  });
});

function billing(options: { fleet: string }): ReturnType<typeof RedisLockTestingModule.forRoot> {
  return RedisLockTestingModule.forRoot({ ...options, service: 'billing' });
}

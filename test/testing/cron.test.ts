import { Injectable } from '@nestjs/common';
import { ScheduleModule } from '@nestjs/schedule';
import { Test, type TestingModule } from '@nestjs/testing';
import { RedisLockTestingModule, testLocks } from 'nestjs-redis-lock/testing';
import { SingletonCron, SingletonInterval, SingletonJobs } from 'nestjs-redis-lock/schedule';

const ran: string[] = [];

@Injectable()
class Reports {
  @SingletonCron('0 0 3 * * *', { name: 'nightly', timeZone: 'UTC' })
  async nightly(): Promise<void> {
    ran.push('nightly');
  }

  @SingletonInterval('poll', 60_000)
  async poll(): Promise<void> {
    ran.push('poll');
  }
}

const started: TestingModule[] = [];
beforeEach(() => {
  ran.length = 0;
});
afterEach(async () => {
  await Promise.all(started.splice(0).map((module) => module.close()));
});

const HOUR_MS = 3_600_000;
/** A date at which no timer of the machine fires the job. */
const BEGIN = new Date('2031-05-05T03:00:00.200Z');

async function start(): Promise<TestingModule> {
  const locks = RedisLockTestingModule.forRoot({ fleet: 'cron', clock: 'manual', startsAt: BEGIN });
  const imports = [ScheduleModule.forRoot(), locks];
  const module = await Test.createTestingModule({ imports, providers: [Reports] }).compile();
  started.push(module);
  return module.init();
}

describe('singleton jobs with a manual clock', () => {
  it('claim the tick that is due by it, on one instance of the fleet', async () => {
    const modules = [await start(), await start()];
    const [locks] = modules.map((module) => testLocks(module));
    const fire = (): Promise<unknown> => Promise.all(modules.map((module) => module.get(Reports).nightly()));
    await fire();
    expect(ran).toEqual(['nightly']);
    await locks!.advance(24 * HOUR_MS);
    await fire();
    expect(ran).toEqual(['nightly', 'nightly']);
    const history = await modules[0]!.get(SingletonJobs).history('nightly');
    expect(history.map(({ tick }) => tick)).toEqual(['2031-05-06T03:00:00.000Z', '2031-05-05T03:00:00.000Z']);
  });

  it('run an interval again when it is over by it', async () => {
    const module = await start();
    const fire = (): Promise<void> => module.get(Reports).poll();
    await fire();
    await fire();
    expect(ran).toEqual(['poll']);
    await testLocks(module).advance(60_000);
    await fire();
    expect(ran).toEqual(['poll', 'poll']);
  });
});

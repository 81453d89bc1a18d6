import { Injectable, Module } from '@nestjs/common';
import { ScheduleModule, type ScheduleModuleOptions } from '@nestjs/schedule';
import { SingletonCron, SingletonInterval, SingletonTimeout } from 'nestjs-redis-lock/schedule';
import { inMemory, useApps } from '../../../nest/nest-apps.js';

@Injectable()
class Reports {
  @SingletonCron('0 0 0 1 1 *')
  async yearly(): Promise<void> {}

  @SingletonInterval(60_000, { name: 'often' })
  async often(): Promise<void> {}

  @SingletonTimeout(60_000, { name: 'once' })
  async once(): Promise<void> {}
}

@Injectable()
class Nightly {
  @SingletonCron('0 0 0 1 1 *', { name: 'nightly', service: 'billing' })
  async run(): Promise<void> {}
}

describe('singleton jobs that the scheduler does not run', () => {
  const start = useApps();
  const billing = () => inMemory({ service: 'billing' });

  it('cause a warning if ScheduleModule is not imported, one for each lock service', async () => {
    const { log } = await start({ imports: [inMemory(), billing()], providers: [Reports, Nightly] });
    expect(log.lines.filter(({ level }) => level === 'warn')).toEqual([
      {
        level: 'warn',
        context: 'RedisLockModule',
        message:
          'ScheduleModule is not imported, so 3 singleton jobs "Reports.yearly", "often", "once" will never be ' +
          'scheduled. Import ScheduleModule.forRoot() of @nestjs/schedule in the root module.',
      },
      {
        level: 'warn',
        context: 'RedisLockModule',
        message:
          'ScheduleModule is not imported, so the singleton job "nightly" will never be scheduled. Import ' +
          'ScheduleModule.forRoot() of @nestjs/schedule in the root module.',
      },
    ]);
  });

  it('cause no warning with it, wherever it is imported, nor without a job', async () => {
    @Module({ imports: [ScheduleModule.forRootAsync({ useFactory: async () => ({}) })] })
    class Elsewhere {}
    const imports = [inMemory(), billing()];
    const { log } = await start({ imports: [...imports, Elsewhere], providers: [Reports, Nightly] });
    const without = await start({ imports });
    expect([...log.at('warn'), ...without.log.at('warn')]).toEqual([]);
    expect(log.at('log').filter((line) => line.includes('will not be scheduled'))).toEqual([]);
  });

  it.each<[ScheduleModuleOptions, string[]]>([
    [{ cronJobs: false }, ['cronJobs: false, so the singleton job "Reports.yearly"']],
    [{ intervals: false }, ['intervals: false, so the singleton job "often"']],
    [{ timeouts: false }, ['timeouts: false, so the singleton job "once"']],
    [
      { cronJobs: false, timeouts: false },
      ['cronJobs: false, so the singleton job "Reports.yearly"', 'timeouts: false, so the singleton job "once"'],
    ],
  ])('are logged if it is intended: ScheduleModule with %j', async (options, expected) => {
    const { log } = await start({ imports: [ScheduleModule.forRoot(options), inMemory()], providers: [Reports] });
    const lines = log.at('log').filter((line) => line.startsWith('ScheduleModule has'));
    expect(lines).toEqual(expected.map((text) => `ScheduleModule has ${text} will not be scheduled here.`));
    expect(log.at('warn')).toEqual([]);
  });
});

import { Injectable } from '@nestjs/common';
import { Cron, Interval, ScheduleModule, type ScheduleModuleOptions, Timeout } from '@nestjs/schedule';
import { DistributedLock, DistributedSemaphore, LeaderOnly, ReadLock, WriteLock } from 'nestjs-redis-lock';
import { SingletonCron } from 'nestjs-redis-lock/schedule';
import { inMemory, useApps } from '../../../nest/nest-apps.js';

const YEARLY = '0 0 0 1 1 *';

@Injectable()
class Reports {
  @Cron(YEARLY)
  @DistributedLock('nightly')
  async nightly(): Promise<void> {}

  @WriteLock('prices')
  @Interval(60_000)
  async prices(): Promise<void> {}

  @Timeout(60_000)
  @ReadLock({ key: 'once', onBusy: 'skip' })
  async once(): Promise<void> {}

  @Cron(YEARLY)
  @DistributedSemaphore({ key: 'exports', permits: 2, minHoldMs: 50_000 })
  async exports(): Promise<void> {}
}

describe('a lock on a method that @nestjs/schedule calls', () => {
  const start = useApps();
  const warnings = async (provider: new () => object, scheduling?: ScheduleModuleOptions, lockService?: string) => {
    const imports = [inMemory(), ...(lockService ? [inMemory({ service: lockService })] : [])];
    if (scheduling) imports.push(ScheduleModule.forRoot(scheduling));
    const { log } = await start({ imports, providers: [provider] });
    return log.at('warn');
  };

  it('causes a warning, which names the method, the problem and the decorator to use', async () => {
    expect(await warnings(Reports, {})).toEqual([
      'Reports.nightly has @Cron and @DistributedLock: every instance runs each tick, and the lock only makes them take ' +
        'turns. To run each tick on one instance, use @SingletonCron of nestjs-redis-lock/schedule in place of both. To ' +
        'keep it as it is, let a method with @Cron call another one with the lock. See docs/guide/cron.md.',
      expect.stringMatching(/^Reports\.prices has @Interval and @WriteLock: .* use @SingletonInterval of /),
      'Reports.once has @Timeout and @ReadLock: an instance whose timer fires when the first run has ended runs the tick ' +
        'again. To run each tick on one instance, use @SingletonTimeout of nestjs-redis-lock/schedule in place of both, or ' +
        'set minHoldMs to more than clocks and timers are apart. See docs/guide/cron.md.',
      expect.stringMatching(/^Reports\.exports has @Cron and @DistributedSemaphore: .* use @SingletonCron of /),
    ]);
  });

  it('is reported once, however many modules and lock services there are', async () => {
    expect(await warnings(Reports, {}, 'billing')).toHaveLength(4);
  });

  it.each<[string, ScheduleModuleOptions | undefined, number]>([
    ['the ScheduleModule is not imported', undefined, 0],
    ['cron jobs are switched off', { cronJobs: false }, 2],
  ])('causes no warning if nothing calls it: %s', async (_, scheduling, count) => {
    expect(await warnings(Reports, scheduling)).toHaveLength(count);
  });

  it('causes no warning if it runs once: onBusy "skip" with a minHoldMs, a leader, or a singleton job', async () => {
    @Injectable()
    class Right {
      @Cron(YEARLY)
      @DistributedLock({ key: 'a', onBusy: 'skip', minHoldMs: 50_000 })
      async skips(): Promise<void> {}

      @Interval(60_000)
      @LeaderOnly('mails')
      @DistributedLock('b')
      async leads(): Promise<void> {}

      @DistributedLock('c')
      @SingletonCron(YEARLY, { name: 'c' })
      async below(): Promise<void> {}

      @SingletonCron(YEARLY, { name: 'd' })
      @DistributedLock('d')
      async above(): Promise<void> {}

      @DistributedLock('e')
      async called(): Promise<void> {}

      @Cron(YEARLY)
      async calls(): Promise<void> {
        await this.called();
      }
    }
    expect(await warnings(Right, {})).toEqual([]);
  });

  it('causes a warning for a subclass, by the name of the class that has the method, unless that one is overridden', async () => {
    @Injectable()
    class Sub extends Reports {
      override async prices(): Promise<void> {}
      override async once(): Promise<void> {}
      override async exports(): Promise<void> {}
    }
    expect(await warnings(Sub, {})).toEqual([expect.stringMatching(/^Reports\.nightly has @Cron and/)]);
  });
});

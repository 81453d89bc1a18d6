// Compiled by test/nest/decorators/types.slow.test.ts, never run.
import { CronExpression } from '@nestjs/schedule';
import { SingletonCron, SingletonInterval, type SingletonRun, SingletonTimeout } from 'nestjs-redis-lock/schedule';

export class Jobs {
  @SingletonCron(CronExpression.EVERY_MINUTE, { timeZone: 'Europe/Vienna', overlap: 'wait', onCrash: 'retry' })
  async cron(): Promise<void> {}

  @SingletonCron(new Date())
  async once(): Promise<void> {}

  @SingletonInterval(1_000, { name: 'poll' })
  async interval(): Promise<void> {}

  @SingletonCron('* * * * * *')
  async withItsRun({ tick, rerun, lease }: SingletonRun): Promise<void> {
    console.log(tick.length, !rerun, lease.fencingToken + 1);
  }

  @SingletonTimeout(1_000)
  async timeout(): Promise<void> {}

  // @ts-expect-error not async
  @SingletonCron('* * * * * *')
  notAsync(): void {}

  // @ts-expect-error not what a job is called with
  @SingletonCron('* * * * * *')
  async withParameter(_id: string): Promise<void> {}

  // @ts-expect-error an unknown overlap
  @SingletonCron('* * * * * *', { overlap: 'queue' })
  async overlap(): Promise<void> {}

  // @ts-expect-error an interval has no nominal time, and so no rerun of one
  @SingletonInterval(1_000, { onCrash: 'retry' })
  async rerun(): Promise<void> {}
}

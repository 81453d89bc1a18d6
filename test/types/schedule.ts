// Compiled by test/nest/types/types.slow.test.ts, never run.
import { applyDecorators } from '@nestjs/common';
import {
  Cron,
  CronExpression,
  type CronOptions,
  Interval,
  ScheduleModule,
  SchedulerRegistry,
  SingletonCron,
  SingletonInterval,
  type SingletonJobs,
  type SingletonRun,
  SingletonTimeout,
  Timeout,
} from 'nestjs-redis-lock/schedule';

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

  @SingletonCron('* * * * * *')
  sync(): void {}

  @SingletonTimeout(1_000)
  syncWithItsRun({ tick }: SingletonRun): void {
    console.log(tick);
  }

  @SingletonInterval('named', 1_000)
  async named(): Promise<void> {}

  @SingletonInterval('named with options', 1_000, { overlap: 'wait' })
  async namedWithOptions(): Promise<void> {}

  @SingletonTimeout('named timeout', 1_000, { dedupeWindowMs: 5_000 })
  async namedTimeout(): Promise<void> {}

  @SingletonCron('* * * * * *')
  async withAResult(): Promise<number | undefined> {
    return 1;
  }

  @SingletonCron('* * * * * *')
  async withAnyResult(): Promise<ReturnType<typeof JSON.parse>> {
    return 1;
  }

  // @ts-expect-error a call returns a promise
  @SingletonCron('* * * * * *')
  syncWithAResult(): number {
    return 1;
  }

  // @ts-expect-error a call returns a promise, of undefined elsewhere
  @SingletonInterval(1_000)
  syncWithAnOptionalResult(): number | undefined {
    return 1;
  }

  // @ts-expect-error elsewhere a call returns undefined
  @SingletonTimeout(1_000)
  async dishonest(): Promise<number> {
    return 1;
  }

  // @ts-expect-error the time is missing
  @SingletonInterval('named')
  async noTime(): Promise<void> {}

  // @ts-expect-error the name is stated before
  @SingletonInterval('named', 1_000, { name: 'twice' })
  async twice(): Promise<void> {}

  // @ts-expect-error @nestjs/schedule has the other order
  @SingletonTimeout(1_000, 'named')
  async wrongOrder(): Promise<void> {}

  // @ts-expect-error not what a job is called with
  @SingletonCron('* * * * * *')
  async withParameter(_id: string): Promise<void> {}

  // @ts-expect-error @nestjs/schedule would not find it
  @SingletonCron('* * * * * *')
  async [Symbol.asyncDispose](): Promise<void> {}

  // @ts-expect-error an unknown overlap
  @SingletonCron('* * * * * *', { overlap: 'queue' })
  async overlap(): Promise<void> {}

  // @ts-expect-error an interval has no nominal time, and so no rerun of one
  @SingletonInterval(1_000, { onCrash: 'retry' })
  async rerun(): Promise<void> {}
}

/** Several decorators may be one. */
export const Nightly = applyDecorators(SingletonCron('0 0 * * *'));

export async function atRunTime(jobs: SingletonJobs): Promise<void> {
  jobs.add({ name: 'cron', cron: CronExpression.EVERY_MINUTE, timeZone: 'Europe/Vienna', onCrash: 'retry' }, () => {});
  jobs.add({ name: 'date', cron: new Date() }, async ({ manual }) => console.log(!manual));
  jobs.add({ name: 'poll', intervalMs: 1_000, jitterMs: 100 }, () => {});
  jobs.add({ name: 'once', at: new Date() }, async () => {});
  // @ts-expect-error: of the three ways to say when, it has two
  jobs.add({ name: 'two', intervalMs: 1_000, at: new Date() }, () => {});
  // @ts-expect-error: no instance could know which job it is
  jobs.add({ cron: '* * * * *' }, () => {});
  // @ts-expect-error: an interval is not run again after a crash
  jobs.add({ name: 'poll', intervalMs: 1_000, onCrash: 'retry' }, () => {});
  // @ts-expect-error: the job is called with its run
  jobs.add({ name: 'text', intervalMs: 1_000 }, (text: string) => console.log(text));
  const result: unknown = await jobs.runNow('cron', { by: 'ann' });
  console.log(result);
  const { pause, lastRun } = await jobs.get('cron');
  console.log(pause?.by, lastRun?.by, (await jobs.list())[0]?.instances[0]?.seenAt);
  await jobs.pause('cron', { until: new Date() });
  await jobs.pause('cron', { until: Date.now(), by: 'ann' });
  // @ts-expect-error: a text is no time
  await jobs.pause('cron', { until: 'tomorrow' });
}

const options: CronOptions = { name: 'with options', waitForCompletion: true, unrefTimeout: true };
export const schedule = ScheduleModule.forRoot({ timeouts: false });

/** As with `@nestjs/schedule`, by another import. */
export class ByOneImport {
  constructor(readonly registry: SchedulerRegistry) {}

  @Cron(CronExpression.EVERY_MINUTE)
  cron() {}

  @Cron('0 * * * *', options)
  protected async withOptions() {}

  @Cron(new Date(), { disabled: true, threshold: 500, utcOffset: 60 })
  once(): void {}

  @Cron('0 * * * *', { timeZone: 'UTC', initialDelay: 5_000, onCrash: 'retry' })
  async withFleetOptions({ rerun }: SingletonRun) {
    console.log(!rerun);
  }

  @Interval(1_000)
  interval() {}

  @Interval('named', 1_000)
  async named() {}

  @Timeout(1_000)
  timeout() {}

  @Timeout('named', 1_000)
  async namedTimeout() {}

  // @ts-expect-error one of them
  @Cron('0 * * * *', { timeZone: 'UTC', utcOffset: 60 })
  twoZones() {}

  // @ts-expect-error elsewhere it has not run
  @Interval(1_000)
  async withAResult() {
    return 1;
  }

  // @ts-expect-error it would be called with its run
  @Timeout(1_000)
  withParameter(force = false) {
    console.log(force);
  }
}

import { Injectable } from '@nestjs/common';
import { ScheduleModule, SchedulerRegistry } from '@nestjs/schedule';
import { CronJob } from 'cron';
import { DistributedLock, RedisLockModule, RedisLockService } from 'nestjs-redis-lock';
import { eventually } from '../../../support/expect/eventually.js';
import { gate } from '../../../support/expect/tracked.js';
import { useRedis } from '../../../support/redis/redis-server.js';
import { useApps } from '../../../nest/nest-apps.js';

/** The runs of the jobs on all instances. */
let runs: string[] = [];
let end = gate();

@Injectable()
class Jobs {
  begun = 0;
  calls = 0;

  constructor(
    private readonly registry: SchedulerRegistry,
    private readonly locks: RedisLockService,
  ) {}

  addCron(name: string, work: () => Promise<unknown>): void {
    const job = new CronJob('* * * * * *', () => this.#call(work));
    this.registry.addCronJob(name, job);
    job.start();
  }

  addInterval(name: string, ms: number, work: () => Promise<unknown>): void {
    this.registry.addInterval(
      name,
      setInterval(() => this.#call(work), ms),
    );
  }

  @DistributedLock({ key: 'import', onBusy: 'skip', minHoldMs: 60_000 })
  async locked(): Promise<void> {
    runs.push(this.locks.currentOrThrow().resource);
    await end.opened;
  }

  /** @param tick the same on all instances */
  async once(tick: string): Promise<void> {
    const lock = { leaseMs: 10_000 };
    const options = { job: 'poll', tick, overlap: 'wait', onCrash: 'skip', claimTtlMs: 60_000, lock } as const;
    await this.locks.runSingleton(options, () => runs.push(tick));
  }

  #call(work: () => Promise<unknown>): void {
    this.begun++;
    void work().finally(() => this.calls++);
  }
}

describe('jobs that are added at run time', () => {
  const redis = useRedis();
  const start = useApps();
  const startTwo = (): Promise<Jobs[]> =>
    Promise.all(
      [1, 2].map(async () => {
        const { app } = await start({
          imports: [ScheduleModule.forRoot(), RedisLockModule.forRoot({ connection: redis().url })],
          providers: [Jobs],
        });
        return app.get(Jobs);
      }),
    );

  /** The shutdown would refuse a call that is under way. */
  const allEnd = (instances: readonly Jobs[]): Promise<void> =>
    eventually(() => expect(instances.map(({ calls }) => calls)).toEqual(instances.map(({ begun }) => begun)));

  beforeEach(() => {
    runs = [];
    end = gate();
  });

  it('call a locked method, which runs on one instance; once deleted, they stop firing, and a run ends', async () => {
    const instances = await startTwo();
    for (const jobs of instances) jobs.addCron('import', () => jobs.locked());
    await eventually(() => expect(instances.every(({ calls }) => calls > 0)).toBe(true));
    // A call is counted before it has the lock.
    await eventually(() => expect(runs).toEqual(['import']));
    for (const jobs of instances) jobs['registry'].deleteCronJob('import');
    end.open();
    await allEnd(instances);
    expect(runs).toEqual(['import']);
    expect(instances[0]!['registry'].doesExist('cron', 'import')).toBe(false);
  });

  it('claim their ticks by runSingleton: each runs once in the fleet', async () => {
    const instances = await startTwo();
    for (const jobs of instances) {
      let tick = 0;
      jobs.addInterval('poll', 20, () => jobs.once(`tick ${++tick}`));
    }
    await eventually(() => expect(instances.every(({ calls }) => calls >= 5)).toBe(true));
    for (const jobs of instances) jobs['registry'].deleteInterval('poll');
    await allEnd(instances);
    expect(runs.length).toBeGreaterThanOrEqual(5);
    expect(new Set(runs).size).toBe(runs.length);
  });
});

import { Injectable } from '@nestjs/common';
import { ScheduleModule, SchedulerRegistry } from '@nestjs/schedule';
import { InvalidLockOptionsError } from 'nestjs-redis-lock';
import { SingletonCron, SingletonJobs } from 'nestjs-redis-lock/schedule';
import { eventually } from '../../../../support/expect/eventually.js';
import { inMemory, useApps } from '../../../../nest/nest-apps.js';

const YEARLY = '0 0 0 1 1 *';
const DAY_MS = 24 * 60 * 60 * 1_000;
const dueIn = (ms: number): Date => new Date(Date.now() + ms);

describe('a job that gets another schedule', () => {
  const start = useApps();
  let ticks: string[];

  @Injectable()
  class Declared {
    @SingletonCron(YEARLY, { name: 'declared', timeZone: 'Europe/Vienna' })
    async run(): Promise<void> {}
  }

  async function startApp() {
    ticks = [];
    const { app } = await start({ imports: [ScheduleModule.forRoot(), inMemory()], providers: [Declared] });
    const jobs = app.get(SingletonJobs);
    const add = (schedule: { cron: string } | { at: Date }): void =>
      jobs.add({ name: 'mine', ...schedule }, ({ tick }) => void ticks.push(tick));
    return { jobs, registry: app.get(SchedulerRegistry), add };
  }

  it('is shown with it at once', async () => {
    const { jobs } = await startApp();
    await eventually(async () => expect((await jobs.get('declared')).cron).toBe(YEARLY));
    jobs.reschedule('declared', '0 0 0 2 1 *');
    await eventually(async () => {
      expect(await jobs.get('declared')).toMatchObject({ cron: '0 0 0 2 1 *', timeZone: 'Europe/Vienna' });
    });
  });

  it('runs at another date, if it was added with one', async () => {
    const { jobs, registry, add } = await startApp();
    add({ at: dueIn(DAY_MS) });
    const at = dueIn(300);
    jobs.reschedule('mine', at);
    await eventually(() => expect(ticks).toEqual([at.toISOString()]));
    await eventually(() => expect(registry.doesExist('cron', 'mine')).toBe(false));
  });

  it.each([
    ['by itself', (jobs: SingletonJobs, at: Date) => jobs.reschedule('mine', at)],
    [
      'removed and added with the same work',
      (jobs: SingletonJobs, at: Date, work: () => void) => {
        jobs.remove('mine');
        jobs.add({ name: 'mine', at }, work);
      },
    ],
  ])('runs at a date that it received while it ran: %s', async (_, change) => {
    const { jobs, registry } = await startApp();
    let next: Date | undefined;
    const work = ({ tick }: { readonly tick: string }): void => {
      // Counted from the run: on a busy machine, it may begin late.
      if (ticks.push(tick) === 1) change(jobs, (next = dueIn(1_000)), work as () => void);
    };
    const first = dueIn(100);
    jobs.add({ name: 'mine', at: first }, work);
    await eventually(() => expect(ticks).toEqual([first.toISOString(), next?.toISOString()]));
    await eventually(() => expect(registry.doesExist('cron', 'mine')).toBe(false));
  });

  it.each([
    [
      'added',
      (jobs: SingletonJobs, first: Date, work: (run: { tick: string }) => Promise<void>) =>
        jobs.add({ name: 'mine', at: first }, work),
    ],
    [
      'added with an expression',
      (jobs: SingletonJobs, first: Date, work: (run: { tick: string }) => Promise<void>) => {
        jobs.add({ name: 'mine', cron: YEARLY }, work);
        jobs.reschedule('mine', first);
      },
    ],
  ])('runs at a date that is due before its run has ended, after that run: %s', async (_, add) => {
    const { jobs, registry } = await startApp();
    let running = 0;
    let most = 0;
    const [first, next] = [dueIn(100), dueIn(300)];
    add(jobs, first, async ({ tick }) => {
      most = Math.max(most, ++running);
      if (ticks.push(tick) === 1) {
        jobs.reschedule('mine', next);
        await eventually(() => expect(registry.getCronJob('mine').isActive).toBe(false));
      }
      running--;
    });
    await eventually(() => expect(ticks).toEqual([first.toISOString(), next.toISOString()]));
    expect(most).toBe(1);
  });

  it('drops a date that is due before its run has ended, if configured', async () => {
    const { jobs, registry } = await startApp();
    jobs.add({ name: 'mine', at: dueIn(300), overlap: 'skip' }, async ({ manual }) => {
      await eventually(() => expect(registry.doesExist('cron', 'mine')).toBe(false));
      ticks.push(manual ? 'by hand' : 'at its date');
    });
    await jobs.runNow('mine');
    expect(ticks).toEqual(['by hand']);
  });

  it('keeps its date if it is given an expression: it is removed after its run', async () => {
    const { jobs, registry, add } = await startApp();
    const at = dueIn(DAY_MS);
    add({ at });
    expect(() => jobs.reschedule('mine', '* * * * * *')).toThrow(
      'The job "mine" was added with at, so it can only get another date. For an expression, remove it and add it again.',
    );
    expect(registry.getCronJob('mine').nextDate().toMillis()).toBe(at.getTime());
  });

  it('is removed after its date, with advice', async () => {
    const { jobs, registry, add } = await startApp();
    add({ at: dueIn(200) });
    await eventually(() => expect(registry.doesExist('cron', 'mine')).toBe(false));
    expect(() => jobs.reschedule('mine', dueIn(DAY_MS))).toThrow(
      'This instance has no job called "mine". Known jobs: "declared". A job that was added with at is removed from an ' +
        'instance when its tick has run there, or was claimed by another instance. Add it again for another date.',
    );
  });

  it.each([
    ['a date that is over', new Date(0), /^cron of SingletonJobs\.reschedule\("mine"\) .* 1970-01-01T00:00:00\.000Z/],
    ['no date', new Date(NaN), /cannot be scheduled: an invalid Date/],
    [
      'nothing',
      undefined,
      /cannot be scheduled: undefined\. It must be a cron expression, a Date or a DateTime of luxon/,
    ],
  ])('keeps its schedule if it is given %s', async (_, cron, message) => {
    const { jobs, registry, add } = await startApp();
    add({ cron: YEARLY });
    const before = registry.getCronJob('mine').nextDate().toMillis();
    expect(() => jobs.reschedule('mine', cron as never)).toThrow(InvalidLockOptionsError);
    expect(() => jobs.reschedule('mine', cron as never)).toThrow(message);
    expect(registry.getCronJob('mine').isActive).toBe(true);
    expect(registry.getCronJob('mine').nextDate().toMillis()).toBe(before);
  });
});

import { jest } from '@jest/globals';
import { ScheduleModule, SchedulerRegistry } from '@nestjs/schedule';
import { CronTime } from 'cron';
import type { LockEvent } from 'nestjs-redis-lock';
import { SingletonCron, SingletonJobs } from 'nestjs-redis-lock/schedule';
import { eventually } from '../../../support/expect/eventually.js';
import { inMemory, useApps } from '../../../nest/nest-apps.js';

const JOBS = 60;
const NAMES = Array.from({ length: JOBS }, (_, index) => `job-${index}`);

/** A day from now, at a whole second. */
function dailyIn(ms: number): { at: number; cron: string } {
  const at = Math.ceil((Date.now() + ms) / 1_000) * 1_000;
  const date = new Date(at);
  return { at, cron: `${date.getUTCSeconds()} ${date.getUTCMinutes()} ${date.getUTCHours()} * * *` };
}

/** The part of `CronJob` that its timer calls. */
interface WithTimer {
  readonly _timeout: NodeJS.Timeout & { _onTimeout(): void };
}

/** A class with a job for each method. */
function decorated(cron: string): new () => object {
  class Jobs {}
  for (const name of NAMES) {
    const method = { value: async () => {}, configurable: true, writable: true };
    SingletonCron(cron, { name, timeZone: 'UTC' })(Jobs.prototype, name, method);
    Object.defineProperty(Jobs.prototype, name, method);
  }
  return Jobs;
}

describe('many jobs that are due at one second', () => {
  const start = useApps();
  let turn: NodeJS.Immediate | undefined;
  afterEach(() => {
    jest.restoreAllMocks();
    clearImmediate(turn);
  });

  function countTurns(turns: { now: number }): void {
    turn = setImmediate(() => {
      turns.now++;
      countTurns(turns);
    });
  }

  async function startApp(kind: 'added' | 'decorated', cron: string) {
    const turns = { now: 0 };
    const begun: number[] = [];
    const observers = [({ type }: LockEvent) => void (type === 'tickStarted' && begun.push(turns.now))];
    const { app, log } = await start({
      imports: [ScheduleModule.forRoot(), inMemory({ observers })],
      providers: kind === 'decorated' ? [decorated(cron)] : [],
    });
    if (kind === 'added') {
      for (const name of NAMES) app.get(SingletonJobs).add({ name, cron, timeZone: 'UTC' }, () => {});
    }
    const registry = app.get(SchedulerRegistry);
    // Within a second of its start, the application makes its jobs known.
    const isKnown = async (): Promise<boolean> =>
      (await app.get(SingletonJobs).list()).every(({ nextDueAt }) => nextDueAt !== undefined);
    await eventually(async () => expect(await isKnown()).toBe(true));
    return { begun, turns, log, timers: NAMES.map((name) => registry.getCronJob(name) as unknown as WithTimer) };
  }

  it.each(['added', 'decorated'] as const)(
    'ask cron together as often as one of them, and begin in many turns of the event loop: %s',
    async (kind) => {
      const { at, cron } = dailyIn(600_000);
      const { begun, turns, timers, log } = await startApp(kind, cron);
      const ask = jest.spyOn(CronTime.prototype, 'getNextDateFrom');
      const realNow = Date.now;
      const aheadMs = at + 20 - realNow();
      jest.spyOn(Date, 'now').mockImplementation(() => realNow() + aheadMs);
      countTurns(turns);
      // As their timers do, which are due in one turn of the loop.
      for (const { _timeout } of timers) {
        _timeout._onTimeout();
        clearTimeout(_timeout);
      }
      expect(begun).toEqual([]);
      await eventually(() => expect(begun).toHaveLength(JOBS));
      expect(ask.mock.calls.length).toBeLessThan(12);
      const perTurn = begun.map((turn) => begun.filter((other) => other === turn).length);
      expect(Math.max(...perTurn)).toBeLessThanOrEqual(16);
      expect([...log.at('error'), ...log.at('warn')]).toEqual([]);
    },
  );

  it('cost a few requests together when they are added', async () => {
    const ask = jest.spyOn(CronTime.prototype, 'getNextDateFrom');
    await startApp('added', dailyIn(600_000).cron);
    expect(ask.mock.calls.length).toBeLessThan(8);
  });
});

import { ScheduleModule } from '@nestjs/schedule';
import { InvalidLockOptionsError, type LockEvent } from 'nestjs-redis-lock';
import { SingletonCron, SingletonInterval, SingletonJobs } from 'nestjs-redis-lock/schedule';
import { eventually } from '../../../../support/expect/eventually.js';
import { useRedis } from '../../../../support/redis/redis-server.js';
import { inMemory, useApps } from '../../../../nest/nest-apps.js';

const WARN_AFTER = { warnAfterMs: 300 };
/** A day is too long to wait for a tick; a run by hand keeps it from running all the same. */
const YEARLY = '0 0 0 1 1 *';

describe('a run that never ends', () => {
  const redis = useRedis();
  const start = useApps();

  it('is reported once in the fleet, for any kind of job, and logged', async () => {
    const reported: string[] = [];
    const observers = [(event: LockEvent) => void (event.type === 'overlapLong' && reported.push(event.job))];
    const hung = new Set<string>();
    const hang = (job: string): Promise<void> => {
      hung.add(job);
      return new Promise(() => {});
    };
    class Jobs {
      @SingletonCron('* * * * * *', { name: 'cron', ...WARN_AFTER })
      async cron(): Promise<void> {
        await hang('cron');
      }

      @SingletonInterval('interval', 200, WARN_AFTER)
      async interval(): Promise<void> {
        await hang('interval');
      }

      @SingletonCron('* * * * * *', { name: 'patient', warnAfterMs: 60_000 })
      async patient(): Promise<void> {
        await hang('patient');
      }

      @SingletonCron(YEARLY, { name: 'rare', ...WARN_AFTER })
      async rare(): Promise<void> {
        await hang('rare');
      }
    }
    const startApp = () => {
      const module = inMemory({ connection: redis().url, keyPrefix: 'hung', observers, shutdown: { drainMs: 0 } });
      return start({ imports: [ScheduleModule.forRoot(), module], providers: [Jobs] });
    };
    const apps = [await startApp(), await startApp()];
    for (const { app } of apps) {
      app.get(SingletonJobs).add({ name: 'added', cron: '* * * * * *', ...WARN_AFTER }, () => hang('added'));
    }
    void apps[0]!.app
      .get(SingletonJobs)
      .runNow('rare')
      .catch(() => {});
    await eventually(() => expect(reported.toSorted()).toEqual(['added', 'cron', 'interval']));
    // Several more ticks are skipped.
    await new Promise((resolve) => setTimeout(resolve, 2_000));
    expect(reported).toHaveLength(3);
    expect([...hung].sort()).toEqual(['added', 'cron', 'interval', 'patient', 'rare']);
    const lines = apps.flatMap(({ log }) => log.at('warn'));
    expect(lines[0]).toMatch(
      /^The job "\w+" has run for .* on this instance .*, and \d+ later ticks? (was|were) skipped\. .*#a-run-does-not-end\.$/,
    );
  });

  it('accepts only valid times', () => {
    expect(() => SingletonInterval(200, { warnAfterMs: 0 })({}, 'run', {})).toThrow(InvalidLockOptionsError);
  });
});

import { Injectable } from '@nestjs/common';
import { ScheduleModule } from '@nestjs/schedule';
import { LockUnavailableError, RedisLockModule } from 'nestjs-redis-lock';
import { SingletonCron, SingletonInterval, SingletonTimeout } from 'nestjs-redis-lock/schedule';
import { eventually } from '../../../support/expect/eventually.js';
import { useApps } from '../../../nest/nest-apps.js';

const seen: unknown[] = [];

/** As a monitor of crons: it tells how each check-in ended. */
function Monitored(): MethodDecorator {
  return (_target, _name, descriptor: PropertyDescriptor) => {
    const below = descriptor.value as (...args: unknown[]) => Promise<unknown>;
    const above = async function (this: unknown, ...args: unknown[]): Promise<unknown> {
      try {
        const result = await below.apply(this, args);
        seen.push('ok');
        return result;
      } catch (error) {
        seen.push(error);
        throw error;
      }
    };
    for (const key of Reflect.getMetadataKeys(below)) {
      Reflect.defineMetadata(key, Reflect.getMetadata(key, below), above);
    }
    descriptor.value = above;
  };
}

@Injectable()
class Jobs {
  ran = 0;

  @SingletonCron('0 0 0 1 1 *', { name: 'yearly' })
  async yearly(): Promise<void> {
    this.ran++;
  }

  @Monitored()
  @SingletonInterval(100, { name: 'often' })
  async often(): Promise<void> {
    this.ran++;
  }

  @SingletonTimeout(100, { name: 'once' })
  async once(): Promise<void> {
    this.ran++;
  }
}

describe('a tick that cannot be claimed, because Redis is unreachable', () => {
  const start = useApps();

  beforeEach(() => void seen.splice(0));

  const startJobs = (connection = 'redis://127.0.0.1:1') =>
    start({
      imports: [
        ScheduleModule.forRoot(),
        RedisLockModule.forRoot({ connection, waitMs: 100, attemptTimeoutMs: 100, shutdown: { drainMs: 0 } }),
      ],
      providers: [Jobs],
    });

  it('rejects for a direct caller', async () => {
    const { app } = await startJobs();
    const jobs = app.get(Jobs);
    await expect(jobs.yearly()).rejects.toThrow(LockUnavailableError);
    await expect(jobs.yearly()).rejects.toThrow('claim tick');
    expect(jobs.ran).toBe(0);
  });

  it('rejects for a decorator above, and the scheduler logs nothing', async () => {
    const { app, log } = await startJobs();
    await eventually(() => expect(seen.length).toBeGreaterThan(3));
    expect(seen.filter((end) => !(end instanceof LockUnavailableError))).toEqual([]);
    expect(app.get(Jobs).ran).toBe(0);
    expect(log.lines.filter(({ context }) => context === 'Scheduler')).toEqual([]);
    expect(log.at('warn').filter((line) => line.includes('could not claim tick'))).toHaveLength(1);
  });

  it('is the only one that the scheduler does not log', async () => {
    @Injectable()
    class Fails {
      @SingletonInterval(100, { name: 'fails' })
      async run(): Promise<void> {
        throw new Error('out of paper');
      }
    }
    const { log } = await start({
      imports: [ScheduleModule.forRoot(), RedisLockModule.forRoot({ connection: 'memory:' })],
      providers: [Fails],
    });
    await eventually(() => expect(JSON.stringify(log.lines)).toContain('Scheduler'));
  });
});

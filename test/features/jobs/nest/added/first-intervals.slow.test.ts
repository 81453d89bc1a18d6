import { ScheduleModule, SchedulerRegistry } from '@nestjs/schedule';
import { Redis } from 'ioredis';
import { SingletonInterval, SingletonJobs } from 'nestjs-redis-lock/schedule';
import { eventually } from '../../../../support/expect/eventually.js';
import { useRedis } from '../../../../support/redis/redis-server.js';
import { inMemory, useApps } from '../../../../nest/nest-apps.js';

/** Much longer than this test takes. */
const EVERY_MS = 60_000;
/** The first tick comes within a tenth of an interval. */
const SHORT_MS = 5_000;

describe('an interval whose last run was long ago', () => {
  const redis = useRedis();
  const start = useApps();
  let ran: string[];
  beforeEach(() => (ran = []));

  class Jobs {
    @SingletonInterval('named', SHORT_MS)
    async named(): Promise<void> {
      ran.push('named');
    }

    @SingletonInterval(SHORT_MS)
    async unnamed(): Promise<void> {
      ran.push('unnamed');
    }

    @SingletonInterval('broken', SHORT_MS)
    async broken(): Promise<void> {
      ran.push('broken');
      throw new TypeError('no toner');
    }

    @SingletonInterval('rare', EVERY_MS)
    async rare(): Promise<void> {
      ran.push('rare');
    }
  }

  async function startApp(keyPrefix: string, intervals = true) {
    const module = inMemory({ connection: redis().url, keyPrefix });
    const { app, log } = await start({ imports: [ScheduleModule.forRoot({ intervals }), module], providers: [Jobs] });
    app.get(SingletonJobs).add({ name: 'added', intervalMs: SHORT_MS }, () => void ran.push('added'));
    return { app, log, registry: app.get(SchedulerRegistry) };
  }

  /** As if the fleet had run each of them just an interval ago. */
  async function ranLongAgo(keyPrefix: string): Promise<void> {
    const { app } = await startApp(keyPrefix);
    const client = new Redis(redis().url);
    const records = ['named', 'Jobs.unnamed', 'broken', 'added'].map((name) => `${keyPrefix}:{cron:${name}}:job`);
    await eventually(async () => expect(await client.exists(...records)).toBe(records.length));
    await app.close();
    for (const record of records) await client.hset(record, 'stated', Date.now() - SHORT_MS);
    client.disconnect();
    ran = [];
  }

  it('runs soon after a start, and then its timer starts again', async () => {
    await ranLongAgo('first');
    const { registry, log } = await startApp('first');
    const timer = registry.getInterval('named') as NodeJS.Timeout & { _idleStart: number };
    const begun = timer._idleStart;
    await eventually(() => expect(ran.toSorted()).toEqual(['added', 'broken', 'named', 'unnamed']));
    expect(timer._idleStart).toBeGreaterThan(begun);
    await eventually(() => expect(log.at('error')).toEqual(['TypeError: no toner']));
  });

  it('does not run if its timer was deleted, or the intervals are switched off', async () => {
    await ranLongAgo('off');
    const { registry } = await startApp('off');
    for (const name of ['named', 'added', 'broken']) registry.deleteInterval(name);
    await startApp('off', false);
    await eventually(() => expect(ran).toContain('unnamed'));
    // The one that was added in the application without decorated intervals.
    await eventually(() => expect(ran.toSorted()).toEqual(['added', 'unnamed']));
  });
});

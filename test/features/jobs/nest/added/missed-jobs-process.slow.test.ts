import { Redis } from 'ioredis';
import { eventually } from '../../../../support/expect/eventually.js';
import { useRedis } from '../../../../support/redis/redis-server.js';
import { useJobFleets } from '../job-process.js';

const HOUR = 60 * 60 * 1000;
/** Of a job that does not fire while a test runs: half an hour from now. */
const hourly = `0 ${(new Date().getUTCMinutes() + 30) % 60} * * * *`;

describe('a @SingletonCron whose ticks were missed, in processes', () => {
  const redis = useRedis();
  const fleetOf = useJobFleets(() => redis().url);

  it('catches up though the process that reported them is killed before its run', async () => {
    const options = { onMissed: 'runOnce', leaseMs: 1_000 } as const;
    const setup = { kind: 'cron', jobLastsMs: 5, cronTime: hourly, options: { ...options, timeZone: 'UTC' } } as const;
    const first = fleetOf(setup);
    const [before] = await first.start(0);
    const { keyPrefix } = first;
    const client = new Redis(redis().url);
    const key = `${keyPrefix}:{cron:job}:last-tick`;
    await eventually(async () => expect(await client.exists(key)).toBe(1));
    // Simulates a downtime of all instances. Stops this one first, because it would catch up the ticks itself.
    await before!.signal('SIGTERM');
    await client.set(key, Date.now() - 3 * HOUR, 'KEEPTTL');
    client.disconnect();
    const dying = fleetOf({ ...setup, diesOnMissed: true, keyPrefix });
    const [teller] = await dying.start(0);
    await eventually(() => expect(teller!.isRunning).toBe(false));
    const others = fleetOf({ ...setup, keyPrefix });
    await others.start(0, 0);
    await eventually(() => expect(others.runs.length).toBeGreaterThan(0), 10_000);
    expect(teller!.runs).toEqual([]);
    expect(others.runs).toHaveLength(1);
    expect(others.processes.flatMap((each) => each.told('tickMissed'))).toEqual([]);
  }, 60_000);
});

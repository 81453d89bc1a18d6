import { ScheduleModule } from '@nestjs/schedule';
import { Redis } from 'ioredis';
import type { LockEvent } from 'nestjs-redis-lock';
import type { OptionsWithConnection } from '../../../../../lib/nest/module/module-options.js';
import { SingletonCron, SingletonJobs, type SingletonRun } from 'nestjs-redis-lock/schedule';
import { eventually } from '../../../../support/expect/eventually.js';
import { describeOnMachine } from '../../../../support/redis/describe-on-machine.js';
import { useRedisCluster } from '../../../../support/redis/redis-cluster.js';
import { startRedis, useRedis } from '../../../../support/redis/redis-server.js';
import { inMemory, useApps } from '../../../../nest/nest-apps.js';

const HOUR = 60 * 60 * 1000;
/** Of a job that does not fire while a test runs: half an hour from now. */
const hourly = `0 ${(new Date().getUTCMinutes() + 30) % 60} * * * *`;

/** The store of an application's jobs. */
interface Place {
  readonly options: Partial<OptionsWithConnection>;
  /** A plain client of the server that has this key. */
  adminOf(key: string): Promise<Redis>;
}

function itRemembersJobs(place: () => Place): void {
  const start = useApps();
  let keyPrefix: string;
  let prefixes = 0;
  let events: LockEvent[];
  let runs: SingletonRun[];

  class Jobs {
    @SingletonCron(hourly, { name: 'hourly', timeZone: 'UTC', onMissed: 'runOnce' })
    async hourly(run: SingletonRun): Promise<void> {
      runs.push(run);
    }

    @SingletonCron('* * * * * *', { name: 'each-second', timeZone: 'UTC' })
    async each(): Promise<void> {}
  }

  beforeEach(() => {
    keyPrefix = `places-${++prefixes}`;
    events = [];
    runs = [];
  });

  async function startApp(instanceId: string) {
    const observers = [(event: LockEvent) => void events.push(event)];
    const module = inMemory({ ...place().options, keyPrefix, instanceId, observers });
    const { app } = await start({ imports: [ScheduleModule.forRoot(), module], providers: [Jobs] });
    return { app, jobs: app.get(SingletonJobs) };
  }

  function told<T extends LockEvent['type']>(type: T, job: string): Extract<LockEvent, { type: T }>[] {
    return events.filter((event) => event.type === type && 'job' in event && event.job === job) as never;
  }

  /** Moves the last claim `agoMs` into the past. */
  async function lastClaimed(job: string, agoMs: number): Promise<void> {
    const key = `${keyPrefix}:{cron:${job}}:last-tick`;
    const admin = await place().adminOf(key);
    await eventually(async () => expect(await admin.exists(key)).toBe(1));
    await admin.set(key, Date.now() - agoMs, 'KEEPTTL');
  }

  it('runs once for missed ticks, and keeps the history', async () => {
    const { app } = await startApp('before');
    await lastClaimed('hourly', 0);
    // First, because it would make up for the ticks itself.
    await app.close();
    await lastClaimed('hourly', 3 * HOUR);
    events.length = 0;
    const [anna] = await Promise.all([startApp('anna'), startApp('ben')]);
    // One instance may hear that it has noted the missed ticks after the other one has made up for them.
    await eventually(() => {
      expect(told('tickFinished', 'hourly')).toHaveLength(1);
      expect(told('tickMissed', 'hourly')).toHaveLength(1);
    });
    expect(told('tickMissed', 'hourly')).toMatchObject([{ count: 3, catchUp: true }]);
    expect(runs).toMatchObject([{ job: 'hourly', missed: { count: 3 } }]);
    // The end is noted with the release of the lock, after the event.
    await eventually(async () => {
      const history = await anna.jobs.history('hourly');
      expect(history.map(({ outcome, catchUp }) => [outcome, catchUp])).toEqual([
        ['ok', true],
        ['missed', false],
        ['missed', false],
        ['missed', false],
      ]);
      expect(['anna', 'ben']).toContain(history[0]!.instanceId);
    });
    expect(await anna.jobs.get('hourly')).toMatchObject({ missed: 3, cron: hourly, timeZone: 'UTC' });
    expect((await anna.jobs.list()).map(({ name }) => name)).toEqual(['each-second', 'hourly']);
  }, 60_000);

  it('closes a gap before the next tick is claimed, long before the grace period ends', async () => {
    await startApp('anna');
    await eventually(() => expect(told('tickFinished', 'each-second').length).toBeGreaterThan(0));
    await lastClaimed('each-second', 10_000);
    const [missed] = await eventually(() => {
      const found = told('tickMissed', 'each-second');
      expect(found).toHaveLength(1);
      return found;
    });
    expect(missed!.count).toBeGreaterThanOrEqual(9);
    expect(missed!.catchUp).toBe(false);
    // The tick that found the gap runs.
    await eventually(() =>
      expect(told('tickStarted', 'each-second').map(({ tick }) => Date.parse(tick))).toContain(missed!.last + 1_000),
    );
  }, 60_000);

  it('pauses a job for every instance, and resumes it', async () => {
    const [anna, ben] = await Promise.all([startApp('anna'), startApp('ben')]);
    await eventually(() => expect(told('tickFinished', 'each-second').length).toBeGreaterThan(0));
    await anna.jobs.pause('each-second', { by: 'ann' });
    expect((await ben.jobs.get('each-second')).pause).toMatchObject({ by: 'ann' });
    const isPaused = () => told('tickSkipped', 'each-second').filter(({ reason }) => reason === 'paused');
    await eventually(() => expect(isPaused().length).toBeGreaterThan(0));
    await ben.jobs.runNow('each-second', { by: 'ben' });
    expect((await anna.jobs.history('each-second', { limit: 1 }))[0]).toMatchObject({ by: 'ben', outcome: 'ok' });
    const started = told('tickStarted', 'each-second').length;
    expect(await ben.jobs.resume('each-second')).toMatchObject({ by: 'ann' });
    await eventually(() => expect(told('tickStarted', 'each-second').length).toBeGreaterThan(started));
    const paused = new Set(isPaused().map(({ tick }) => tick));
    const missed = told('tickMissed', 'each-second').flatMap(({ ticks }) => ticks);
    expect(missed.filter((tick) => paused.has(new Date(tick).toISOString()))).toEqual([]);
  }, 60_000);
}

describeOnMachine('jobs on a Redis Cluster of three', () => {
  const cluster = useRedisCluster();
  itRemembersJobs(() => ({
    options: { connection: cluster().connection },
    adminOf: async (key) => (await cluster().primaryOf(key)).admin,
  }));
});

describe('jobs with grants that need a replica', () => {
  const primary = useRedis();
  let admin: Redis;
  let replica: Awaited<ReturnType<typeof startRedis>>;

  beforeAll(async () => {
    admin = new Redis(primary().url);
    await admin.config('SET', 'repl-diskless-sync-delay', 0);
    replica = await startRedis({ args: ['--replicaof', '127.0.0.1', `${admin.options.port}`] });
    await eventually(async () => expect(await admin.wait(1, 1_000)).toBe(1));
  });
  afterAll(async () => {
    admin.disconnect();
    await replica.stop();
  });

  itRemembersJobs(() => ({
    options: { connection: primary().url, durability: { replicas: 1, timeoutMs: 2_000 }, attemptTimeoutMs: 3_000 },
    adminOf: async () => admin,
  }));
});

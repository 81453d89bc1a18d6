import { LockStoreError } from '../../../../../lib/kernel/store/store-error.js';
import type { ServerHealth, StoreProbe } from '../../../../../lib/kernel/store/store-probe.js';
import { problemOf } from '../../../../../lib/redis/health/health-problems.js';
import { Deferred } from '../../../../../lib/kernel/util/promises.js';
import { settle } from '../../../../support/world/fake-clock.js';
import { type Instance, LockWorld } from '../../../../support/world/lock-world.js';

const WELL: ServerHealth = { roundTripMs: 1, problems: [] };
const AWAY: ServerHealth = { problems: [{ code: 'ECONNREFUSED', message: 'Away.', isFatal: true }] };
const SLIGHT: ServerHealth = { roundTripMs: 1, problems: [{ code: 'NOPERM', message: 'Some.', isFatal: false }] };

describe('locks.health()', () => {
  let world: LockWorld;
  let one: Instance;
  beforeEach(() => {
    world = new LockWorld();
    one = world.instance('one');
  });

  /** Sets the next replies of the store; a pending promise is a server that hangs. */
  function answer(needed: number, servers: (ServerHealth | Promise<ServerHealth>)[], more: Partial<StoreProbe> = {}) {
    const promised = servers.map((server) => Promise.resolve(server));
    one.store.probe = () => ({ topology: 'quorum', needed, servers: promised, problems: [], ...more });
  }

  it('is up in memory, and reports the activity of this process', async () => {
    expect(await one.locks.health()).toEqual({
      status: 'up',
      topology: 'memory',
      roundTripMs: 0,
      servers: { total: 1, needed: 1, up: 1 },
      problems: [],
      held: 0,
      waiting: 0,
      oldestWaitMs: 0,
      lastRenewalFailureMs: null,
      leaderships: [],
    });
  });

  it.each([
    ['all are well', [WELL, WELL, WELL], 'up', 3, []],
    ['one is slightly ill', [WELL, SLIGHT, WELL], 'degraded', 3, [{ code: 'NOPERM', message: 'Some.', server: 2 }]],
    ['a minority is away', [AWAY, WELL, WELL], 'degraded', 2, [{ code: 'ECONNREFUSED', message: 'Away.', server: 1 }]],
    ['a majority is away', [AWAY, WELL, AWAY], 'down', 1, [{ server: 1 }, { server: 3 }]],
  ])('two of three are needed, and %s', async (_, servers, status, up, problems) => {
    answer(2, servers);
    const health = await one.locks.health();
    expect(health).toMatchObject({ status, servers: { total: 3, needed: 2, up }, problems });
    expect(health.problems).toHaveLength(problems.length);
    expect(health.roundTripMs).toBe(status === 'down' ? null : 1);
  });

  it('takes the time of the slowest server that was needed', async () => {
    answer(2, [{ ...WELL, roundTripMs: 30 }, { ...WELL, roundTripMs: 2.123_456 }, WELL]);
    expect((await one.locks.health()).roundTripMs).toBe(2.12);
  });

  it('ignores a server whose reply takes longer than an attempt', async () => {
    answer(1, [{ ...WELL, roundTripMs: 1_001 }]);
    const { status, problems } = await one.locks.health();
    expect([status, problems[0]?.code]).toEqual(['down', 'SLOW']);
  });

  it('times out and clears its timer', async () => {
    answer(2, [WELL, new Promise<never>(() => {}), new Promise<never>(() => {})]);
    const timers = world.clock.timers;
    const health = one.locks.health({ timeoutMs: 50 });
    await world.clock.advance(49);
    let isOver = false;
    void health.then(() => (isOver = true));
    await settle();
    expect(isOver).toBe(false);
    await world.clock.advance(1);
    expect(await health).toMatchObject({ status: 'down', roundTripMs: null, servers: { up: 1 } });
    expect((await health).problems).toEqual(
      [2, 3].map((server) => ({ code: 'TIMEOUT', message: expect.any(String), server })),
    );
    expect(world.clock.timers).toBe(timers);
  });

  it('does not wait for the time limit if all have answered', async () => {
    const late = new Deferred<ServerHealth>();
    answer(1, [late.promise]);
    const timers = world.clock.timers;
    const health = one.locks.health();
    late.resolve(WELL);
    expect((await health).status).toBe('up');
    expect(world.clock.timers).toBe(timers);
  });

  it('reads a reply that arrived while the event loop was blocked', async () => {
    const late = new Deferred<ServerHealth>();
    answer(1, [late.promise]);
    const health = one.locks.health({ timeoutMs: 100 });
    // The timer looks at the clock, and sees a later time than its own.
    world.clock.stepMs = 20;
    await world.clock.advance(100);
    world.clock.stepMs = 0;
    late.resolve(WELL);
    expect((await health).status).toBe('up');
  });

  it('reports holds, waits and leaderships, but no candidate as a waiting call', async () => {
    const two = world.instance('two');
    const lease = await one.locks.acquire('stock');
    const waits = [two.locks.acquire('stock')];
    await world.clock.advance(300);
    waits.push(two.locks.acquire('stock'));
    const polls = two.locks.acquire('stock', { waitMs: 60_000, retry: { next: () => 10_000 } });
    one.locks.campaign('mailer');
    await world.clock.advance(10);
    two.locks.campaign('mailer');
    await world.clock.advance(700);
    expect(await one.locks.health()).toMatchObject({
      held: 2,
      waiting: 0,
      oldestWaitMs: 0,
      leaderships: [{ name: 'mailer', isLeader: true }],
    });
    expect(await two.locks.health()).toMatchObject({
      held: 0,
      waiting: 3,
      oldestWaitMs: 1_010,
      leaderships: [{ name: 'mailer', isLeader: false }],
    });
    await lease.release();
    await (await waits[0]!).release();
    await (await waits[1]!).release();
    await world.clock.advance(10_000);
    await (await polls).release();
  });

  it('has the duration of the oldest wait if that call polls', async () => {
    const two = world.instance('two');
    const lease = await one.locks.acquire('stock');
    const polls = two.locks.acquire('stock', { waitMs: 60_000, retry: { next: () => 10_000 } });
    await world.clock.advance(2_500);
    expect(await two.locks.health()).toMatchObject({ waiting: 1, oldestWaitMs: 2_500 });
    await lease.release();
    await world.clock.advance(10_000);
    await (await polls).release();
    expect(await two.locks.health()).toMatchObject({ waiting: 0, oldestWaitMs: 0 });
  });

  it('has the last failed renewal', async () => {
    const lease = await one.locks.acquire('stock', { leaseMs: 3_000 });
    one.store.next('renew', () => Promise.reject(new LockStoreError('notExecuted', 'away')));
    await world.clock.advance(1_000);
    await world.clock.advance(1_500);
    const { lastRenewalFailureMs, held } = await one.locks.health();
    expect([lastRenewalFailureMs, held]).toEqual([1_500, 1]);
    await lease.release();
  });

  it('is down from the start of the shutdown, and after it', async () => {
    const lease = await one.locks.acquire('stock');
    const shutdown = one.locks.shutdown(5_000);
    const draining = await one.locks.health();
    expect([draining.status, draining.problems.map(({ code }) => code)]).toEqual(['down', ['SHUTDOWN']]);
    await lease.release();
    await world.clock.advance(5_000);
    await shutdown;
    const closed = await one.locks.health();
    expect([closed.status, closed.problems.map(({ code }) => code)]).toEqual(['down', ['CLOSED']]);
  });

  it.each([{ timeoutMs: 0 }, { timeoutMs: 60_001 }, { timeoutMs: '1' }, { timeout: 5 }, 'fast'])(
    'refuses the options %j',
    async (options) => {
      await expect(one.locks.health(options as object)).rejects.toMatchObject({ code: 'INVALID_LOCK_OPTIONS' });
    },
  );

  it('acquires no lock and no place, and counts as no activity of a user', async () => {
    await one.locks.health();
    expect(one.store.commands).toEqual([]);
    expect(one.events).toEqual([]);
    expect(one.locks.stats()).toMatchObject({ resources: 0, leases: 0 });
  });
});

describe('an error in a health check', () => {
  it.each([
    ['READONLY You can’t write against a read only replica. script: 0', 'READONLY'],
    ["NOPERM User app has no permissions to run the 'set' command", 'NOPERM'],
    ["ERR The user executing the script can't run this command or subcommand", 'NOPERM'],
    ['OOM command not allowed when used memory > maxmemory', 'OOM'],
    ['LOADING Redis is loading the dataset in memory', 'LOADING'],
    ['MISCONF Redis is configured to save RDB snapshots', 'MISCONF'],
    ['FANCY a code of tomorrow, about s3cret', 'FANCY'],
    ['not connected to Redis at s3cret:6379 (connect ECONNREFUSED 10.1.2.3:6379)', 'ECONNREFUSED'],
    ['not connected to Redis at s3cret:6379 (getaddrinfo ENOTFOUND s3cret)', 'ENOTFOUND'],
    ['not connected to Redis at s3cret:6379 (WRONGPASS invalid username-password pair)', 'WRONGPASS'],
    ['not connected to Redis at s3cret:6379', 'NOT_CONNECTED'],
    ['the connection broke before the reply', 'NOT_CONNECTED'],
    ['no node of the Redis Cluster is known yet to have slot 7', 'NO_SERVER'],
    ['only 0 of 1 replicas have the changes after 50 ms (durability). Check s3cret', 'REPLICAS'],
  ])('%s', (message, code) => {
    const problem = problemOf(new LockStoreError('unknown', message));
    expect([problem.code, problem.isFatal]).toEqual([code, true]);
    // Hosts, users and keys stay here.
    expect(problem.message).not.toMatch(/s3cret|app|10\.1|6379/);
  });
});

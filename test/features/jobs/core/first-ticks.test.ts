import { RedisJobStore } from '../../../../lib/features/jobs/redis/redis-job-store.js';
import { MemoryLockStore } from '../../../../lib/memory/memory-lock-store.js';
import { claimsOn } from '../../../support/world/forgetful.js';
import { type Instance, LockWorld } from '../../../support/world/lock-world.js';

const SECOND = 1_000;
const MINUTE = 60 * SECOND;

/** One application with an interval, as the decorator and the scheduler make it. */
interface Application {
  readonly instance: Instance;
  /** When it fired, by its timer or before it. */
  readonly fired: number[];
}

let world: LockWorld;
/** When the job was run, and where. */
let runs: { readonly at: number; readonly on: string }[];
let started: number;

beforeEach(() => {
  world = new LockWorld();
  runs = [];
  started = 0;
});

function start(ms: number, { isForgetful = false, bootMs = 0 } = {}): Application {
  const name = `app-${++started}`;
  const instance = world.instance(name);
  const records = new RedisJobStore(new MemoryLockStore({ instanceId: name, server: world.server }));
  const jobs = isForgetful ? claimsOn(world.server) : records;
  const singletons = instance.locks.jobs.runs(jobs);
  const missed = instance.locks.jobs.missedTicks(jobs);
  const fired: number[] = [];
  let phase = 0;
  const fire = (): void => {
    fired.push(world.clock.now());
    const lock = { leaseMs: 30 * SECOND };
    const run = {
      job: 'poll',
      tick: 'interval',
      overlap: 'skip',
      onCrash: 'skip',
      claimTtlMs: 0.9 * ms,
      lock,
    } as const;
    void singletons.run(run, () => void runs.push({ at: world.clock.now(), on: name }), {
      next: world.clock.wallNow() + ms,
      onUnknown: () => missed.unknown('poll'),
    });
  };
  /** Restarts a timer that fires every `ms`. */
  const beginTimer = (): void => {
    const mine = ++phase;
    const ring = (): void => {
      if (instance.locks.closing.aborted || mine !== phase) return;
      fire();
      world.clock.setTimer(ring, ms);
    };
    world.clock.setTimer(ring, ms);
  };
  beginTimer();
  const bootedAt = world.clock.now() + bootMs;
  const fireFirst = (): boolean => {
    if (world.clock.now() < bootedAt) return false;
    beginTimer();
    fire();
    return true;
  };
  missed.add({
    job: 'poll',
    historySize: 0,
    graceMs: Infinity,
    onMissed: 'skip',
    catchUpWindowMs: 0,
    schedule: () => undefined,
    interval: { ms, fire: fireFirst },
    runOwed: async () => {},
  });
  missed.start();
  return { instance, fired };
}

const stop = ({ instance }: Application): Promise<void> => instance.locks.shutdown(0);

const gaps = (): number[] => runs.slice(1).map(({ at }, index) => at - runs[index]!.at);

describe('an interval', () => {
  it('runs about once an interval if every application has a shorter life', async () => {
    const ms = 6 * SECOND;
    let living = start(ms);
    // Each is started before the one before it is stopped.
    for (let restart = 0; restart < 60; restart++) {
      await world.clock.advance(4 * SECOND);
      const next = start(ms);
      await world.clock.advance(SECOND);
      await stop(living);
      living = next;
    }
    expect(runs.length).toBeGreaterThan((0.75 * 300) / 6);
    expect(Math.min(...gaps())).toBeGreaterThanOrEqual(0.9 * ms);
    expect(Math.max(...gaps())).toBeLessThan(2 * ms);
  });

  it('runs soon after a start if the last run was long ago, and not immediately', async () => {
    const ms = 10 * MINUTE;
    const before = start(ms);
    await world.clock.advance(ms + SECOND);
    await stop(before);
    await world.clock.advance(5 * ms);
    const at = world.clock.now();
    start(ms);
    await world.clock.advance(30 * SECOND);
    expect(runs.at(-1)!.on).toBe('app-2');
    expect(runs.at(-1)!.at).toBeGreaterThan(at + SECOND);
    // Restarts its timer then.
    await world.clock.advance(4 * ms);
    expect(gaps().slice(1)).toEqual([ms, ms, ms, ms]);
  });

  it('runs when the scheduler has its timer, if the application starts slowly', async () => {
    const ms = MINUTE;
    const before = start(ms);
    await world.clock.advance(ms + SECOND);
    await stop(before);
    await world.clock.advance(ms);
    start(ms, { bootMs: 20 * SECOND });
    await world.clock.advance(20 * SECOND);
    expect(runs).toHaveLength(1);
    await world.clock.advance(2 * SECOND);
    expect(runs).toHaveLength(2);
  });

  it('runs once, without a burst of claims, if a fleet starts together after a downtime', async () => {
    const ms = 10 * MINUTE;
    const before = start(ms);
    await world.clock.advance(ms + SECOND);
    await stop(before);
    await world.clock.advance(ms);
    const fleet = Array.from({ length: 50 }, () => start(ms));
    await world.clock.advance(ms - 2 * SECOND);
    expect(runs).toHaveLength(2);
    const fired = fleet.flatMap((each) => each.fired);
    expect(fired.length).toBeLessThanOrEqual(50);
    // Over half a minute, or not at all.
    const perSecond = fired.map((at) => fired.filter((other) => other >= at && other < at + SECOND).length);
    expect(Math.max(...perSecond)).toBeLessThan(10);
    await world.clock.advance(3 * ms);
    expect(runs).toHaveLength(5);
    expect(Math.min(...gaps())).toBeGreaterThanOrEqual(0.9 * ms);
  });

  it('follows its timer if the store keeps no records', async () => {
    const ms = 6 * SECOND;
    for (let restart = 0; restart < 10; restart++) {
      const application = start(ms, { isForgetful: true });
      await world.clock.advance(5 * SECOND);
      await stop(application);
    }
    expect(runs).toEqual([]);
    start(ms, { isForgetful: true });
    await world.clock.advance(ms);
    expect(runs).toHaveLength(1);
  });
});

import type { TickSchedule } from '../../../../lib/features/jobs/core/watched-job.js';
import { RedisJobStore } from '../../../../lib/features/jobs/redis/redis-job-store.js';
import { MemoryLockStore } from '../../../../lib/memory/memory-lock-store.js';
import { LockWorld, eventsOf } from '../../../support/world/lock-world.js';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const LOCK = { leaseMs: 30_000 };

let world: LockWorld;
let warnings: string[];
let runs: string[];

beforeEach(() => {
  world = new LockWorld();
  warnings = [];
  runs = [];
});

/** An hourly tick, `afterMs` into the hour. */
function hourly(text: string, afterMs: number) {
  const after = (time: number): number => Math.floor((time - afterMs) / HOUR + 1) * HOUR + afterMs;
  return {
    text,
    after,
    around: (tick) => ({ before: tick - HOUR, after: tick + HOUR }),
    between: async () => ({ count: 0, ticks: [] }),
  } satisfies TickSchedule;
}

/** An instance that has the job by a schedule, or at a date, and is up. */
async function start(name: string, schedule?: TickSchedule, date?: number, isOfClass = true) {
  const instance = world.instance(name, { warn: (line) => warnings.push(`${name}: ${line}`) });
  const jobs = new RedisJobStore(new MemoryLockStore({ instanceId: name, server: world.server }));
  const missed = instance.locks.jobs.missedTicks(jobs);
  const singletons = instance.locks.jobs.runs(jobs);
  missed.add({
    job: 'bill',
    historySize: 0,
    graceMs: schedule ? MINUTE : Infinity,
    onMissed: 'skip',
    catchUpWindowMs: 0,
    date: date === undefined ? undefined : { isOfClass, at: () => date },
    schedule: () => schedule,
    runOwed: async () => {},
  });
  missed.start();
  await world.clock.advance(1_000);
  /** Its timer fires. */
  const fire = async (at: number): Promise<void> => {
    const options = {
      job: 'bill',
      tick: `${at}`,
      overlap: 'skip',
      onCrash: 'skip',
      claimTtlMs: HOUR,
      lock: LOCK,
    } as const;
    const due = { at, maxClockSkewMs: 10 * MINUTE };
    const run = (): void => void runs.push(name);
    if (!schedule) {
      await singletons.run({ ...options, due }, run, { isDate: missed.hasDate('bill', at) });
      return;
    }
    const { before: previous, after: next } = schedule.around(at);
    await singletons.run({ ...options, due }, run, {
      schedule: schedule.text,
      previous,
      next,
      onGap: async () => false,
      onOther: (other) => missed.differs('bill', schedule, other),
    });
  };
  return { instance, fire, records: instance.locks.jobs.records(jobs) };
}

type Started = Awaited<ReturnType<typeof start>>;

/** Each instance fires its ticks for so many hours. */
async function pass(
  hours: number,
  ...instances: readonly (readonly [Started, ReturnType<typeof hourly>])[]
): Promise<void> {
  const until = world.clock.wallNow() + hours * HOUR;
  for (;;) {
    const now = world.clock.wallNow();
    const next = Math.min(...instances.map(([, schedule]) => schedule.after(now)));
    if (next > until) return;
    await world.clock.advance(next - now);
    for (const [{ fire }, schedule] of instances) if (schedule.after(next - 1) === next) await fire(next);
  }
}

describe('instances with different schedules', () => {
  const utc = hourly('0 1 * * * UTC', 0);
  const vienna = hourly('0 1 * * * Europe/Vienna', 30 * MINUTE);

  it('are reported once in the fleet, with both schedules and instances, and listed', async () => {
    const [anna, ben, cleo] = [await start('anna', utc), await start('ben', utc), await start('cleo', vienna)];
    await pass(10, [anna, utc], [ben, utc], [cleo, vienna]);
    expect(new Set(runs).size).toBeGreaterThan(1);
    expect(warnings).toEqual([
      expect.stringMatching(
        /^(anna|ben): The job "bill" is scheduled as "0 1 \* \* \*" in UTC here, and as "0 1 \* \* \*" in Europe\/Vienna on "cleo"\. .*#instances-disagree-about-a-job\.$/,
      ),
    ]);
    const [job] = await cleo.records.list(new Set());
    expect(job).toMatchObject({
      timeZone: 'Europe/Vienna',
      otherSchedule: { cron: '0 1 * * *', timeZone: 'UTC', instanceId: expect.stringMatching(/^(anna|ben)$/) },
    });
    // The instances with the wrong zone are gone.
    await pass(60, [cleo, vienna]);
    expect((await cleo.records.get('bill', new Set())).otherSchedule).toBeUndefined();
  });

  it('are not reported during a deployment, after which the old release runs for less than an hour', async () => {
    const old = await start('old', utc);
    await pass(3, [old, utc]);
    const next = await start('next', vienna);
    await pass(0.9, [old, utc], [next, vienna]);
    await pass(30, [next, vienna]);
    expect(warnings).toEqual([]);
    expect((await next.records.get('bill', new Set())).otherSchedule).toBeUndefined();
  });
});

describe('instances with different single dates', () => {
  it.each([
    ['that was due first, if they start together', true, ['anna']],
    ['that was registered last, if the dates are not in the code', false, ['anna', 'ben']],
  ])('run the job at the one %s', async (_, isOfClass, expected) => {
    const now = world.clock.wallNow();
    const [first, second] = [now + 2_000, now + 4_000];
    const anna = await start('anna', undefined, first, isOfClass);
    await world.clock.advance(1_500);
    await anna.fire(first);
    const ben = await start('ben', undefined, second, isOfClass);
    await world.clock.advance(2_000);
    await ben.fire(second);
    expect(runs).toEqual(expected);
  });

  it('refuse one that is no longer registered, with an event', async () => {
    const now = world.clock.wallNow();
    const [first, second] = [now + 10_000, now + 20_000];
    const anna = await start('anna', undefined, first);
    const ben = await start('ben', undefined, second);
    await world.clock.advance(10_000);
    await anna.fire(first);
    await world.clock.advance(10_000);
    await ben.fire(second);
    expect(runs).toEqual(['ben']);
    expect(eventsOf(anna.instance, 'tickSkipped')).toMatchObject([{ reason: 'otherDate', registered: second }]);
  });
});

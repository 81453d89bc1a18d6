import type { JobRecords } from '../../../../lib/features/jobs/core/job-records.js';
import { catchUpTick, type JobState } from '../../../../lib/features/jobs/core/job-state.js';
import { type JobStore, withoutRecords } from '../../../../lib/features/jobs/core/job-store.js';
import type { SingletonRunOptions, SingletonWork } from '../../../../lib/features/jobs/core/singleton-run-options.js';
import type { SingletonRuns } from '../../../../lib/features/jobs/core/singleton-runs.js';
import type { TickSchedule } from '../../../../lib/features/jobs/core/watched-job.js';
import { RedisJobStore } from '../../../../lib/features/jobs/redis/redis-job-store.js';
import { LockUnavailableError } from '../../../../lib/kernel/api/errors.js';
import type { LockEvent } from '../../../../lib/kernel/events/events.js';
import { LockClient } from '../../../../lib/kernel/lock-client.js';
import { LockStoreError } from '../../../../lib/kernel/store/store-error.js';
import { MemoryLockStore } from '../../../../lib/memory/memory-lock-store.js';
import { MemoryServer } from '../../../../lib/memory/memory-server.js';
import { FakeClock } from '../../../support/world/fake-clock.js';
import { eventsOf, LockWorld } from '../../../support/world/lock-world.js';

const JOB = 'cron:report';
const LEASE_MS = 9_000;
const MINUTE_MS = 60_000;
const SCHEDULE = '* * * * * UTC';

describe('the history of a job', () => {
  let clock: FakeClock;
  let server: MemoryServer;
  let runs: SingletonRuns;
  let jobs: JobStore;
  let locks: LockClient;
  const events: LockEvent[] = [];

  beforeEach(() => {
    clock = new FakeClock();
    server = new MemoryServer(clock);
    events.length = 0;
    ({ runs, jobs, locks } = instance('anna'));
  });

  function instance(instanceId: string, change = (store: JobStore): JobStore => store) {
    const store = new MemoryLockStore({ instanceId, server });
    const client = new LockClient({ store, clock, observers: [(event) => void events.push(event)] });
    const jobStore = change(new RedisJobStore(store));
    return {
      locks: client,
      jobs: jobStore,
      runs: client.jobs.runs(jobStore),
    };
  }

  function optionsOf(changes: Partial<SingletonRunOptions> = {}): SingletonRunOptions {
    const lock = { leaseMs: LEASE_MS, waitMs: 3_000 };
    return { job: 'report', tick: 'now', overlap: 'skip', onCrash: 'skip', claimTtlMs: 600_000, lock, ...changes };
  }

  async function run(
    work: SingletonWork<unknown>,
    changes: Partial<SingletonRunOptions> = {},
  ): Promise<JobState['runs'][number]> {
    await runs.run(optionsOf(changes), work).catch(() => undefined);
    const [last] = await history();
    return last!;
  }

  async function history(): Promise<readonly JobState['runs'][number][]> {
    return (await jobs.look([JOB], 100))[0]!.runs;
  }

  it('has one run of a tick whose process was blocked past the lease, between the reply and the work', async () => {
    const at = clock.wallNow();
    const due = { at, maxClockSkewMs: MINUTE_MS };
    let stops = 1;
    const onAccounted = (): void => {
      if (stops-- > 0) clock.block(LEASE_MS);
    };
    const tick = new Date(at).toISOString();
    expect(await runs.run(optionsOf({ tick, due }), () => 'ran', { onAccounted })).toBe('ran');
    expect(await history()).toMatchObject([{ tick, outcome: 'ok', startedAt: at + LEASE_MS, rerun: false }]);
    // The expired lease was not reported to any caller.
    expect(events.map(({ type }) => type)).toEqual(['acquired', 'tickStarted', 'tickFinished', 'released']);
  });

  it.each(['skip', 'retry'] as const)(
    'has it too with a lease that is over on the way to the work, with onCrash: %s',
    async (onCrash) => {
      const at = clock.wallNow();
      const due = { at, maxClockSkewMs: MINUTE_MS };
      const tick = new Date(at).toISOString();
      let stops = 0;
      const onUnknown = (): void => {
        if (stops++ === 0) clock.block(LEASE_MS);
      };
      const plan = { schedule: SCHEDULE, next: at + MINUTE_MS, onUnknown };
      expect(await runs.run(optionsOf({ tick, due, onCrash }), () => 'ran', plan)).toBe('ran');
      expect(stops).toBeGreaterThan(0);
      expect(await history()).toMatchObject([{ tick, outcome: 'ok', startedAt: at + LEASE_MS, rerun: false }]);
      expect(events.filter(({ type }) => type === 'tickStarted')).toHaveLength(1);
    },
  );

  it('has the outcome of a run, and its time by the clock of the store', async () => {
    const startedAt = clock.wallNow();
    const ended = await run(async () => {
      await clock.advance(1_500);
    });
    expect(ended).toMatchObject({
      tick: 'now',
      outcome: 'ok',
      startedAt,
      endedAt: startedAt + 1_500,
      instanceId: 'anna',
    });
    expect(server.members(JOB)).toEqual([]);
  });

  it('has an error with its code, and its message only as an option', async () => {
    const fail = () => Promise.reject(Object.assign(new TypeError('the password is 123'), { code: 'EACCES' }));
    const quiet = await run(fail);
    expect(quiet).toMatchObject({ outcome: 'error', errorName: 'TypeError', errorCode: 'EACCES' });
    expect(quiet.errorMessage).toBeUndefined();
    const told = await run(fail, { tick: 'next', historyMessages: true });
    expect(told).toMatchObject({ errorName: 'TypeError', errorMessage: 'the password is 123' });
  });

  it.each<[string, unknown, Partial<JobState['runs'][number]>]>([
    ['a long message, cut at a character', new Error('ü'.repeat(300)), { errorMessage: 'ü'.repeat(100) }],
    ['half of an emoji', new Error(`${'x'.repeat(199)}😀`), { errorMessage: 'x'.repeat(199) }],
    ['control characters', new Error('a\u001b[31m\nb'), { errorMessage: 'a\\u001b[31m\\nb' }],
    ['a long name', Object.assign(new Error('x'), { name: 'N'.repeat(1_000) }), { errorName: 'N'.repeat(100) }],
    ['a code that is a number', Object.assign(new Error('x'), { code: 42 }), { errorCode: '42' }],
    ['a code that is an object', Object.assign(new Error('x'), { code: {} }), { errorName: 'Error' }],
    ['a text', 'just a text', { errorName: 'string', errorMessage: 'just a text' }],
    ['nothing', undefined, { errorName: 'undefined' }],
    [
      'an error whose properties throw',
      Object.defineProperty(new Error('x'), 'name', {
        get() {
          throw new Error('hostile');
        },
      }),
      { errorMessage: 'x' },
    ],
  ])('accepts any error of a user: %s', async (_what, thrown, expected) => {
    const ended = await run(() => Promise.reject(thrown), { historyMessages: true });
    expect(ended).toMatchObject({ outcome: 'error', ...expected });
    for (const text of [ended.errorName, ended.errorCode, ended.errorMessage]) {
      expect(Buffer.byteLength(text ?? '')).toBeLessThanOrEqual(200);
    }
  });

  it('reports a run as lost if its lease ended first', async () => {
    const ended = await run(
      async () => {
        const [state] = await jobs.look([JOB], 1);
        await locks.operators.forceRelease(JOB, { fencingToken: state!.running!.fencingToken! });
        await clock.advance(LEASE_MS);
      },
      { lock: { leaseMs: LEASE_MS, waitMs: 3_000 } },
    );
    expect(ended.outcome).toBe('lost');
  });

  it('records the end although the first commands for it fail', async () => {
    let failures = 2;
    const shaky = instance('ben', (inner) => {
      const end: JobStore['end'] = (...args) =>
        failures-- > 0 ? Promise.reject(new LockStoreError('unknown', 'no answer')) : inner.end(...args);
      return Object.assign(Object.create(inner) as JobStore, { end });
    });
    await shaky.runs.run(optionsOf(), () => undefined);
    await clock.advance(1_000);
    expect(await history()).toMatchObject([{ instanceId: 'ben', outcome: 'ok' }]);
    expect(server.members(JOB)).toEqual([]);
  });

  it('has as many runs as the option allows', async () => {
    for (const tick of ['1', '2', '3']) await run(() => undefined, { tick, historySize: 2 });
    expect((await history()).map(({ tick }) => tick)).toEqual(['3', '2']);
  });

  it('has manual runs', async () => {
    expect(await run(() => undefined, { manual: true })).toMatchObject({ manual: true, outcome: 'ok' });
  });

  it('is not kept on a store that refuses it, and the ticks run', async () => {
    const { runs: plain } = instance('ben', (inner) => withoutRecords('none here', inner));
    expect(await plain.run(optionsOf(), () => 'ran')).toBe('ran');
    expect(await history()).toEqual([]);
  });

  it('has the reason of the caller for a skipped tick of a paused job', async () => {
    await jobs.pause(JOB, { by: 'Ada' });
    expect(await runs.run(optionsOf(), () => 'ran')).toBeUndefined();
    expect(events).toContainEqual(expect.objectContaining({ type: 'tickSkipped', reason: 'paused', by: 'Ada' }));
  });

  describe('if ticks were missed before a tick', () => {
    const at = (minutes: number): number => Math.floor(clock.wallNow() / MINUTE_MS) * MINUTE_MS + minutes * MINUTE_MS;
    const planOf = (time: number) => ({ schedule: SCHEDULE, previous: time - MINUTE_MS, next: time + MINUTE_MS });
    const tickOf = (time: number) =>
      optionsOf({ tick: new Date(time).toISOString(), due: { at: time, maxClockSkewMs: 60 * MINUTE_MS } });

    beforeEach(() => runs.run(tickOf(at(-5)), () => undefined, planOf(at(-5))));

    it('they are accounted first, and then the tick runs', async () => {
      const gaps: number[] = [];
      const onGap = (after: number) => {
        gaps.push(after);
        const missed = { resource: JOB, schedule: SCHEDULE, after, ticks: [at(-1)], historySize: 10, runWithinMs: 1e9 };
        return jobs.note(missed).then(() => true);
      };
      expect(await runs.run(tickOf(at(0)), () => 'ran', { ...planOf(at(0)), onGap })).toBe('ran');
      expect(gaps).toEqual([at(-5)]);
      expect(await history()).toMatchObject([{ outcome: 'ok' }, { outcome: 'missed' }, { outcome: 'ok' }]);
    });

    /** Accounts them only after so many failures. */
    function failing(times: number, ticks = [-4, -3, -2, -1].map(at)) {
      let failures = 0;
      const cause = new LockStoreError('unknown', 'the answer was lost');
      const onGap = async (after: number) => {
        if (failures++ < times) throw new LockUnavailableError(JOB, 'record missed ticks of', 'failed', cause);
        await jobs.note({ resource: JOB, schedule: SCHEDULE, after, ticks, historySize: 10 });
        return true;
      };
      return { onGap, failures: () => failures, cause };
    }

    it('they are accounted within waitMs, despite failures, before the tick runs', async () => {
      const { onGap } = failing(20);
      const result = runs.run(tickOf(at(0)), () => 'ran', { ...planOf(at(0)), onGap });
      await clock.advance(2_000);
      expect(await result).toBe('ran');
      expect((await history()).map(({ outcome }) => outcome)).toEqual(['ok', ...Array(4).fill('missed'), 'ok']);
    });

    it('and they cannot be accounted within waitMs, the tick is not claimed: all of them can be reported later', async () => {
      const { onGap, failures, cause } = failing(Infinity);
      const before = (await jobs.look([JOB], 0))[0]!.last;
      const result = runs.run(tickOf(at(0)), () => 'ran', { ...planOf(at(0)), onGap }).catch((error: unknown) => error);
      await clock.advance(3_000);
      expect(await result).toMatchObject({ name: 'LockUnavailableError', cause });
      expect(failures()).toBeGreaterThan(30);
      expect(events).toContainEqual(expect.objectContaining({ type: 'tickFailed' }));
      expect((await jobs.look([JOB], 0))[0]!.last).toBe(before);
      await clock.advance(MINUTE_MS);
      const later = failing(0, [-5, -4, -3, -2, -1].map(at));
      await runs.run(tickOf(at(0)), () => 'ran', { ...planOf(at(0)), onGap: later.onGap });
      expect((await jobs.look([JOB], 0))[0]).toMatchObject({ missed: 5 });
    });

    it('and the store wrongly reports them as accounted, the tick is not claimed', async () => {
      const onGap = async () => true;
      const result = runs.run(tickOf(at(0)), () => 'ran', { ...planOf(at(0)), onGap }).catch((error: unknown) => error);
      await clock.advance(3_000);
      expect(await result).toMatchObject({ name: 'LockUnavailableError' });
    });

    it('and the application shuts down before that, the tick is not claimed', async () => {
      const { onGap } = failing(Infinity);
      const result = runs.run(tickOf(at(0)), () => 'ran', { ...planOf(at(0)), onGap });
      await clock.advance(100);
      await locks.shutdown(0);
      expect(await result).toBeUndefined();
      expect(events).not.toContainEqual(expect.objectContaining({ type: 'tickFailed' }));
    });

    it('and the tick is early by the clock of the store, it waits until it is due: they are not missed yet', async () => {
      const gaps: number[] = [];
      const time = at(0) + 20_000;
      const { onGap } = failing(0, [-4, -3, -2, -1, 0].map(at));
      const plan = { ...planOf(time), previous: at(0) };
      const result = runs.run(tickOf(time), () => 'ran', {
        ...plan,
        onGap: (after) => {
          gaps.push(clock.wallNow());
          return onGap(after);
        },
      });
      const leftMs = time - clock.wallNow();
      expect(leftMs).toBeGreaterThan(3_000);
      await clock.advance(leftMs - 1);
      expect(gaps).toEqual([]);
      await clock.advance(1);
      expect(await result).toBe('ran');
      expect(gaps).toEqual([time]);
    });

    it('and another instance claims them before the early tick is due, nothing is reported', async () => {
      const time = at(0) + 20_000;
      const onGap = async () => Promise.reject(new Error('told'));
      const result = runs.run(tickOf(time), () => 'ran', { ...planOf(time), previous: at(0), onGap });
      await clock.advance(1_000);
      const { runs: healthy } = instance('ben');
      await healthy.run(tickOf(at(0)), () => 'ran by ben', { ...planOf(at(0)), previous: at(-5) });
      await clock.advance(time - clock.wallNow());
      expect(await result).toBe('ran');
      expect((await history()).map(({ instanceId }) => instanceId)).toEqual(['anna', 'ben', 'anna']);
    });

    it('and the application shuts down while an early tick waits, it ends', async () => {
      const onGap = async () => true;
      const time = at(0) + 20_000;
      const result = runs.run(tickOf(time), () => 'ran', { ...planOf(time), previous: at(0), onGap });
      await clock.advance(1_000);
      await locks.shutdown(0);
      expect(await result).toBeUndefined();
    });

    it.each([
      ['the schedule has none', async () => false],
      ['they cannot be computed', () => Promise.reject(new Error('cron reached maximum iterations'))],
    ])('and %s, the tick runs', async (_, onGap) => {
      expect(await runs.run(tickOf(at(0)), () => 'ran', { ...planOf(at(0)), onGap })).toBe('ran');
    });

    it('a catch-up receives its missed ticks', async () => {
      const ticks = [at(-3), at(-2)];
      await jobs.note({
        resource: JOB,
        schedule: SCHEDULE,
        after: at(-5),
        ticks,
        historySize: 10,
        runWithinMs: 1e9,
      });
      const tick = catchUpTick(at(-2));
      const work: SingletonWork<unknown> = (_lease, { missed }) => missed;
      const span = { count: 2, first: at(-3), last: at(-2) };
      expect(await runs.run(optionsOf({ tick }), work, { kind: 'catchUp' })).toEqual(span);
      expect(await runs.run(optionsOf({ tick }), work, { kind: 'catchUp' })).toBeUndefined();
      expect((await history())[0]).toMatchObject({ tick, catchUp: true, outcome: 'ok' });
    });
  });
});

describe('the list of jobs', () => {
  let clock: FakeClock;
  let server: MemoryServer;

  beforeEach(() => {
    clock = new FakeClock();
    server = new MemoryServer(clock);
  });

  function instance(instanceId: string): { jobs: JobStore; records: JobRecords } {
    const store = new MemoryLockStore({ instanceId, server });
    const jobs = new RedisJobStore(store);
    return { jobs, records: new LockClient({ store, clock }).jobs.records(jobs) };
  }

  async function startFleet(size: number): Promise<JobRecords> {
    for (let number = 1; number <= size; number++) {
      await clock.advance(1);
      await instance(`app-${number}`).jobs.register([{ resource: 'cron:report' }]);
    }
    return instance('operator').records;
  }

  const namesOf = (from: number, to: number) =>
    Array.from({ length: from - to + 1 }, (_, index) => ({
      instanceId: `app-${from - index}`,
      seenAt: clock.wallNow() - index,
    }));

  it('names the ten instances seen last, and counts all; get() names all', async () => {
    const records = await startFleet(12);
    const [listed] = await records.list(new Set());
    expect(listed).toMatchObject({ instanceCount: 12, instances: namesOf(12, 3) });
    const job = await records.get('report', new Set());
    expect(job).toMatchObject({ instanceCount: 12, instances: namesOf(12, 1) });
  });

  it('says when a job is due, unless it is still paused then', async () => {
    const { jobs, records } = instance('app');
    const next = clock.wallNow() + 60_000;
    await jobs.register([{ resource: 'cron:report', schedule: '0 3 * * * ', next }]);
    const dueAfter = async (pause: Parameters<JobRecords['pause']>[2]) => {
      await records.pause('report', new Set(), pause);
      return (await records.get('report', new Set())).nextDueAt;
    };
    expect(await dueAfter({ until: next - 1_000 })).toBe(next);
    expect(await dueAfter({ until: next + 1_000 })).toBeUndefined();
    expect(await dueAfter({})).toBeUndefined();
    await records.resume('report', new Set());
    expect((await records.get('report', new Set())).nextDueAt).toBe(next);
  });

  it('neither names nor counts this instance if it has removed the job', async () => {
    await startFleet(3);
    const { records } = instance('app-2');
    const [listed] = await records.list(new Set());
    expect(listed!.instances.map((each) => each.instanceId)).toEqual(['app-3', 'app-1']);
    expect(listed!.instanceCount).toBe(2);
    expect((await records.list(new Set(['report'])))[0]!.instanceCount).toBe(3);
  });

  it('sorts many jobs by name, though Redis returns a part of them at a time', async () => {
    const { jobs, records } = instance('app');
    const names = Array.from({ length: 950 }, (_, index) => `job-${index}`);
    await jobs.register(names.map((name) => ({ resource: `cron:${name}` })));
    const listed = await records.list(new Set());
    expect(listed.map(({ name }) => name)).toEqual(names.toSorted());
  });
});

describe('instances with other schedules', () => {
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
});

import type {
  JobTicks,
  SingletonRun,
  SingletonRunOptions,
} from '../../../../lib/features/jobs/core/singleton-run-options.js';
import { LockBusyError } from '../../../../lib/kernel/api/busy-errors.js';
import { InvalidLockOptionsError, LockShutdownError } from '../../../../lib/kernel/api/errors.js';
import { LockReentryError } from '../../../../lib/kernel/api/lease-errors.js';
import { gate, track } from '../../../support/expect/tracked.js';
import { ProcessClock } from '../../../support/simulation/simulated-process.js';
import { eventsOf } from '../../../support/world/lock-world.js';
import { answered, failing, replyLost } from '../../../support/world/scripted-store.js';
import { Fleet, LEASE_MS, type Member, WAIT_MS } from '../../../support/world/singleton-fleet.js';

describe('a tick that fires on every instance', () => {
  let fleet: Fleet;
  let members: Member[];
  let anna: Member;
  let ben: Member;

  beforeEach(() => {
    fleet = new Fleet();
    members = fleet.members('anna', 'ben', 'cleo', 'dora', 'emil');
    [anna, ben] = members as [Member, Member];
  });

  it('runs on one of them, and the others return nothing, silently', async () => {
    const calls = members.map((member) => member.fire('09:00'));
    await fleet.clock.advance(1_000);
    expect(fleet.runs.map(({ on }) => on)).toEqual(['anna']);
    expect(calls.map(({ value }) => value)).toEqual(['09:00 by anna', undefined, undefined, undefined, undefined]);
    expect(fleet.holder).toBeUndefined();
  });

  it('runs once when the reply to the claim is lost and the claim is sent again', async () => {
    anna.tickStore.next('claim', replyLost, replyLost);
    anna.fire('09:00');
    const other = ben.fire('09:00');
    await fleet.clock.advance(10_000);
    expect(anna.tickStore.claims).toHaveLength(3);
    expect(new Set(anna.tickStore.claims.map(({ claim }) => claim.owner.id)).size).toBe(1);
    expect(fleet.runs).toHaveLength(1);
    expect(other.value).toBeUndefined();
  });

  it('emits events: started and finished on one, skipped on the others', async () => {
    for (const member of members) member.fire('09:00', 250);
    await fleet.clock.advance(1_000);
    expect(eventsOf(anna.instance, 'tickStarted')).toMatchObject([
      { type: 'tickStarted', job: 'report', tick: '09:00', rerun: false },
    ]);
    expect(eventsOf(anna.instance, 'tickFinished')).toMatchObject([
      { type: 'tickFinished', job: 'report', tick: '09:00', ranMs: 250 },
    ]);
    for (const { instance } of members.slice(1)) {
      expect(instance.events).toMatchObject([{ type: 'tickSkipped', job: 'report', tick: '09:00', reason: 'claimed' }]);
    }
  });

  it('rethrows the error of the job, as the same object, and counts as run', async () => {
    const trouble = new TypeError('no toner');
    const call = anna.run('09:00', () => Promise.reject(trouble), { onCrash: 'retry' });
    const other = ben.fire('09:00', 5, { onCrash: 'retry' });
    await fleet.clock.advance(60_000);
    expect(call.error).toBe(trouble);
    expect(other).toMatchObject({ state: 'fulfilled', value: undefined });
    expect(fleet.runs).toHaveLength(0);
  });

  it.each(['skip', 'retry'] as const)(
    'begins under a new lease where the first is lost by then (onCrash: %s)',
    async (onCrash) => {
      let stood = false;
      anna.instance.locks.observers.add(({ type }) => {
        if (type !== 'acquired' || stood) return;
        stood = true;
        fleet.clock.block(LEASE_MS);
      });
      const lock = { leaseMs: LEASE_MS, maxHoldMs: 10 * LEASE_MS };
      const call = anna.fire('09:00', 5, { onCrash, lock });
      await fleet.clock.advance(2 * LEASE_MS);
      expect(call).toMatchObject({ state: 'fulfilled', value: '09:00 by anna' });
      expect(stood).toBe(true);
      // It is not run again where ticks of runners that died are.
      await fleet.clock.advance(20 * LEASE_MS);
      ben.fire('09:00', 5, { onCrash });
      await fleet.clock.advance(LEASE_MS);
      expect(eventsOf(anna.instance, 'tickStarted')).toHaveLength(1);
      expect(fleet.runs).toHaveLength(1);
    },
  );

  it('passes its lease to the job, which lasts as long as the job, even if leases are fixed by default', async () => {
    const carl = fleet.member('carl', { defaults: { watchdog: false } });
    let wasHeld: boolean | undefined;
    carl.run('09:00', async (lease) => {
      expect(carl.instance.locks.current('cron:report')).toBe(lease);
      await new Promise<void>((resolve) => fleet.clock.setTimer(resolve, 10 * LEASE_MS));
      wasHeld = lease.isHeld();
    });
    await fleet.clock.advance(11 * LEASE_MS);
    expect(wasHeld).toBe(true);
  });
});

describe('a tick that fires while an earlier run has not ended', () => {
  let fleet: Fleet;
  let anna: Member;
  let ben: Member;
  let cleo: Member;

  function start(overlap: 'skip' | 'wait') {
    fleet = new Fleet({ overlap });
    [anna, ben, cleo] = fleet.members('anna', 'ben', 'cleo') as [Member, Member, Member];
  }

  it("is dropped for the whole fleet (overlap: 'skip')", async () => {
    start('skip');
    anna.fire('09:00', 30_000);
    await fleet.clock.advance(29_990);
    for (const member of [ben, cleo, anna]) member.fire('09:01');
    await fleet.clock.advance(1_000);
    // After the end of the run, a late clock still gets nothing.
    expect(fleet.holder).toBeUndefined();
    cleo.fire('09:01');
    await fleet.clock.advance(1_000);
    expect(fleet.runs.map(({ tick }) => tick)).toEqual(['09:00']);
    expect(eventsOf(ben.instance, 'tickSkipped')).toMatchObject([{ reason: 'overlap' }]);
    expect(eventsOf(cleo.instance, 'tickSkipped')).toMatchObject([{ reason: 'claimed' }, { reason: 'claimed' }]);
  });

  it("runs once after that (overlap: 'wait')", async () => {
    start('wait');
    anna.fire('09:00', 30_000);
    await fleet.clock.advance(1_000);
    const waiting = [ben, cleo, anna].map((member) => member.fire('09:01', 1_000));
    await fleet.clock.advance(60_000);
    const [first, second] = fleet.runs;
    expect(fleet.runs.map(({ tick, on }) => `${tick} ${on}`)).toEqual(['09:00 anna', '09:01 ben']);
    expect(second!.startedAt).toBeGreaterThanOrEqual(first!.endedAt!);
    expect(second!.startedAt).toBeLessThan(first!.endedAt! + 500);
    expect(waiting.map(({ value }) => value)).toEqual(['09:01 by ben', undefined, undefined]);
  });

  it('throws LockReentryError if the run would wait for its own end', async () => {
    start('wait');
    const call = anna.run('09:00', () => anna.singletons.run({ ...fleet.job, tick: '09:01' }, async () => 'never'));
    await fleet.clock.advance(1_000);
    expect(call.error).toBeInstanceOf(LockReentryError);
  });
});

describe('invalid options of runSingleton', () => {
  const { job } = new Fleet();
  it.each([
    ['an empty tick', { tick: '' }],
    ['a tick that is not well-formed', { tick: '\ud800' }],
    ['a job of 600 bytes', { job: 'j'.repeat(600) }],
    ['a fraction of a millisecond', { claimTtlMs: 0.5 }],
    ['no claimTtlMs', { claimTtlMs: undefined as never }],
    ['a job that is an array', { job: ['report'] as never }],
    ['a tick that is an array', { tick: ['09:00'] as never }],
    ['no overlap', { overlap: undefined as never }],
    ['no onCrash', { onCrash: undefined as never }],
    ['an option that there is not', { leaseMs: 1_000 } as never],
    ['an unknown overlap', { overlap: 'queue' as never }],
    ['an unknown onCrash', { onCrash: 'again' as never }],
    ['a lease that is too short', { lock: { leaseMs: 1 } }],
  ])('are refused before anything is sent: %s', async (_, changes) => {
    const anna = new Fleet().member('anna');
    const run = anna.singletons.run({ ...job, tick: '09:00', ...changes }, async () => 'ran');
    await expect(run).rejects.toBeInstanceOf(InvalidLockOptionsError);
    expect(anna.tickStore.claims).toHaveLength(0);
  });

  it.each([
    ['no options', undefined, async () => 'ran'],
    ['no work', { ...job, tick: '09:00' }, undefined],
  ])('are refused before anything is sent: %s', async (_, options, work) => {
    const anna = new Fleet().member('anna');
    const run = anna.singletons.run(options as never, work as never);
    await expect(run).rejects.toBeInstanceOf(InvalidLockOptionsError);
    expect(anna.tickStore.claims).toHaveLength(0);
  });
});

const MAX_CLOCK_SKEW_MS = 60_000;
const LATE_MS = MAX_CLOCK_SKEW_MS + WAIT_MS;

let fleet: Fleet;
let anna: Member;
let ben: Member;

function start(changes: ConstructorParameters<typeof Fleet>[0] = {}) {
  fleet = new Fleet({ claimTtlMs: MAX_CLOCK_SKEW_MS, ...changes });
  [anna, ben] = fleet.members('anna', 'ben') as [Member, Member];
}

/** The request of a decorator when the job's schedule says that this time is due. */
function dueAt(at: number): [string, { due: { at: number; maxClockSkewMs: number } }] {
  return [new Date(at).toISOString(), { due: { at, maxClockSkewMs: MAX_CLOCK_SKEW_MS } }];
}

function fire(member: Member, at: number, lastingMs = 5) {
  const [tick, changes] = dueAt(at);
  return member.fire(tick, lastingMs, changes);
}

describe('a tick that is a time of a schedule', () => {
  let now: number;

  beforeEach(() => {
    start();
    now = fleet.clock.wallNow();
  });

  it.each([1, 2, 60, 24 * 60])('is not run again by a process that was blocked for %d minutes', async (minutes) => {
    fire(anna, now);
    await fleet.clock.advance(minutes * 60_000);
    const late = fire(ben, now);
    await fleet.clock.advance(1_000);
    expect(fleet.runs.map(({ on }) => on)).toEqual(['anna']);
    expect(late).toMatchObject({ state: 'fulfilled', value: undefined });
  });

  it.each([
    ['one process', 1],
    ['each of two processes', 2],
  ])(
    'starts in its order, and none is late, where several waited in %s for Redis to come back',
    async (_, processes) => {
      start({ overlap: 'wait' });
      const members = [anna, ben].slice(0, processes);
      for (const { tickStore } of members) tickStore.fates.claim = failing('notExecuted');
      const ticks = [now, now + 1_020, now + 2_010];
      for (const at of ticks) {
        await fleet.clock.advance(at - fleet.clock.wallNow());
        for (const member of members) fire(member, at);
      }
      // The newest one would ask first.
      await fleet.clock.advance(now + 2_051 - fleet.clock.wallNow());
      for (const { tickStore } of members) tickStore.fates.claim = answered;
      await fleet.clock.advance(2_000);
      expect(fleet.runs.map(({ tick }) => tick)).toEqual(ticks.map((at) => new Date(at).toISOString()));
    },
  );

  it('is skipped as late if no instance has run it in time, with an event', async () => {
    await fleet.clock.advance(LATE_MS + 1);
    const late = fire(anna, now);
    await fleet.clock.advance(1_000);
    expect(late).toMatchObject({ state: 'fulfilled', value: undefined });
    const [tick] = dueAt(now);
    expect(eventsOf(anna.instance, 'tickSkipped')).toMatchObject([
      { type: 'tickSkipped', job: 'report', tick, reason: 'late', lateMs: LATE_MS + 1 },
    ]);
    expect(fleet.runs).toHaveLength(0);
  });

  it('runs late by up to the clock tolerance plus the time of its claim', async () => {
    await fleet.clock.advance(LATE_MS - 1_000);
    fire(anna, now);
    await fleet.clock.advance(1_000);
    expect(fleet.runs).toHaveLength(1);
  });

  it('runs when Redis recovers within waitMs, even on an instance with the maximum clock error', async () => {
    await fleet.clock.advance(MAX_CLOCK_SKEW_MS);
    anna.tickStore.fates.claim = failing('notExecuted');
    fire(anna, now);
    await fleet.clock.advance(WAIT_MS - 100);
    anna.tickStore.fates.claim = (execute) => execute();
    await fleet.clock.advance(90);
    expect(fleet.runs).toHaveLength(1);
  });

  it('is refused as early for a clock in 2030, which stops the job for no other instance', async () => {
    const wrong = fire(anna, Date.UTC(2030, 0, 1));
    await fleet.clock.advance(1_000);
    fire(ben, now);
    await fleet.clock.advance(1_000);
    expect(wrong).toMatchObject({ state: 'fulfilled', value: undefined });
    expect(eventsOf(anna.instance, 'tickSkipped')).toMatchObject([{ reason: 'early', lateMs: now - Date.UTC(2030) }]);
    expect(fleet.runs.map(({ on }) => on)).toEqual(['ben']);
  });

  it('is not run after a later one of its job', async () => {
    fire(anna, now);
    await fleet.clock.advance(1_000);
    fire(ben, now - 5_000);
    await fleet.clock.advance(1_000);
    expect(fleet.runs.map(({ on }) => on)).toEqual(['anna']);
    expect(eventsOf(ben.instance, 'tickSkipped')).toMatchObject([{ reason: 'late', lateMs: 6_000 }]);
  });

  it('reports a wrong clock of the process, but not a blocked event loop', async () => {
    const clock = new ProcessClock(fleet.clock, 0, 1);
    clock.wallSkewMs = -2 * LATE_MS;
    const carl = fleet.member('carl', { clock });
    fire(carl, now - 2 * LATE_MS);
    fire(anna, now - 2 * LATE_MS);
    await fleet.clock.advance(1_000);
    expect(eventsOf(carl.instance, 'tickSkipped')).toMatchObject([{ reason: 'late', clockBehindMs: 2 * LATE_MS }]);
    expect(eventsOf(anna.instance, 'tickSkipped')[0]).not.toHaveProperty('clockBehindMs');
  });

  it("is run again when its runner dies, however late (onCrash: 'retry')", async () => {
    start({ onCrash: 'retry' });
    for (const member of [anna, ben]) fire(member, now, 20 * LATE_MS);
    await fleet.clock.advance(10 * LATE_MS);
    anna.kill();
    await fleet.clock.advance(2 * LEASE_MS);
    expect(fleet.runs.map(({ on }) => on)).toEqual(['anna', 'ben']);
    expect(eventsOf(ben.instance, 'tickStarted')).toMatchObject([{ rerun: true }]);
  });

  it.each([
    ['no time', { at: undefined, maxClockSkewMs: 1_000 }],
    ['a time that is a Date', { at: new Date(), maxClockSkewMs: 1_000 }],
    ['no skew', { at: 1 }],
    ['a skew of more than a day', { at: 1, maxClockSkewMs: 86_400_001 }],
    ['an option that there is not', { at: 1, maxClockSkewMs: 1_000, lateMs: 5 }],
    ['a number', 5],
    ['null', null],
  ])('is refused before anything is sent with %s', async (_, due) => {
    const run = anna.singletons.run({ ...fleet.job, tick: '09:00', due: due as never }, async () => 'ran');
    await expect(run).rejects.toBeInstanceOf(InvalidLockOptionsError);
    expect(anna.tickStore.claims).toHaveLength(0);
  });
});

describe('a tick with any text', () => {
  it('may be older than the last one, and expires after claimTtlMs, so that backfills can run backwards', async () => {
    start();
    for (const tick of ['2026-01-03', '2026-01-02', '2026-01-01']) {
      anna.fire(tick);
      await fleet.clock.advance(1_000);
    }
    expect(fleet.runs.map(({ tick }) => tick)).toEqual(['2026-01-03', '2026-01-02', '2026-01-01']);
    await fleet.clock.advance(MAX_CLOCK_SKEW_MS);
    ben.fire('2026-01-02');
    await fleet.clock.advance(1_000);
    expect(fleet.runsOf('2026-01-02')).toHaveLength(2);
  });
});

const MINUTE = 60_000;

/** A tick at the end of each so many milliseconds. */
function every(ms: number): JobTicks {
  return {
    after: (time) => (Math.floor(time / ms) + 1) * ms,
    between: async (after, until) => ({ count: Math.floor(until / ms) - Math.floor(after / ms) }),
  };
}

describe('a run that blocks later ticks', () => {
  let fleet: Fleet;
  let anna: Member;
  let ben: Member;

  beforeEach(() => {
    fleet = new Fleet();
    [anna, ben] = fleet.members('anna', 'ben') as [Member, Member];
  });

  /** Anna begins a run that ends when the gate opens. */
  function begin(
    ticks: JobTicks | undefined,
    { warnAfterMs, ...changes }: Partial<SingletonRunOptions> & { warnAfterMs?: number } = {},
  ) {
    const end = gate();
    const call = anna.singletons.run({ ...fleet.job, tick: '09:00', ...changes }, () => end.opened, {
      ticks,
      warnAfterMs,
    });
    return { end, call };
  }
  const reports = (): object[] => [anna, ben].flatMap(({ instance }) => eventsOf(instance, 'overlapLong'));

  it.each([10_000, 30_000])('is reported once, a minute after the first of them was due: every %d ms', async (ms) => {
    const { end, call } = begin(every(ms));
    const first = every(ms).after(fleet.clock.wallNow())! - fleet.clock.wallNow();
    await fleet.clock.advance(first + MINUTE - 1);
    expect(reports()).toEqual([]);
    await fleet.clock.advance(10 * MINUTE);
    const ranMs = first + MINUTE;
    expect(reports()).toMatchObject([
      { job: 'report', group: 'report', tick: '09:00', overlap: 'skip', ranMs, ticks: MINUTE / ms + 1 },
    ]);
    expect(reports()[0]).not.toHaveProperty('manual');
    end.open();
    await call;
  });

  it.each<[string, Parameters<typeof begin>[1] & object, object]>([
    ['ticks that wait', { overlap: 'wait' }, { overlap: 'wait' }],
    ['a manual run', { manual: true }, { manual: true }],
    ['a time of its own', { warnAfterMs: 5_000 }, { ranMs: 5_000, ticks: 0 }],
  ])('is reported with its details: %s', async (_, changes, report) => {
    const ticks = changes.warnAfterMs ? { ...every(MINUTE), after: (time: number) => time } : every(MINUTE);
    const { end, call } = begin(ticks, changes);
    await fleet.clock.advance(3 * MINUTE);
    expect(reports()).toMatchObject([report]);
    end.open();
    await call;
  });

  it.each<[string, JobTicks | undefined, Parameters<typeof begin>[1]]>([
    ['whose ticks are not known', undefined, {}],
    ['that has no next tick', { ...every(MINUTE), after: () => undefined }, {}],
    ['that may take as long as it likes', every(MINUTE), { warnAfterMs: Infinity }],
  ])('is not reported of a job %s', async (_, ticks, changes) => {
    const { end, call } = begin(ticks, changes);
    await fleet.clock.advance(60 * MINUTE);
    expect(reports()).toEqual([]);
    end.open();
    await call;
  });

  it('is not reported if it ends before, or while its ticks are counted', async () => {
    const { end, call } = begin(every(10_000));
    await fleet.clock.advance(MINUTE);
    end.open();
    await call;
    await fleet.clock.advance(MINUTE);
    const counted = gate();
    const slow = begin(
      {
        after: (time) => time,
        between: async () => {
          await counted.opened;
          return { count: 1 };
        },
      },
      { tick: '09:10' },
    );
    await fleet.clock.advance(MINUTE);
    slow.end.open();
    await slow.call;
    counted.open();
    await fleet.clock.advance(MINUTE);
    expect(reports()).toEqual([]);
  });
});

describe('a manual run', () => {
  let fleet: Fleet;
  let anna: Member;
  let ben: Member;

  beforeEach(() => {
    fleet = new Fleet();
    [anna, ben] = fleet.members('anna', 'ben') as [Member, Member];
  });

  const byHand = { manual: true } as const;

  it('is marked for the work and for observers, and takes no tick of the schedule', async () => {
    const runs: SingletonRun[] = [];
    const options = { ...fleet.job, tick: 'manual:1', ...byHand };
    const call = track(anna.singletons.run(options, (_lease, run) => void runs.push(run)));
    await fleet.clock.advance(10);
    expect(call.state).toBe('fulfilled');
    expect(runs).toMatchObject([{ job: 'report', tick: 'manual:1', manual: true, rerun: false }]);
    expect(anna.instance.events.filter(({ type }) => type.startsWith('tick'))).toMatchObject([
      { type: 'tickStarted', manual: true },
      { type: 'tickFinished', manual: true, outcome: 'ok' },
    ]);
    ben.fire('09:00');
    await fleet.clock.advance(10);
    expect(fleet.runsOf('09:00')).toHaveLength(1);
    expect(eventsOf(ben.instance, 'tickStarted')[0]).not.toHaveProperty('manual');
  });

  it('is refused while an earlier run has not ended, with overlap skip', async () => {
    ben.fire('09:00', 60_000);
    await fleet.clock.advance(10);
    const call = anna.fire('manual:1', 5, byHand);
    await fleet.clock.advance(10);
    expect(call.error).toBeInstanceOf(LockBusyError);
    expect((call.error as Error).message).toBe(
      'The job "report" was not run manually ("manual:1"): an earlier run has not ended, on this or another instance. ' +
        "Try again when it has, or set overlap: 'wait'.",
    );
    expect(eventsOf(anna.instance, 'tickSkipped')).toEqual([]);
    await fleet.clock.advance(120_000);
    expect(fleet.runs).toHaveLength(1);
  });

  it('waits for that run with overlap wait', async () => {
    ben.fire('09:00', 20_000);
    await fleet.clock.advance(10);
    const call = anna.fire('manual:1', 5, { ...byHand, overlap: 'wait' });
    await fleet.clock.advance(19_000);
    expect(fleet.runs).toHaveLength(1);
    await fleet.clock.advance(2_000);
    expect(call.value).toBe('manual:1 by anna');
  });

  it('is refused when the application shuts down, even while it waits', async () => {
    ben.fire('09:00', 60_000);
    await fleet.clock.advance(10);
    const waiting = anna.fire('manual:1', 5, { ...byHand, overlap: 'wait' });
    await fleet.clock.advance(10);
    void anna.instance.locks.shutdown(0);
    await fleet.clock.advance(1_000);
    const late = anna.fire('manual:2', 5, byHand);
    await fleet.clock.advance(10);
    expect(waiting.error).toBeInstanceOf(LockShutdownError);
    expect(late.error).toBeInstanceOf(LockShutdownError);
    await fleet.clock.advance(120_000);
    expect(fleet.runs).toHaveLength(1);
  });
});

const SKEW_MS = 1_000;
const SPREAD_MS = 60_000;

/** Lets all instances fire the same ticks at the same moments. @returns how many ticks each of them ran */
async function shares(instances: number, ticks: number, jitterMs: number): Promise<number[]> {
  const fleet = new Fleet({ jitterMs });
  const members = fleet.members(...Array.from({ length: instances }, (_, index) => `i${index}`));
  for (let tick = 0; tick < ticks; tick++) {
    for (const member of members) member.fire(`tick ${tick}`);
    await fleet.clock.advance(SPREAD_MS + SKEW_MS);
  }
  expect(fleet.runs).toHaveLength(ticks);
  const ran = new Map<string, number>(members.map(({ name }) => [name, 0]));
  for (const { on } of fleet.runs) ran.set(on, ran.get(on)! + 1);
  return [...ran.values()];
}

describe('a job with jitterMs', () => {
  it('runs its ticks on all instances alike; without it, the first one runs them all', async () => {
    const expected = 5;
    const spread = await shares(30, 30 * expected, SPREAD_MS);
    const chiSquare = spread.reduce((sum, each) => sum + (each - expected) ** 2 / expected, 0);
    // The limit for 29 degrees of freedom, at 0.1 %.
    expect(chiSquare).toBeLessThan(58.3);
    expect(Math.max(...(await shares(30, 20, 0)))).toBe(20);
  });

  it('delays its claims by up to that time, and not all to one moment', async () => {
    const fleet = new Fleet({ jitterMs: 1_000 });
    const members = fleet.members(...Array.from({ length: 100 }, (_, index) => `i${index}`));
    const firedAt = fleet.clock.now();
    for (const member of members) member.fire('09:00');
    await fleet.clock.advance(2_000);
    const sent = members.map(({ tickStore }) => tickStore.claims.map(({ sentAt }) => sentAt - firedAt)).flat();
    expect(sent).toHaveLength(100);
    expect(Math.max(...sent)).toBeLessThan(1_000);
    const tenths = new Set(sent.map((ms) => Math.floor(ms / 100)));
    expect(tenths.size).toBe(10);
  });

  it('sends nothing if the application shuts down during the delay', async () => {
    const fleet = new Fleet({ jitterMs: SPREAD_MS });
    const [anna] = fleet.members('anna') as [Member];
    const call = anna.fire('09:00');
    const shutdown = track(anna.instance.locks.shutdown(0));
    await fleet.clock.advance(SPREAD_MS);
    expect([shutdown.state, call.state, call.value]).toEqual(['fulfilled', 'fulfilled', undefined]);
    expect(anna.tickStore.claims).toEqual([]);
  });

  it.each([-1, 0.5, 60 * 60 * 1_000 + 1, '5'])('is refused with jitterMs %p', async (jitterMs) => {
    const fleet = new Fleet({ jitterMs: jitterMs as number });
    const [anna] = fleet.members('anna') as [Member];
    const call = anna.fire('09:00');
    await fleet.clock.advance(0);
    expect(call.error).toBeInstanceOf(InvalidLockOptionsError);
    expect(call.error).toMatchObject({ option: 'jitterMs' });
  });
});

import { InvalidLockOptionsError } from '../../../../lib/kernel/api/errors.js';
import { eventsOf } from '../../../support/world/lock-world.js';
import { answered, failing } from '../../../support/world/scripted-store.js';
import { ProcessClock } from '../../../support/simulation/simulated-process.js';
import { Fleet, LEASE_MS, type Member, WAIT_MS } from '../../../support/world/singleton-fleet.js';

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

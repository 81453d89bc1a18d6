import { InvalidLockOptionsError } from '../../../../lib/kernel/api/errors.js';
import { LockReentryError } from '../../../../lib/kernel/api/lease-errors.js';
import { eventsOf } from '../../../support/world/lock-world.js';
import { replyLost } from '../../../support/world/scripted-store.js';
import { Fleet, LEASE_MS, type Member } from '../../../support/world/singleton-fleet.js';

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

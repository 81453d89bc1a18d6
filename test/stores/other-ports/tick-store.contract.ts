import type { LockStore, LockOwner } from '../../../lib/core/store/lock-store.js';
import type { TickClaim, TickStore } from '../../../lib/core/store/tick-store.js';
import { newOwner, LONG_MS, SHORT_MS, type Subject, take } from '../subjects/subject.js';

const TICK = { resource: 'job:report', tick: '2026-01-01T00:00:00Z' };
const NEXT_TICK = { ...TICK, tick: '2026-01-01T00:01:00Z' };

/** What every tick tick store keeps to: a tick starts once. */
export function describeTickStore(createSubject: () => Promise<Subject>): void {
  let subject: Subject;
  let store: LockStore;
  let tickStore: TickStore;
  let otherTickStore: TickStore;
  let runner: LockOwner;
  let other: LockOwner;

  beforeEach(async () => {
    subject = await createSubject();
    const one = await subject.open('one');
    const two = await subject.open('two');
    ({ store, tickStore } = one);
    otherTickStore = two.tickStore;
    runner = newOwner(one.store, TICK.resource);
    other = newOwner(two.store, TICK.resource);
  });
  afterEach(() => subject.close());

  function wish(owner: LockOwner, changes: Partial<TickClaim> = {}): TickClaim {
    return { owner, leaseMs: LONG_MS, keepMs: LONG_MS, overlap: 'skip', takeOver: 'nothing', ...changes };
  }

  /** The runner's run is over. */
  async function finish(tick = TICK) {
    await tickStore.finish(tick, runner, LONG_MS);
    await store.release(runner);
  }

  it('grants a tick with the lock of its job, in one step', async () => {
    const reply = await tickStore.claim(TICK, wish(runner));
    expect(reply).toEqual({ status: 'granted', fencingToken: expect.any(Number), rerun: false });
    expect(await store.inspect(TICK.resource)).toMatchObject({
      mode: 'exclusive',
      holders: [{ instanceId: 'one', fencingToken: (reply as { fencingToken: number }).fencingToken }],
    });
  });

  it('grants a re-sent claim again, with the same token', async () => {
    const reply = await tickStore.claim(TICK, wish(runner));
    expect(await tickStore.claim(TICK, wish(runner))).toEqual(reply);
  });

  it('tells the others that the tick is taken, and for how long its lock lasts', async () => {
    await tickStore.claim(TICK, wish(runner));
    const reply = await otherTickStore.claim(TICK, wish(other));
    expect(reply).toEqual({ status: 'taken', ttlMs: expect.any(Number), isBegun: true });
    expect((reply as { ttlMs: number }).ttlMs).toBeGreaterThan(LONG_MS / 2);
  });

  it('never starts a tick twice: not after it has run, and a late clock gets nothing', async () => {
    await tickStore.claim(TICK, wish(runner));
    await finish();
    expect(await otherTickStore.claim(TICK, wish(other))).toEqual({ status: 'finished' });
  });

  it('forgets a tick after keepMs', async () => {
    await tickStore.claim(TICK, wish(runner, { keepMs: SHORT_MS, leaseMs: SHORT_MS }));
    await subject.pass(SHORT_MS * 2);
    expect((await otherTickStore.claim(TICK, wish(other))).status).toBe('granted');
  });

  it('keeps jobs, and ticks of one job, apart', async () => {
    await tickStore.claim(TICK, wish(runner));
    await finish();
    expect((await tickStore.claim(NEXT_TICK, wish(newOwner(store, TICK.resource)))).status).toBe('granted');
    const elsewhere = { ...TICK, resource: 'job:draw' };
    expect((await tickStore.claim(elsewhere, wish(newOwner(store, 'job:draw')))).status).toBe('granted');
  });

  describe('while an earlier run holds the lock', () => {
    let earlier: LockOwner;

    beforeEach(async () => {
      earlier = newOwner(store, TICK.resource);
      await take(store, earlier);
    });

    it('drops the tick for everybody (overlap: skip)', async () => {
      expect(await tickStore.claim(TICK, wish(runner))).toEqual({ status: 'overlap' });
      expect(await otherTickStore.claim(TICK, wish(other))).toEqual({ status: 'finished' });
      await store.release(earlier);
      expect(await otherTickStore.claim(TICK, wish(other))).toEqual({ status: 'finished' });
    });

    it('claims the tick and gets the lock later (overlap: wait)', async () => {
      const waiting = wish(runner, { overlap: 'wait' });
      expect(await tickStore.claim(TICK, waiting)).toEqual({ status: 'claimed', ttlMs: expect.any(Number) });
      const reply = await otherTickStore.claim(TICK, wish(other, { overlap: 'wait' }));
      expect(reply).toMatchObject({ status: 'taken', isBegun: false });
      await store.release(earlier);
      expect(await tickStore.claim(TICK, waiting)).toMatchObject({ status: 'granted', rerun: false });
    });

    describe('a tick that waits', () => {
      const asStandBy = { overlap: 'wait', takeOver: 'unbegun' } as const;

      beforeEach(() => tickStore.claim(TICK, wish(runner, { overlap: 'wait' })));

      it('is taken over by an instance that stands by, as soon as the lock is free: no run of it had begun', async () => {
        expect(await otherTickStore.claim(TICK, wish(other, asStandBy))).toMatchObject({
          status: 'taken',
          isBegun: false,
        });
        await store.release(earlier);
        expect(await otherTickStore.claim(TICK, wish(other, asStandBy))).toMatchObject({
          status: 'granted',
          rerun: false,
        });
        expect(await tickStore.claim(TICK, wish(runner, { overlap: 'wait' }))).toMatchObject({
          status: 'taken',
          isBegun: true,
        });
      });

      it('belongs to no instance when it is given back, and that run is no rerun', async () => {
        await tickStore.giveBack(TICK, runner, LONG_MS);
        await store.release(earlier);
        expect(await otherTickStore.claim(TICK, wish(other))).toMatchObject({ status: 'granted', rerun: false });
        await tickStore.giveBack(TICK, runner, LONG_MS);
        await otherTickStore.finish(TICK, other, LONG_MS);
        expect(await tickStore.claim(TICK, wish(runner))).toEqual({ status: 'finished' });
      });

      it('is still stood by for when it is given back before the lock is free', async () => {
        await tickStore.giveBack(TICK, runner, LONG_MS);
        expect((await otherTickStore.claim(TICK, wish(other, asStandBy))).status).toMatch(/taken|claimed/);
        await store.release(earlier);
        expect(await otherTickStore.claim(TICK, wish(other, asStandBy))).toMatchObject({
          status: 'granted',
          rerun: false,
        });
      });
    });
  });

  it('does not let a run that was granted be taken over by one that only takes what has not begun', async () => {
    await tickStore.claim(TICK, wish(runner));
    await store.release(runner);
    const reply = await otherTickStore.claim(TICK, wish(other, { takeOver: 'unbegun' }));
    expect(reply).toEqual({ status: 'taken', ttlMs: 0, isBegun: true });
  });

  describe('a rescuer', () => {
    const rescue = { takeOver: 'unfinished' as const };

    it('waits as long as the runner holds the lock', async () => {
      await tickStore.claim(TICK, wish(runner));
      expect((await otherTickStore.claim(TICK, wish(other, rescue))).status).toBe('taken');
    });

    it('takes over a tick whose runner died', async () => {
      await tickStore.claim(TICK, wish(runner, { leaseMs: SHORT_MS }));
      expect((await otherTickStore.claim(TICK, wish(other))).status).toBe('taken');
      await subject.pass(SHORT_MS * 2);
      expect(await otherTickStore.claim(TICK, wish(other))).toEqual({ status: 'taken', ttlMs: 0, isBegun: true });
      expect(await otherTickStore.claim(TICK, wish(other, rescue))).toMatchObject({ status: 'granted', rerun: true });
    });

    it('leaves the dead runner nothing to finish', async () => {
      await tickStore.claim(TICK, wish(runner, { leaseMs: SHORT_MS }));
      await subject.pass(SHORT_MS * 2);
      await otherTickStore.claim(TICK, wish(other, rescue));
      await tickStore.finish(TICK, runner, LONG_MS);
      expect((await tickStore.claim(TICK, wish(runner))).status).toBe('taken');
    });

    it('keeps the claim from being forgotten, however long the run takes', async () => {
      await tickStore.claim(TICK, wish(runner, { keepMs: 1_000 }));
      await subject.pass(100);
      await otherTickStore.claim(TICK, wish(other, rescue));
      await subject.pass(1_000);
      expect((await otherTickStore.claim(TICK, wish(other))).status).toBe('taken');
    });

    it('has nothing to do for a tick that has run or is forgotten', async () => {
      expect(await otherTickStore.claim(TICK, wish(other, rescue))).toEqual({ status: 'finished' });
      await tickStore.claim(TICK, wish(runner));
      await finish();
      expect(await otherTickStore.claim(TICK, wish(other, rescue))).toEqual({ status: 'finished' });
    });
  });

  describe('for a tick that is a time', () => {
    const EARLY_MS = 20_000;
    const LATE_MS = 30_000;
    let now: number;

    beforeEach(async () => {
      now = await subject.now();
    });

    /** A tick of the job that is due so long from now, and the wish of a new owner for it. */
    function due(inMs: number, changes: Partial<TickClaim> = {}) {
      const at = now + inMs;
      const one = newOwner(store, TICK.resource);
      const tick = { ...TICK, tick: new Date(at).toISOString() };
      const claim = wish(one, { due: { at, earlyMs: EARLY_MS, lateMs: LATE_MS }, ...changes });
      return { tick, claim, one };
    }

    /** Claims it, and ends its run. Gives the reply. */
    async function runTick(inMs: number, changes: Partial<TickClaim> = {}) {
      const { tick, claim, one } = due(inMs, changes);
      const reply = await tickStore.claim(tick, claim);
      await store.release(one);
      return reply;
    }

    it('grants one that is due now, or by as little early or late as clocks may be wrong', async () => {
      for (const inMs of [-LATE_MS + 5_000, 0, EARLY_MS - 5_000]) {
        expect([inMs, (await runTick(inMs)).status]).toEqual([inMs, 'granted']);
      }
    });

    it('refuses one that is too late, though nothing of it is remembered', async () => {
      const reply = await runTick(-LATE_MS - 1_000);
      expect(reply).toEqual({ status: 'late', lateMs: expect.any(Number) });
      expect((reply as { lateMs: number }).lateMs).toBeGreaterThan(LATE_MS);
      expect(await subject.isEmpty()).toBe(true);
    });

    it('refuses one that is due too far ahead, and never remembers it', async () => {
      const inFourYears = 4 * 366 * 24 * 60 * 60 * 1_000;
      for (const ahead of [EARLY_MS + 5_000, inFourYears]) {
        const reply = await runTick(ahead);
        expect(reply).toEqual({ status: 'early', lateMs: expect.any(Number) });
        expect((reply as { lateMs: number }).lateMs).toBeLessThan(-EARLY_MS);
      }
      expect(await subject.isEmpty()).toBe(true);
      expect((await runTick(0)).status).toBe('granted');
    });

    it('never starts one twice, however long a process stands still: it is remembered, or too late', async () => {
      const brief = { earlyMs: SHORT_MS, lateMs: SHORT_MS };
      const at = now;
      const tick = { ...TICK, tick: 'now' };
      const once = { keepMs: 2 * SHORT_MS + 1, leaseMs: SHORT_MS, due: { at, ...brief } };
      let granted = 0;
      for (let asked = 0; asked < 8; asked++) {
        const one = newOwner(store, TICK.resource);
        if ((await tickStore.claim(tick, wish(one, once))).status === 'granted') granted++;
        await store.release(one);
        await subject.pass(SHORT_MS / 2);
      }
      expect(granted).toBeLessThanOrEqual(1);
      expect((await tickStore.claim(tick, wish(runner, once))).status).toBe('late');
    });

    it('grants none that is older than the last one, or the same again, though the claim is forgotten', async () => {
      expect((await runTick(0, { keepMs: SHORT_MS, leaseMs: SHORT_MS })).status).toBe('granted');
      await subject.pass(2 * SHORT_MS);
      expect((await runTick(0)).status).toBe('late');
      expect((await runTick(-1_000)).status).toBe('late');
      expect((await runTick(1_000)).status).toBe('granted');
    });

    it('remembers the last one for each job alone, and only of ticks that are times', async () => {
      await runTick(0);
      const { tick, claim } = due(-1_000);
      const owner = newOwner(store, 'job:draw');
      expect((await tickStore.claim({ ...tick, resource: 'job:draw' }, { ...claim, owner })).status).toBe('granted');
      expect((await runTick(-2_000, { due: undefined })).status).toBe('granted');
    });

    it('lets an older one run that was claimed in time: by its claimant, a rescuer, and who takes it when it is given back', async () => {
      const earlier = newOwner(store, TICK.resource);
      await take(store, earlier);
      const [first, second, third] = [-3_000, -2_000, -1_000].map((inMs) => due(inMs, { overlap: 'wait' }));
      for (const { tick, claim } of [first!, second!, third!]) {
        expect((await tickStore.claim(tick, claim)).status).toBe('claimed');
      }
      await tickStore.giveBack(second!.tick, second!.one, LONG_MS);
      await store.release(earlier);
      await runTick(0);

      expect((await tickStore.claim(first!.tick, first!.claim)).status).toBe('granted');
      await store.release(first!.one);
      const again = due(-3_000, { takeOver: 'unfinished' });
      expect(await tickStore.claim(again.tick, again.claim)).toMatchObject({ status: 'granted', rerun: true });
      await store.release(again.one);
      expect(await runTick(-2_000)).toMatchObject({ status: 'granted', rerun: false });
      const standBy = due(-1_000, { takeOver: 'unbegun' });
      expect(await tickStore.claim(standBy.tick, standBy.claim)).toMatchObject({ status: 'granted', rerun: false });
      await store.release(standBy.one);
      expect((await runTick(-500)).status).toBe('late');
    });

    it('passes over a last one that lies beyond what clocks may be wrong: the clock of the server was set back', async () => {
      const farAhead = { at: now + 100 * EARLY_MS, earlyMs: 200 * EARLY_MS, lateMs: LATE_MS };
      expect((await runTick(0, { due: farAhead })).status).toBe('granted');
      expect((await runTick(1_000)).status).toBe('granted');
    });

    it('drops one that comes while an earlier run holds the lock, and knows it for the last one', async () => {
      const earlier = newOwner(store, TICK.resource);
      await take(store, earlier);
      expect((await runTick(0)).status).toBe('overlap');
      expect((await runTick(-1_000)).status).toBe('late');
      expect((await runTick(-LATE_MS - 1_000)).status).toBe('late');
      expect((await runTick(EARLY_MS + 5_000)).status).toBe('early');
      await store.release(earlier);
    });
  });

  it('finishes only the claim of the one who says so', async () => {
    await tickStore.claim(TICK, wish(runner));
    await otherTickStore.finish(TICK, other, LONG_MS);
    expect((await otherTickStore.claim(TICK, wish(other))).status).toBe('taken');
    await otherTickStore.finish(NEXT_TICK, other, LONG_MS);
    expect((await otherTickStore.claim(NEXT_TICK, wish(other))).status).toBe('overlap');
  });
}

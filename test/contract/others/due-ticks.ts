import assert from 'node:assert/strict';
import type { TickClaim, TickReply } from '../../../lib/features/jobs/core/job-claims.js';
import { ANY_NUMBER, assertAbove, assertAtMost, assertBelow, assertEquals, assertMatches } from '../asserts.js';
import { newOwner, SHORT_MS, take } from '../requests.js';
import type { Base, Suite } from '../suite.js';
import { giveBack, openTicks, TICK, wish } from './tick-world.js';

/** Contract of job stores: they decide by their own clock if a scheduled tick may start. */
export function describeDueTicks(suite: Suite<Base>): void {
  suite.describe('a tick that is a time', () => {
    const EARLY_MS = 20_000;
    const LATE_MS = 30_000;
    const { it } = suite.with(openTicks).with(async ({ subject, store, jobs }) => {
      const now = await subject.now();
      /** A tick of the job that is due in this time, and the wish of a new owner for it. */
      const due = (inMs: number, changes: Partial<TickClaim> = {}) => {
        const at = now + inMs;
        const one = newOwner(store, TICK.resource);
        const tick = { ...TICK, tick: new Date(at).toISOString() };
        const claim = wish(one, { due: { at, earlyMs: EARLY_MS, lateMs: LATE_MS }, ...changes });
        return { tick, claim, one };
      };
      /** Claims it, and ends its run. */
      const runTick = async (inMs: number, changes: Partial<TickClaim> = {}): Promise<TickReply> => {
        const { tick, claim, one } = due(inMs, changes);
        const reply = await jobs.claim(tick, claim);
        await store.release(one);
        return reply;
      };
      return { now, due, runTick };
    });

    it.onEveryServer(
      'is granted if it is due now, or by as little early or late as clocks may be wrong',
      async ({ runTick }) => {
        for (const inMs of [-LATE_MS + 5_000, 0, EARLY_MS - 5_000]) {
          assertEquals([inMs, (await runTick(inMs)).status], [inMs, 'granted']);
        }
      },
    );

    it.onEveryServer(
      'is refused if it is too late, though nothing of it is remembered',
      async ({ subject, runTick }) => {
        const reply = await runTick(-LATE_MS - 1_000);
        assertEquals(reply, { status: 'late', lateMs: ANY_NUMBER });
        assertAbove((reply as { lateMs: number }).lateMs, LATE_MS);
        assert.equal(await subject.isEmpty(), true);
      },
    );

    it.onEveryServer('is refused if it is due too far ahead, and is never remembered', async ({ subject, runTick }) => {
      const inFourYears = 4 * 366 * 24 * 60 * 60 * 1_000;
      for (const ahead of [EARLY_MS + 5_000, inFourYears]) {
        const reply = await runTick(ahead);
        assertEquals(reply, { status: 'early', lateMs: ANY_NUMBER });
        assertBelow((reply as { lateMs: number }).lateMs, -EARLY_MS);
      }
      assert.equal(await subject.isEmpty(), true);
      assert.equal((await runTick(0)).status, 'granted');
    });

    it.onEveryServer(
      'never starts twice, however long a process stands still: it is remembered, or too late',
      async ({ subject, now, store, jobs, runner }) => {
        const brief = { earlyMs: SHORT_MS, lateMs: SHORT_MS };
        const at = now;
        const tick = { ...TICK, tick: 'now' };
        const once = { claimTtlMs: 2 * SHORT_MS + 1, leaseMs: SHORT_MS, due: { at, ...brief } };
        let granted = 0;
        for (let asked = 0; asked < 8; asked++) {
          const one = newOwner(store, TICK.resource);
          if ((await jobs.claim(tick, wish(one, once))).status === 'granted') granted++;
          await store.release(one);
          await subject.pass(SHORT_MS / 2);
        }
        assertAtMost(granted, 1);
        assert.equal((await jobs.claim(tick, wish(runner, once))).status, 'late');
      },
    );

    it('is refused if it is older than the last one, or the same again, though the claim is forgotten', async ({
      subject,
      runTick,
    }) => {
      assert.equal((await runTick(0, { claimTtlMs: SHORT_MS, leaseMs: SHORT_MS })).status, 'granted');
      await subject.pass(2 * SHORT_MS);
      assert.equal((await runTick(0)).status, 'late');
      assert.equal((await runTick(-1_000)).status, 'late');
      assert.equal((await runTick(1_000)).status, 'granted');
    });

    it('is remembered as the last one of its job alone, and other ticks are not', async ({
      runTick,
      due,
      store,
      jobs,
    }) => {
      await runTick(0);
      const { tick, claim } = due(-1_000);
      const owner = newOwner(store, 'job:draw');
      assert.equal((await jobs.claim({ ...tick, resource: 'job:draw' }, { ...claim, owner })).status, 'granted');
      assert.equal((await runTick(-2_000, { due: undefined })).status, 'granted');
    });

    it.onEveryServer(
      'runs though a newer one ran, if it was claimed in time: by its claimant, by a rescuer, or after it was returned',
      async ({ store, due, jobs, runTick }) => {
        const earlier = newOwner(store, TICK.resource);
        await take(store, earlier);
        const [first, second, third] = [-3_000, -2_000, -1_000].map((inMs) => due(inMs, { overlap: 'wait' }));
        for (const { tick, claim } of [first!, second!, third!]) {
          assert.equal((await jobs.claim(tick, claim)).status, 'claimed');
        }
        await giveBack(jobs, second!.one, second!.tick);
        await store.release(earlier);
        await runTick(0);

        assert.equal((await jobs.claim(first!.tick, first!.claim)).status, 'granted');
        await store.release(first!.one);
        const again = due(-3_000, { takeOver: 'unfinished' });
        assertMatches(await jobs.claim(again.tick, again.claim), { status: 'granted', attempt: 2 });
        await store.release(again.one);
        assertMatches(await runTick(-2_000), { status: 'granted', attempt: 1 });
        const standBy = due(-1_000, { takeOver: 'unbegun' });
        assertMatches(await jobs.claim(standBy.tick, standBy.claim), { status: 'granted', attempt: 1 });
        await store.release(standBy.one);
        assert.equal((await runTick(-500)).status, 'late');
      },
    );

    it('is granted though the last one lies beyond what clocks may be wrong: the clock of the server was set back', async ({
      now,
      runTick,
    }) => {
      const farAhead = { at: now + 100 * EARLY_MS, earlyMs: 200 * EARLY_MS, lateMs: LATE_MS };
      assert.equal((await runTick(0, { due: farAhead })).status, 'granted');
      assert.equal((await runTick(1_000)).status, 'granted');
    });

    it('is dropped while an earlier run holds the lock, and is the last one then', async ({ store, runTick }) => {
      const earlier = newOwner(store, TICK.resource);
      await take(store, earlier);
      assert.equal((await runTick(0)).status, 'overlap');
      assert.equal((await runTick(-1_000)).status, 'late');
      assert.equal((await runTick(-LATE_MS - 1_000)).status, 'late');
      assert.equal((await runTick(EARLY_MS + 5_000)).status, 'early');
      await store.release(earlier);
    });
  });
}

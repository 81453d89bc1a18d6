import assert from 'node:assert/strict';
import type { TickReply } from '../../../lib/features/jobs/core/job-claims.js';
import { ANY_NUMBER, assertContains, assertEquals, assertExcludes, assertMatches } from '../asserts.js';
import { LONG_MS, SHORT_MS } from '../requests.js';
import type { Base, Suite } from '../suite.js';
import {
  claim,
  claimTick,
  DAY_MS,
  end,
  JOB,
  MINUTE_MS,
  missedOf,
  openJobs,
  ownerOf,
  run,
  SCHEDULE,
  tickAt,
} from './job-world.js';
import { finishClaim, giveBack } from './tick-world.js';
import { catchUpTick } from '../../../lib/features/jobs/core/job-state.js';

/** Contract of job stores: missed ticks are reported once and caught up once. */
export function describeMissedTicks(suite: Suite<Base>): void {
  const withJobs = suite.with(openJobs);
  const { describe } = withJobs;

  describe('missed ticks', () => {
    const afterOne = withJobs.with(async ({ one, at }) => {
      const ago = (minutes: number): number => at - minutes * MINUTE_MS;
      await run(one, ago(10));
      return { ago };
    });
    const { describe, it } = afterOne;

    it('are found by the claim of a later tick, which changes nothing', async ({ look, two, at, ago, one }) => {
      const before = await look();
      assertMatches(await claim(two, at), { status: 'gap', last: ago(10) });
      assertMatches(await look(), { last: before.last, runs: before.runs, missed: 0 });
      assertMatches(await one.store.inspect(JOB), { mode: null });
    });

    it.onEveryServer(
      'are found with how late the later tick is, or how early, by the clock of the store',
      async ({ subject, two, at, ago }) => {
        for (const time of [at, at + MINUTE_MS]) {
          const before = await subject.now();
          const reply = await claim(two, time, ownerOf(two), { previous: time - MINUTE_MS });
          const { lateMs } = reply as Extract<TickReply, { status: 'gap' }>;
          assertEquals(reply, { status: 'gap', last: ago(10), lateMs });
          const now = time + lateMs;
          assert.ok(before <= now && now <= (await subject.now()), `${lateMs} ms`);
        }
      },
    );

    it('are not found where the tick before was accounted', async ({ two, ago }) => {
      assert.equal((await claim(two, ago(9))).status, 'granted');
    });

    it('are not found by another schedule, which takes the place of the first', async ({ one, ago, two, look, at }) => {
      await one.jobs.note(missedOf({ after: ago(10), ticks: [ago(9)], runWithinMs: DAY_MS }));
      const owner = ownerOf(two);
      // No instance has asked for the ticks of the first for longer than they may be late.
      const due = { at: ago(2), earlyMs: MINUTE_MS, lateMs: 5 * MINUTE_MS };
      await end(two, owner, await claim(two, ago(2), owner, { schedule: 'another' }, { due }));
      assertMatches(await look(), { schedule: 'another', last: ago(2) });
      assert.equal((await look()).owed, undefined);
      assert.equal((await claim(one, at)).status, 'granted');
    });

    it.onEveryServer('are told by one instance, counted, and in the history', async ({ ago, one, two, look }) => {
      const missed = missedOf({ after: ago(10), ticks: [ago(9), ago(8), ago(7)] });
      const replies = await Promise.all([one.jobs.note(missed), two.jobs.note(missed)]);
      const noted = {
        status: 'noted',
        missed: { count: 3, first: ago(9), last: ago(7), ticks: [ago(9), ago(8), ago(7)] },
      };
      assertContains(replies, [noted, { status: 'stale' }]);
      const state = await look();
      assertMatches(state, { missed: 3, last: ago(7) });
      assert.equal(state.owed, undefined);
      assert.equal(state.runs.length, 4);
      assertMatches(
        state.runs.slice(0, 3),
        [7, 8, 9].map((minutes) => ({ tick: tickAt(ago(minutes)).tick, outcome: 'missed' })),
      );
      assertExcludes(Object.keys(state.runs[0]!), 'fencingToken');
    });

    it('are told again to the instance that told them, and did not hear the answer', async ({
      ago,
      one,
      look,
      two,
    }) => {
      const missed = missedOf({ after: ago(10), ticks: [ago(9), ago(8)], runWithinMs: DAY_MS });
      const reply = await one.jobs.note(missed);
      assertMatches(reply, { status: 'noted', missed: { count: 2 }, owed: { count: 2 } });
      const state = await look();
      assertEquals(await one.jobs.note(missed), reply);
      assert.equal((await two.jobs.note(missed)).status, 'stale');
      assertEquals(await look(), { ...state, now: ANY_NUMBER });
      await one.jobs.note(missedOf({ after: ago(8), ticks: [ago(7)] }));
      assert.equal((await one.jobs.note(missed)).status, 'stale');
    });

    it.onEveryServer(
      'are told apart where all instances had been shut down meanwhile, and none had crashed',
      async ({ subject, ago, one, two }) => {
        const registration = { resource: JOB, schedule: SCHEDULE, next: ago(-1) };
        for (const { jobs } of [one, two]) await jobs.register([registration]);
        await one.jobs.leave?.([JOB]);
        await one.jobs.register([registration]);
        const whileUp = await one.jobs.note(missedOf({ after: ago(10), ticks: [ago(9)] }));
        assertExcludes(Object.keys(whileUp), 'afterStop');
        for (const { jobs } of [one, two]) await jobs.leave?.([JOB]);
        const whileDown = await subject.now();
        await two.jobs.register([registration]);
        await one.jobs.register([registration]);
        const missed = missedOf({ after: ago(9), ticks: [whileDown] });
        assertMatches(await one.jobs.note(missed), { status: 'noted', missed: { count: 1 }, afterStop: true });
        assertMatches(await one.jobs.note(missed), { afterStop: true });
        const later = await one.jobs.note(missedOf({ after: whileDown, ticks: [ago(-1)] }));
        assertExcludes(Object.keys(later), 'afterStop');
      },
    );

    it('are never granted to a late instance', async ({ one, ago, two }) => {
      await one.jobs.note(missedOf({ after: ago(10), ticks: [ago(9)] }));
      assert.equal((await claim(two, ago(9))).status, 'late');
    });

    it('are not told of another schedule, or of a job that is not known', async ({ ago, one, look }) => {
      const missed = missedOf({ after: ago(10), ticks: [ago(9)] });
      assertEquals(await one.jobs.note({ ...missed, schedule: 'another' }), { status: 'stale' });
      assertEquals(await one.jobs.note({ ...missed, resource: 'cron:unknown' }), { status: 'stale' });
      assert.equal((await look()).missed, 0);
    });

    it('count those before the ones that are named', async ({ ago, one, look }) => {
      const earlier = { count: 5_000, first: ago(10) + 1, last: ago(3) };
      const reply = await one.jobs.note(missedOf({ after: ago(10), ticks: [ago(2), ago(1)], earlier }));
      assertMatches(reply, {
        missed: { count: 5_002, first: ago(10) + 1, last: ago(1), ticks: [ago(2), ago(1)] },
      });
      assert.equal((await look()).missed, 5_002);
    });

    it('count those before the ones that are named, where all of these were due during a pause', async ({
      subject,
      ago,
      one,
      look,
    }) => {
      await one.jobs.pause(JOB, {});
      const during = (await subject.now()) + MINUTE_MS;
      const earlier = { count: 2, first: ago(9), last: ago(8) };
      const missed = missedOf({ after: ago(10), ticks: [during], earlier, runWithinMs: DAY_MS });
      const reply = await one.jobs.note(missed);
      assertMatches(reply, { status: 'noted', missed: { ...earlier, ticks: [] }, owed: earlier });
      assertMatches(await look(), { missed: 2, last: during, owed: earlier, runs: [{ outcome: 'ok' }] });
      assertEquals(await one.jobs.note(missed), reply);
    });

    it('are a thousand at once, and the history stays as long as it is', async ({ ago, one, look }) => {
      const ticks = Array.from({ length: 1_000 }, (_, index) => ago(10) + 100 + index);
      const reply = await one.jobs.note(missedOf({ after: ago(10), ticks, historySize: 20 }));
      assertMatches(reply, { missed: { count: 1_000 } });
      const { runs } = await look(1_000);
      assert.equal(runs.length, 20);
      assert.equal(runs[0]!.tick, new Date(ticks.at(-1)!).toISOString());
    });

    it('are not those of a pause', async ({ one, look, ago }) => {
      await one.jobs.pause(JOB, {});
      const { pause } = await look();
      const during = pause!.at + 1;
      const reply = await one.jobs.note(missedOf({ after: ago(10), ticks: [ago(9), during], runWithinMs: DAY_MS }));
      assertMatches(reply, { missed: { count: 1, first: ago(9), last: ago(9), ticks: [ago(9)] } });
      assertMatches(await look(), { missed: 1, last: during });
    });

    it('are not those of a pause that has ended by itself', async ({ subject, one, ago, look }) => {
      // Long enough for a pause that takes a while to reach a busy store: it has to begin before the tick.
      const lastsMs = 4 * SHORT_MS;
      const until = (await subject.now()) + lastsMs;
      await one.jobs.pause(JOB, { until });
      await subject.pass(lastsMs);
      const during = until - 1;
      const reply = await one.jobs.note(missedOf({ after: ago(10), ticks: [during] }));
      assertEquals(reply, { status: 'noted' });
      assertMatches(await look(), { missed: 0, last: during });
    });

    describe('with a catch-up', () => {
      const { it } = afterOne.with(({ ago }) => {
        const tick = catchUpTick(ago(8));
        return {
          tick,
          owed: { count: 2, first: ago(9), last: ago(8), tick, until: ago(8) + DAY_MS },
          missed: missedOf({ after: ago(10), ticks: [ago(9), ago(8)], runWithinMs: DAY_MS }),
        };
      });

      it('is owed, and told to every instance', async ({ one, missed, owed, two, look }) => {
        assertMatches(await one.jobs.note(missed), { status: 'noted', owed: owed });
        assertEquals(await two.jobs.note(missed), { status: 'stale', owed: owed });
        assertEquals((await look()).owed, owed);
      });

      it('runs once', async ({ one, missed, tick, ago, two, look }) => {
        await one.jobs.note(missed);
        const owner = ownerOf(one);
        const reply = await claimTick(one, tick, owner, 'catchUp');
        assertMatches(reply, { status: 'granted', missed: { count: 2, first: ago(9), last: ago(8) } });
        assert.equal((await claimTick(two, tick, ownerOf(two), 'catchUp')).status, 'taken');
        assert.equal((await look()).owed, undefined);
        await end(one, owner, reply);
        await finishClaim(one.jobs, owner, { resource: JOB, tick });
        assert.equal((await claimTick(two, tick, ownerOf(two), 'catchUp')).status, 'finished');
        assertMatches((await look()).runs[0], { tick: tick, catchUp: true, outcome: 'ok' });
      });

      it('is not shut out by a newer tick that ran already', async ({ one, missed, ago, tick }) => {
        await one.jobs.note(missed);
        await run(one, ago(7));
        assert.equal((await claimTick(one, tick, ownerOf(one), 'catchUp')).status, 'granted');
      });

      it('is owed until it begins: a run in the way, and a pause, leave it', async ({
        one,
        missed,
        ago,
        two,
        tick,
        look,
        owed,
      }) => {
        await one.jobs.note(missed);
        const owner = ownerOf(one);
        const reply = await claim(one, ago(7), owner);
        assert.equal((await claimTick(two, tick, ownerOf(two), 'catchUp')).status, 'overlap');
        await one.jobs.pause(JOB, {});
        assert.equal((await claimTick(two, tick, ownerOf(two), 'catchUp')).status, 'paused');
        await end(one, owner, reply);
        await one.jobs.resume(JOB);
        assertEquals((await look()).owed, owed);
        assert.equal((await claimTick(two, tick, ownerOf(two), 'catchUp')).status, 'granted');
      });

      it.onEveryServer('is owed again if it was given back', async ({ one, missed, tick, look, owed, two }) => {
        await one.jobs.note(missed);
        const owner = ownerOf(one);
        await claimTick(one, tick, owner, 'catchUp');
        await giveBack(one.jobs, owner, { resource: JOB, tick });
        await one.store.release(owner);
        assertMatches(await look(), { owed: owed });
        assert.equal((await claimTick(two, tick, ownerOf(two), 'catchUp')).status, 'granted');
      });

      for (const status of ['paused', 'overlap'] as const) {
        it(`is owed again if it was granted too late, and its owner asks again and is answered: ${status}`, async ({
          subject,
          one,
          two,
          look,
          missed,
          owed,
          tick,
        }) => {
          await one.jobs.note(missed);
          const owner = ownerOf(one);
          await claimTick(one, tick, owner, 'catchUp', { leaseMs: SHORT_MS });
          await subject.pass(SHORT_MS);
          const other = ownerOf(two);
          if (status === 'paused') await two.jobs.pause(JOB, {});
          else await two.store.acquire(other, LONG_MS);
          assert.equal((await claimTick(one, tick, owner, 'catchUp')).status, status);
          assertMatches(await look(), { owed, runs: [{ outcome: 'missed' }, { outcome: 'missed' }, {}] });
          if (status === 'paused') await two.jobs.resume(JOB);
          else await two.store.release(other);
          const again = await claimTick(two, tick, ownerOf(two), 'catchUp');
          assertMatches(again, { status: 'granted', attempt: 1, missed: { count: 2 } });
        });
      }

      it('is the one for all that was missed since', async ({ one, missed, ago, look, tick }) => {
        await one.jobs.note(missed);
        await one.jobs.note(missedOf({ after: ago(8), ticks: [ago(7)], runWithinMs: DAY_MS }));
        const all = { count: 3, first: ago(9), last: ago(7), tick: catchUpTick(ago(7)), until: ago(7) + DAY_MS };
        assertEquals((await look()).owed, all);
        assert.equal((await claimTick(one, tick, ownerOf(one), 'catchUp')).status, 'finished');
      });

      it('is not owed for what is too old, and not for ever', async ({ subject, one, ago, look, tick }) => {
        await one.jobs.note(missedOf({ after: ago(10), ticks: [ago(9)], runWithinMs: MINUTE_MS }));
        assert.equal((await look()).owed, undefined);
        const soon = (await subject.now()) - ago(8) + SHORT_MS;
        await one.jobs.note(missedOf({ after: ago(9), ticks: [ago(8)], runWithinMs: soon }));
        assert.notEqual((await look()).owed, undefined);
        await subject.pass(SHORT_MS + 1);
        assert.equal((await look()).owed, undefined);
        assert.equal((await claimTick(one, tick, ownerOf(one), 'catchUp')).status, 'finished');
      });

      it('that is not owed is not granted', async ({ one, tick }) => {
        assert.equal((await claimTick(one, tick, ownerOf(one), 'catchUp')).status, 'finished');
      });
    });
  });
}

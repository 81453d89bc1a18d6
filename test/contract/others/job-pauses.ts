import assert from 'node:assert/strict';
import { MAX_TIMED_PAUSES } from '../../../lib/features/jobs/core/job-store.js';
import { ANY_NUMBER, assertAtLeast, assertEquals, assertMatches } from '../asserts.js';
import { SHORT_MS } from '../requests.js';
import type { Base, Suite } from '../suite.js';
import {
  claim,
  claimTick,
  DAY_MS,
  end,
  type Granted,
  JOB,
  MINUTE_MS,
  missedOf,
  openJobs,
  ownerOf,
  run,
  SCHEDULE,
} from './job-world.js';

/** Contract of job stores: a pause stops the ticks of a job, and nothing else. */
export function describeJobPauses(suite: Suite<Base>): void {
  const withJobs = suite.with(openJobs);
  const { describe, it } = withJobs;

  describe('a pause', () => {
    it.onEveryServer('is obeyed by each claim, with what its caller said', async ({ subject, two, one, at, look }) => {
      const until = (await subject.now()) + DAY_MS;
      const operator = { by: 'Ada, on call', reason: 'OPS-17:\n 20 % of it' };
      assert.equal(await two.jobs.pause(JOB, { ...operator, until }), undefined);
      assertEquals(await claim(one, at), { status: 'paused', ...operator, until });
      assertMatches(await look(), { isKnown: true, pause: { at: ANY_NUMBER, ...operator, until } });
      assertMatches(await one.store.inspect(JOB), { mode: null });
    });

    it('accounts the tick, so that a resume a moment later does not run it elsewhere', async ({
      one,
      at,
      two,
      look,
    }) => {
      await one.jobs.pause(JOB, {});
      assertEquals(await claim(one, at), { status: 'paused' });
      assertEquals(await two.jobs.resume(JOB), { at: ANY_NUMBER });
      assert.equal((await claim(two, at)).status, 'finished');
      assert.equal((await look()).pause, undefined);
      assert.equal(await one.jobs.resume(JOB), undefined);
    });

    it('leaves the record complete: a paused job is known with its schedule and its next tick', async ({
      one,
      at,
      look,
    }) => {
      await one.jobs.pause(JOB, {});
      await claim(one, at);
      assertMatches(await look(), { schedule: SCHEDULE, next: at + MINUTE_MS });
    });

    it('stops texts that are no time, too, and no manual run', async ({ one }) => {
      await one.jobs.pause(JOB, {});
      assert.equal((await claimTick(one, 'mine', ownerOf(one), 'tick')).status, 'paused');
      assert.equal((await claimTick(one, 'manual:1', ownerOf(one), 'manual')).status, 'granted');
    });

    it('stops the rerun of a run that crashed', async ({ subject, one, at, two }) => {
      await claim(one, at, ownerOf(one), {}, { leaseMs: SHORT_MS });
      await one.jobs.pause(JOB, {});
      await subject.pass(SHORT_MS);
      assert.equal((await claim(two, at, ownerOf(two), {}, { takeOver: 'unfinished' })).status, 'paused');
      await one.jobs.resume(JOB);
      assert.equal((await claim(two, at, ownerOf(two), {}, { takeOver: 'unfinished' })).status, 'finished');
    });

    it('leaves a run alone that has begun', async ({ one, at, two }) => {
      const owner = ownerOf(one);
      const reply = await claim(one, at, owner);
      await two.jobs.pause(JOB, {});
      const { fencingToken } = reply as Granted;
      assertEquals(await claim(one, at, owner), { status: 'granted', fencingToken, attempt: 1 });
      assert.equal(await end(one, owner, reply), true);
    });

    it.onEveryServer('ends by itself', async ({ subject, one, look, at }) => {
      await one.jobs.pause(JOB, { until: (await subject.now()) + SHORT_MS });
      await subject.pass(SHORT_MS);
      assert.equal((await look()).pause, undefined);
      assert.equal((await claim(one, at)).status, 'granted');
    });

    it('is replaced by another one, and counts from the first', async ({ subject, one, look, two }) => {
      await one.jobs.pause(JOB, { by: 'Ada', reason: 'OPS-17' });
      const { pause } = await look();
      await subject.pass(5);
      assertEquals(await two.jobs.pause(JOB, { by: 'Bob' }), pause);
      assertEquals((await look()).pause, { at: pause!.at, by: 'Bob' });
      await two.jobs.pause(JOB, { reason: 'no toner' });
      assertEquals(await two.jobs.resume(JOB), { at: pause!.at, reason: 'no toner' });
    });

    it('accounts with its end all ticks until then', async ({ one, at, look }) => {
      await run(one, at - 5 * MINUTE_MS);
      await one.jobs.pause(JOB, {});
      await one.jobs.resume(JOB);
      assertAtLeast((await look()).last, at);
      // Nothing was missed.
      assert.equal((await claim(one, at + MINUTE_MS, ownerOf(one), { previous: at })).status, 'granted');
    });
  });

  const paused = withJobs.with(async ({ subject, one, at }) => {
    const after = at - 5 * MINUTE_MS;
    await run(one, after);
    return {
      after,
      /** Returns when it ended. Long enough for a pause that takes a while to reach a busy store. */
      pauseBriefly: async (): Promise<number> => {
        const until = (await subject.now()) + 4 * SHORT_MS;
        await one.jobs.pause(JOB, { until });
        await subject.pass(5 * SHORT_MS);
        return until;
      },
    };
  });

  paused.describe('a pause that ends by itself', () => {
    const { it } = paused;

    it('is known still when the job is paused again', async ({ one, after, pauseBriefly, look }) => {
      const first = await pauseBriefly();
      const second = await pauseBriefly();
      await one.jobs.pause(JOB, {});
      const between = first + 1;
      const ticks = [first - 1, between, second - 1];
      const reply = await one.jobs.note(missedOf({ after, ticks }));
      assertEquals(reply, { status: 'noted', missed: { count: 1, first: between, last: between, ticks: [between] } });
      assertMatches(await look(), { missed: 1, last: second - 1 });
    });

    it('lasts no longer than the one that took its place', async ({ subject, one, after, pauseBriefly }) => {
      await one.jobs.pause(JOB, { until: (await subject.now()) + DAY_MS });
      const tick = (await pauseBriefly()) + 1;
      assertMatches(await one.jobs.note(missedOf({ after, ticks: [tick] })), { missed: { ticks: [tick] } });
    });

    it('is forgotten with the next pause, once its ticks are accounted', async ({ one, after, pauseBriefly, look }) => {
      const first = await pauseBriefly();
      assertEquals((await look()).timedPauses, [{ from: ANY_NUMBER, until: first }]);
      await one.jobs.note(missedOf({ after, ticks: [first] }));
      const second = await pauseBriefly();
      assertEquals((await look()).timedPauses, [{ from: ANY_NUMBER, until: second }]);
    });

    it('is forgotten with a resume, which accounts all ticks', async ({ one, pauseBriefly, look }) => {
      await pauseBriefly();
      await one.jobs.pause(JOB, {});
      await one.jobs.resume(JOB);
      assert.equal((await look()).timedPauses, undefined);
    });

    it('is known with the last others, so that the record stays short', async ({ subject, one, look }) => {
      const ends: number[] = [];
      for (let times = 0; times <= MAX_TIMED_PAUSES; times++) {
        const until = (await subject.now()) + 1;
        await one.jobs.pause(JOB, { until });
        await subject.pass(5);
        ends.push(until);
      }
      const { timedPauses } = await look();
      assertEquals(
        timedPauses?.map((span) => span.until),
        ends.slice(1),
      );
    });
  });
}

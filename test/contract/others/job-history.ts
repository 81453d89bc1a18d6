import assert from 'node:assert/strict';
import {
  ANY_NUMBER,
  assertAbove,
  assertAtLeast,
  assertAtMost,
  assertEquals,
  assertLacks,
  assertMatches,
} from '../asserts.js';
import { LONG_MS, SHORT_MS } from '../requests.js';
import type { Base, Suite } from '../suite.js';
import {
  claim,
  claimTick,
  claimOf,
  end,
  type Granted,
  JOB,
  MINUTE_MS,
  missedOf,
  openJobs,
  ownerOf,
  run,
  SCHEDULE,
  tickAt,
} from './job-world.js';
import { giveBack } from './tick-world.js';

/** Contract of job stores: the history has each run, with its end. */
export function describeJobHistory(suite: Suite<Base>): void {
  const { describe, it } = suite.with(openJobs);

  describe('the history', () => {
    it.onEveryServer('has a run from its claim on, and its end', async ({ subject, one, at, look }) => {
      const owner = ownerOf(one);
      const before = await subject.now();
      const reply = await claim(one, at, owner);
      const { fencingToken } = reply as Granted;
      const begun = {
        tick: tickAt(at).tick,
        startedAt: ANY_NUMBER,
        instanceId: 'one',
        rerun: false,
        attempt: 1,
        manual: false,
        catchUp: false,
        fencingToken,
      };
      const during = await look();
      assertEquals(during.runs, [begun]);
      assertEquals(during.running, begun);
      assert.equal(await end(one, owner, reply), true);
      const { runs, running, lastSuccessAt } = await look();
      assertEquals(runs, [{ ...begun, endedAt: ANY_NUMBER, outcome: 'ok' }]);
      assert.equal(running, undefined);
      assertAtLeast(runs[0]!.startedAt, before);
      assertAtLeast(runs[0]!.endedAt, runs[0]!.startedAt);
      assertAtMost(runs[0]!.endedAt, await subject.now());
      assert.equal(lastSuccessAt, runs[0]!.endedAt);
    });

    it.onEveryServer('frees the lock with the end, and grants it to the next waiter', async ({ one, at, two }) => {
      const owner = ownerOf(one);
      const reply = await claim(one, at, owner);
      const waiter = ownerOf(two);
      assert.equal((await two.store.acquire(waiter, LONG_MS, { sentAt: 0, maxWaiters: 10 })).status, 'queued');
      assert.equal(await end(one, owner, reply), true);
      assert.equal(await two.store.verify(waiter), true);
    });

    it('notes an end only once, and frees no lock of another owner', async ({ one, at, look, two }) => {
      const owner = ownerOf(one);
      const reply = await claim(one, at, owner);
      await end(one, owner, reply);
      const [first] = (await look()).runs;
      const next = ownerOf(two);
      await two.store.acquire(next, LONG_MS);
      assert.equal(await end(one, owner, reply, { outcome: 'error' }), false);
      assertEquals((await look()).runs, [first]);
      assert.equal(await two.store.verify(next), true);
    });

    it('knows the first end of a run as its last success, however often it is told', async ({
      subject,
      one,
      at,
      look,
    }) => {
      const owner = ownerOf(one);
      const reply = await claim(one, at, owner);
      await end(one, owner, reply);
      const { lastSuccessAt } = await look();
      await subject.pass(SHORT_MS);
      await end(one, owner, reply);
      assert.equal((await look()).lastSuccessAt, lastSuccessAt);
    });

    it('finds the run that ends behind any number of missed ticks', async ({ one, at, two, look }) => {
      const owner = ownerOf(one);
      const reply = await claim(one, at, owner, { historySize: 1_000 });
      const ticks = Array.from({ length: 200 }, (_, index) => at + (index + 1) * MINUTE_MS);
      await two.jobs.note(missedOf({ after: at, ticks, historySize: 1_000 }));
      await end(one, owner, reply);
      assertMatches((await look(1_000)).runs.at(-1), { tick: tickAt(at).tick, outcome: 'ok' });
    });

    it('shows the current run behind any number of missed ticks', async ({ one, at, two, look }) => {
      await claim(one, at, ownerOf(one), { historySize: 1_000 });
      const ticks = Array.from({ length: 200 }, (_, index) => at + (index + 1) * MINUTE_MS);
      await two.jobs.note(missedOf({ after: at, ticks, historySize: 1_000 }));
      assertMatches((await look(2)).running, { tick: tickAt(at).tick, instanceId: 'one' });
      assert.equal((await look(2)).runs.length, 2);
    });

    it('knows the last success of a job that no instance has registered', async ({ one, look }) => {
      const owner = ownerOf(one);
      await end(one, owner, await claimTick(one, 'manual:1', owner, 'manual'));
      assertAbove((await look()).lastSuccessAt, 0);
    });

    it('knows the last success of a job that has a record, though its run leaves no entry', async ({ one, look }) => {
      await one.jobs.register([{ resource: JOB }]);
      const owner = ownerOf(one);
      const note = { kind: 'manual', historySize: 0 } as const;
      const reply = await one.jobs.claim({ resource: JOB, tick: 'manual:1' }, claimOf(owner, note));
      await end(one, owner, reply);
      assertAbove((await look()).lastSuccessAt, 0);
    });

    it('leaves nothing with size 0 of a text that is no time: not even a record', async ({ one, two, look }) => {
      const note = { kind: 'tick', historySize: 0 } as const;
      const order = { resource: JOB, tick: 'order 7' };
      const owner = ownerOf(one);
      const reply = await one.jobs.claim(order, claimOf(owner, note));
      assert.equal(reply.status, 'granted');
      assert.equal((await two.jobs.claim(order, claimOf(ownerOf(two), note))).status, 'taken');
      assert.equal(await end(one, owner, reply), true);
      assertMatches(await look(), { isKnown: false, runs: [], instances: [] });
      assertEquals(await one.jobs.list(), []);
      // It obeys a pause all the same.
      await two.jobs.pause(JOB, { by: 'Ada' });
      assertEquals(await one.jobs.claim({ ...order, tick: 'order 8' }, claimOf(ownerOf(one), note)), {
        status: 'paused',
        by: 'Ada',
      });
      await two.jobs.resume(JOB);
      assert.equal(
        (await one.jobs.claim({ ...order, tick: 'order 9' }, claimOf(ownerOf(one), note))).status,
        'granted',
      );
      assertMatches(await look(), { isKnown: false, instances: [] });
    });

    it('says with its first run that there was no record of the job', async ({ one, at, two }) => {
      const owner = ownerOf(one);
      const reply = await claim(one, at, owner);
      assertMatches(reply, { isNew: true });
      await end(one, owner, reply);
      assertLacks(await claim(two, at + MINUTE_MS), 'isNew');
    });

    it('tells what an error said of itself, with any characters', async ({ one, at, look }) => {
      const strange = { errorName: 'Type Error', errorCode: '-', errorMessage: 'a  b\n%41 – ü\u0000 ok 12' };
      await run(one, at, { outcome: 'error', ...strange });
      assertMatches((await look()).runs, [{ outcome: 'error', ...strange }]);
      assert.equal((await look()).lastSuccessAt, undefined);
    });

    it('has a run once whose claim was sent again', async ({ one, at, look }) => {
      const owner = ownerOf(one);
      await claim(one, at, owner);
      await claim(one, at, owner);
      assert.equal((await look()).runs.length, 1);
    });

    it('forgets a run that never began', async ({ one, at, look }) => {
      const owner = ownerOf(one);
      const reply = await claim(one, at, owner);
      assert.equal(await end(one, owner, reply, { outcome: 'none' }), true);
      assertEquals((await look()).runs, []);
    });

    it('forgets a run that was given back', async ({ one, at, look }) => {
      await run(one, at - MINUTE_MS);
      const owner = ownerOf(one);
      await claim(one, at, owner);
      await giveBack(one.jobs, owner, tickAt(at));
      assertMatches((await look()).runs, [{ tick: tickAt(at - MINUTE_MS).tick }]);
    });

    it('keeps a run of another instance when a tick is given back', async ({ one, at, two, look }) => {
      await claim(one, at, ownerOf(one));
      await giveBack(two.jobs, ownerOf(two), tickAt(at));
      assert.equal((await look()).runs.length, 1);
    });

    it('keeps the newest runs, the newest first, as many as the claim says', async ({ one, at, look }) => {
      for (const minute of [4, 3, 2, 1]) await run(one, at - minute * MINUTE_MS, {}, { historySize: 3 });
      const ticks = (await look()).runs.map(({ tick }) => tick);
      assertEquals(
        ticks,
        [1, 2, 3].map((minute) => tickAt(at - minute * MINUTE_MS).tick),
      );
      assert.equal((await look(2)).runs.length, 2);
      assertEquals((await look(0)).runs, []);
    });

    it('keeps none with size 0, and the rest of the record all the same', async ({ one, at, look }) => {
      await run(one, at - MINUTE_MS);
      await run(one, at, {}, { historySize: 0 });
      assertMatches(await look(), { runs: [], lastSuccessAt: ANY_NUMBER, schedule: SCHEDULE });
    });

    it('has nothing of a claim without a note', async ({ one, at, look }) => {
      const owner = ownerOf(one);
      await claim(one, at, owner, {}, { note: undefined });
      assertMatches(await look(), { isKnown: false, runs: [], instances: [] });
    });

    it('has manual runs, which are no tick: neither accounted nor in the way of one', async ({
      one,
      look,
      two,
      at,
    }) => {
      const owner = ownerOf(one);
      const reply = await claimTick(one, 'manual:1', owner, 'manual');
      await end(one, owner, reply);
      assertMatches((await look()).runs, [{ tick: 'manual:1', manual: true, outcome: 'ok' }]);
      assert.equal((await look()).last, undefined);
      assert.equal((await claim(two, at)).status, 'granted');
    });
  });
}

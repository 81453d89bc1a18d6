import assert from 'node:assert/strict';
import { ANY_NUMBER, assertEquals, assertMatches } from '../asserts.js';
import { SHORT_MS } from '../requests.js';
import type { Base, Suite } from '../suite.js';
import { claim, claimTick, end, JOB, openJobs, ownerOf, tickAt } from './job-world.js';
import { giveBack } from './tick-world.js';

/** Contract of job stores: the history of a run whose lease expired before its end. */
export function describeJobCrashes(suite: Suite<Base>): void {
  const { describe, it } = suite.with(openJobs);

  describe('the history of a run whose lease is over', () => {
    it('tells a run as lost whose lease was over, without freeing anything', async ({ one, at, look }) => {
      const owner = ownerOf(one);
      const reply = await claim(one, at, owner);
      await one.store.release(owner);
      assertMatches((await look()).runs, [{ outcome: 'crashed' }]);
      assert.equal(await end(one, owner, reply, { outcome: 'lost' }), false);
      assertMatches((await look()).runs, [{ outcome: 'lost', endedAt: ANY_NUMBER }]);
    });

    it('reports a run as crashed once its lease has expired, and as running before', async ({
      subject,
      one,
      at,
      look,
    }) => {
      await claim(one, at, ownerOf(one), {}, { leaseMs: SHORT_MS });
      assertMatches((await look()).running, { instanceId: 'one' });
      await subject.pass(SHORT_MS);
      const { running, runs } = await look();
      assert.equal(running, undefined);
      assertMatches(runs, [{ outcome: 'crashed' }]);
      assert.equal(runs[0]!.endedAt, undefined);
    });

    it.onEveryServer('tells a rerun beside the run that crashed', async ({ subject, one, at, two, look }) => {
      await claim(one, at, ownerOf(one), {}, { leaseMs: SHORT_MS });
      await subject.pass(SHORT_MS);
      const owner = ownerOf(two);
      const reply = await claim(two, at, owner, {}, { takeOver: 'unfinished' });
      assertMatches(reply, { status: 'granted', attempt: 2 });
      await end(two, owner, reply);
      assertMatches((await look()).runs, [
        { instanceId: 'two', rerun: true, attempt: 2, outcome: 'ok' },
        { instanceId: 'one', rerun: false, attempt: 1, outcome: 'crashed' },
      ]);
    });

    it('has a run once that was granted to the same owner twice', async ({ subject, one, at, look }) => {
      const owner = ownerOf(one);
      await claim(one, at, owner, {}, { leaseMs: SHORT_MS });
      await subject.pass(SHORT_MS);
      await end(one, owner, await claim(one, at, owner));
      assertMatches((await look()).runs, [{ outcome: 'ok' }]);
    });

    it('forgets a run that was granted too late, if its owner asks again and a pause stops it', async ({
      subject,
      one,
      two,
      at,
      look,
    }) => {
      const owner = ownerOf(one);
      await claim(one, at, owner, {}, { leaseMs: SHORT_MS });
      await subject.pass(SHORT_MS);
      await two.jobs.pause(JOB, {});
      assert.equal((await claim(one, at, owner)).status, 'paused');
      assertEquals((await look()).runs, []);
    });

    it('forgets a run that was granted too late, if its owner asks again and another run is in the way', async ({
      subject,
      one,
      two,
      at,
      look,
    }) => {
      const owner = ownerOf(one);
      await claim(one, at, owner, {}, { leaseMs: SHORT_MS });
      await subject.pass(SHORT_MS);
      await claimTick(two, 'manual:1', ownerOf(two), 'manual');
      assert.equal((await claim(one, at, owner)).status, 'overlap');
      assertMatches((await look()).runs, [{ tick: 'manual:1' }]);
    });

    it('keeps a crashed run whose rerun is given back, and then waits behind another run', async ({
      subject,
      one,
      two,
      at,
      look,
    }) => {
      const [rerun, inTheWay, next] = [ownerOf(two), ownerOf(two), ownerOf(one)];
      await claim(one, at, ownerOf(one), {}, { leaseMs: SHORT_MS });
      await subject.pass(SHORT_MS);
      assertMatches(await claim(two, at, rerun, {}, { takeOver: 'unfinished' }), { status: 'granted', attempt: 2 });
      await giveBack(two.jobs, rerun, tickAt(at));
      await two.store.release(rerun);
      await claimTick(two, 'manual:1', inTheWay, 'manual');
      assertMatches(await claim(one, at, next, {}, { overlap: 'wait' }), { status: 'claimed' });
      await two.store.release(inTheWay);
      assertMatches(await claim(one, at, next, {}, { overlap: 'wait' }), { status: 'granted', attempt: 2 });
      assertMatches((await look()).runs, [{ attempt: 2 }, { tick: 'manual:1' }, { attempt: 1, outcome: 'crashed' }]);
    });

    it('keeps a crashed run whose rerun is stopped by a pause', async ({ subject, one, two, at, look }) => {
      await claim(one, at, ownerOf(one), {}, { leaseMs: SHORT_MS });
      await subject.pass(SHORT_MS);
      await one.jobs.pause(JOB, {});
      assert.equal((await claim(two, at, ownerOf(two), {}, { takeOver: 'unfinished' })).status, 'paused');
      assertMatches((await look()).runs, [{ instanceId: 'one', outcome: 'crashed' }]);
    });
  });
}

import assert from 'node:assert/strict';
import { ANY_NUMBER, assertAbove, assertEquals, assertMatches } from '../asserts.js';
import { LONG_MS, newOwner, SHORT_MS, take } from '../requests.js';
import type { Base, Suite } from '../suite.js';
import { finishClaim, giveBack, NEXT_TICK, openTicks, TICK, wish } from './tick-world.js';

/** Contract of job stores: a tick starts once. */
export function describeTicks(suite: Suite<Base>): void {
  const ticks = suite.with(openTicks);
  const { describe, it } = ticks;

  it.onEveryServer('a claim is granted with the lock of the job, in one step', async ({ jobs, runner, store }) => {
    const reply = await jobs.claim(TICK, wish(runner));
    assertEquals(reply, { status: 'granted', fencingToken: ANY_NUMBER, attempt: 1 });
    assertMatches(await store.inspect(TICK.resource), {
      mode: 'exclusive',
      holders: [{ instanceId: 'one', fencingToken: (reply as { fencingToken: number }).fencingToken }],
    });
  });

  it.onEveryServer('a claim that is sent again is granted with the same token', async ({ jobs, runner }) => {
    const reply = await jobs.claim(TICK, wish(runner));
    assertEquals(await jobs.claim(TICK, wish(runner)), reply);
  });

  it('a tick is taken for the others, who hear for how long its lock lasts', async ({
    jobs,
    runner,
    otherJobs,
    other,
  }) => {
    await jobs.claim(TICK, wish(runner));
    const reply = await otherJobs.claim(TICK, wish(other));
    assertEquals(reply, { status: 'taken', ttlMs: ANY_NUMBER, isBegun: true });
    assertAbove((reply as { ttlMs: number }).ttlMs, LONG_MS / 2);
  });

  it.onEveryServer(
    'a tick never starts twice: not after it has run, and a late clock gets nothing',
    async ({ jobs, runner, finish, otherJobs, other }) => {
      await jobs.claim(TICK, wish(runner));
      await finish();
      assertEquals(await otherJobs.claim(TICK, wish(other)), { status: 'finished' });
    },
  );

  it('a tick is forgotten after claimTtlMs', async ({ subject, jobs, runner, otherJobs, other }) => {
    await jobs.claim(TICK, wish(runner, { claimTtlMs: SHORT_MS, leaseMs: SHORT_MS }));
    await subject.pass(SHORT_MS * 2);
    assert.equal((await otherJobs.claim(TICK, wish(other))).status, 'granted');
  });

  it('a tick that is no time is remembered no longer than the instance that asks would', async ({
    subject,
    jobs,
    runner,
    otherJobs,
    other,
    store,
  }) => {
    await jobs.claim(TICK, wish(runner));
    await store.release(runner);
    const asker = wish(other, { claimTtlMs: SHORT_MS });
    assert.equal((await otherJobs.claim(TICK, asker)).status, 'taken');
    await subject.pass(SHORT_MS * 2);
    assert.equal((await otherJobs.claim(TICK, asker)).status, 'granted');
  });

  it('a tick is remembered no longer for an instance that asks with a longer time', async ({
    subject,
    jobs,
    runner,
    otherJobs,
    other,
    store,
  }) => {
    await jobs.claim(TICK, wish(runner, { claimTtlMs: SHORT_MS }));
    await store.release(runner);
    assert.equal((await otherJobs.claim(TICK, wish(other))).status, 'taken');
    await subject.pass(SHORT_MS * 2);
    assert.equal((await otherJobs.claim(TICK, wish(other))).status, 'granted');
  });

  it.onEveryServer('jobs, and ticks of one job, are kept apart', async ({ jobs, runner, finish, store }) => {
    await jobs.claim(TICK, wish(runner));
    await finish();
    assert.equal((await jobs.claim(NEXT_TICK, wish(newOwner(store, TICK.resource)))).status, 'granted');
    const elsewhere = { ...TICK, resource: 'job:draw' };
    assert.equal((await jobs.claim(elsewhere, wish(newOwner(store, 'job:draw')))).status, 'granted');
  });

  describe('while an earlier run holds the lock', () => {
    const duringRun = ticks.with(async ({ store }) => {
      const earlier = newOwner(store, TICK.resource);
      await take(store, earlier);
      return { earlier };
    });
    const { describe, it } = duringRun;

    it('a tick is dropped for all instances (overlap: skip)', async ({
      jobs,
      runner,
      otherJobs,
      other,
      store,
      earlier,
    }) => {
      assertEquals(await jobs.claim(TICK, wish(runner)), { status: 'overlap' });
      assertEquals(await otherJobs.claim(TICK, wish(other)), { status: 'finished' });
      await store.release(earlier);
      assertEquals(await otherJobs.claim(TICK, wish(other)), { status: 'finished' });
    });

    it.onEveryServer(
      'an instance claims the tick and gets the lock later (overlap: wait)',
      async ({ runner, jobs, otherJobs, other, store, earlier }) => {
        const waiting = wish(runner, { overlap: 'wait' });
        assertEquals(await jobs.claim(TICK, waiting), { status: 'claimed', ttlMs: ANY_NUMBER });
        const reply = await otherJobs.claim(TICK, wish(other, { overlap: 'wait' }));
        assertMatches(reply, { status: 'taken', isBegun: false });
        await store.release(earlier);
        assertMatches(await jobs.claim(TICK, waiting), { status: 'granted', attempt: 1 });
      },
    );

    describe('a tick that waits', () => {
      const asStandBy = { overlap: 'wait', takeOver: 'unbegun' } as const;

      const { it } = duringRun.with(async ({ jobs, runner }) => {
        await jobs.claim(TICK, wish(runner, { overlap: 'wait' }));
        return {};
      });

      it('is taken over by an instance that stands by, as soon as the lock is free: no run of it had begun', async ({
        otherJobs,
        other,
        store,
        earlier,
        jobs,
        runner,
      }) => {
        assertMatches(await otherJobs.claim(TICK, wish(other, asStandBy)), {
          status: 'taken',
          isBegun: false,
        });
        await store.release(earlier);
        assertMatches(await otherJobs.claim(TICK, wish(other, asStandBy)), {
          status: 'granted',
          attempt: 1,
        });
        assertMatches(await jobs.claim(TICK, wish(runner, { overlap: 'wait' })), {
          status: 'taken',
          isBegun: true,
        });
      });

      it.onEveryServer(
        'belongs to no instance when it is given back, and that run is no rerun',
        async ({ jobs, runner, store, earlier, otherJobs, other }) => {
          await giveBack(jobs, runner, TICK);
          await store.release(earlier);
          assertMatches(await otherJobs.claim(TICK, wish(other)), { status: 'granted', attempt: 1 });
          await giveBack(jobs, runner, TICK);
          await finishClaim(otherJobs, other, TICK);
          assertEquals(await jobs.claim(TICK, wish(runner)), { status: 'finished' });
        },
      );

      it('is still stood by for when it is given back before the lock is free', async ({
        jobs,
        runner,
        otherJobs,
        other,
        store,
        earlier,
      }) => {
        await giveBack(jobs, runner, TICK);
        assert.match((await otherJobs.claim(TICK, wish(other, asStandBy))).status, /taken|claimed/);
        await store.release(earlier);
        assertMatches(await otherJobs.claim(TICK, wish(other, asStandBy)), {
          status: 'granted',
          attempt: 1,
        });
      });
    });
  });

  it('a run that was granted is not taken over by one that only takes what has not begun', async ({
    jobs,
    runner,
    store,
    otherJobs,
    other,
  }) => {
    await jobs.claim(TICK, wish(runner));
    await store.release(runner);
    const reply = await otherJobs.claim(TICK, wish(other, { takeOver: 'unbegun' }));
    assertEquals(reply, { status: 'taken', ttlMs: 0, isBegun: true });
  });

  describe('a rescuer', () => {
    const rescue = { takeOver: 'unfinished' as const };

    it('waits as long as the runner holds the lock', async ({ jobs, runner, otherJobs, other }) => {
      await jobs.claim(TICK, wish(runner));
      assert.equal((await otherJobs.claim(TICK, wish(other, rescue))).status, 'taken');
    });

    it.onEveryServer('takes over a tick whose runner died', async ({ subject, jobs, runner, otherJobs, other }) => {
      await jobs.claim(TICK, wish(runner, { leaseMs: SHORT_MS }));
      assert.equal((await otherJobs.claim(TICK, wish(other))).status, 'taken');
      await subject.pass(SHORT_MS * 2);
      assertEquals(await otherJobs.claim(TICK, wish(other)), { status: 'taken', ttlMs: 0, isBegun: true });
      assertMatches(await otherJobs.claim(TICK, wish(other, rescue)), { status: 'granted', attempt: 2 });
    });

    it.onEveryServer(
      'ends a tick whose runs were granted once more than maxReruns allows',
      async ({ subject, jobs, runner, otherJobs, other }) => {
        const attempts: object[] = [];
        for (const takeOver of ['nothing', 'unfinished', 'unfinished'] as const) {
          const owner = { ...runner, id: `${runner.id}${attempts.length}` };
          attempts.push(await jobs.claim(TICK, wish(owner, { takeOver, maxReruns: 2, leaseMs: SHORT_MS })));
          await subject.pass(SHORT_MS * 2);
        }
        assertMatches(attempts, [{ attempt: 1 }, { attempt: 2 }, { attempt: 3 }]);
        const last = { ...rescue, maxReruns: 2 };
        assertEquals(await otherJobs.claim(TICK, wish(other, last)), { status: 'crashed', attempts: 3 });
        assertEquals(await otherJobs.claim(TICK, wish(other, last)), { status: 'finished' });
      },
    );

    it.onEveryServer(
      'counts no attempt that was given back before its run began',
      async ({ subject, jobs, runner, otherJobs, other }) => {
        for (const [index, takeOver] of (['nothing', 'unfinished', 'unfinished'] as const).entries()) {
          const owner = { ...runner, id: `${runner.id}${index}` };
          assertMatches(await jobs.claim(TICK, wish(owner, { takeOver, leaseMs: SHORT_MS })), { attempt: index + 1 });
          await subject.pass(SHORT_MS * 2);
          if (index === 2) await giveBack(jobs, owner, TICK);
        }
        assertMatches(await otherJobs.claim(TICK, wish(other)), { status: 'granted', attempt: 3 });
      },
    );

    it('leaves nothing to finish to the dead runner', async ({ subject, jobs, runner, otherJobs, other }) => {
      await jobs.claim(TICK, wish(runner, { leaseMs: SHORT_MS }));
      await subject.pass(SHORT_MS * 2);
      await otherJobs.claim(TICK, wish(other, rescue));
      await finishClaim(jobs, runner, TICK);
      assert.equal((await jobs.claim(TICK, wish(runner))).status, 'taken');
    });

    it('keeps the claim from being forgotten, however long the run takes', async ({
      subject,
      jobs,
      runner,
      otherJobs,
      other,
    }) => {
      await jobs.claim(TICK, wish(runner, { claimTtlMs: 1_000 }));
      await subject.pass(100);
      await otherJobs.claim(TICK, wish(other, rescue));
      await subject.pass(1_000);
      assert.equal((await otherJobs.claim(TICK, wish(other))).status, 'taken');
    });

    it('has nothing to do for a tick that has run or is forgotten', async ({
      otherJobs,
      other,
      jobs,
      runner,
      finish,
    }) => {
      assertEquals(await otherJobs.claim(TICK, wish(other, rescue)), { status: 'finished' });
      await jobs.claim(TICK, wish(runner));
      await finish();
      assertEquals(await otherJobs.claim(TICK, wish(other, rescue)), { status: 'finished' });
    });
  });

  it('an end finishes only the claim of the owner that sends it', async ({ jobs, runner, otherJobs, other }) => {
    await jobs.claim(TICK, wish(runner));
    await finishClaim(otherJobs, other, TICK);
    assert.equal((await otherJobs.claim(TICK, wish(other))).status, 'taken');
    await finishClaim(otherJobs, other, NEXT_TICK);
    assert.equal((await otherJobs.claim(NEXT_TICK, wish(other))).status, 'overlap');
  });
}

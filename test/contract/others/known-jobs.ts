import assert from 'node:assert/strict';
import { ANY_NUMBER, assertAtLeast, assertEquals, assertMatches } from '../asserts.js';
import type { Base, Suite } from '../suite.js';
import {
  claim,
  claimOf,
  DAY_MS,
  end,
  JOB,
  MINUTE_MS,
  missedOf,
  noteOf,
  openJobs,
  ownerOf,
  run,
  SCHEDULE,
} from './job-world.js';

/** Contract of job stores: the record of a job. */
export function describeKnownJobs(suite: Suite<Base>): void {
  const withJobs = suite.with(openJobs);
  const { describe } = withJobs;

  describe('what is known', () => {
    const { it } = withJobs.with(({ at }) => ({
      registration: { resource: JOB, schedule: SCHEDULE, next: at + MINUTE_MS },
    }));

    it('is nothing at first', async ({ subject, look, one }) => {
      const now = await subject.now();
      const { now: seen, ...rest } = await look();
      assertEquals(rest, { resource: JOB, isKnown: false, missed: 0, runs: [], instances: [], instanceCount: 0 });
      assertAtLeast(seen, now);
      assertEquals(await one.jobs.list(), []);
    });

    it.onEveryServer(
      'begins with a registration: nothing before it was missed',
      async ({ one, registration, at, two, look }) => {
        const [state] = await one.jobs.register([registration]);
        assertMatches(state, { isKnown: true, schedule: SCHEDULE, next: at + MINUTE_MS, missed: 0, runs: [] });
        assertAtLeast(state!.last, at);
        assertEquals((await look()).instances, [{ instanceId: 'one', seenAt: ANY_NUMBER }]);
        assertEquals(await two.jobs.list(), [JOB]);
      },
    );

    it.onEveryServer(
      'has when a tick without an order was claimed last, or when the job was registered',
      async ({ subject, one, two, look }) => {
        const before = await subject.now();
        await one.jobs.register([{ resource: JOB }]);
        const { statedAt: first } = await look();
        assertAtLeast(first, before);
        await two.jobs.register([{ resource: JOB }]);
        assert.equal((await look()).statedAt, first);
        const next = before + MINUTE_MS;
        const note = noteOf(before, { schedule: undefined, previous: undefined, next });
        const owner = ownerOf(one);
        const reply = await one.jobs.claim({ resource: JOB, tick: 'interval' }, claimOf(owner, note));
        const { statedAt: claimed } = await look();
        assertAtLeast(claimed, first!);
        assertAtLeast(await subject.now(), claimed!);
        await end(one, owner, reply);
        await two.jobs.register([{ resource: JOB }]);
        assertMatches(await look(), { statedAt: claimed, next });
      },
    );

    it('leaves the tick that was due last before that to one call by hand, and no older one', async ({
      one,
      two,
      at,
      registration,
    }) => {
      await one.jobs.register([registration]);
      assertMatches(await claim(two, at - MINUTE_MS, undefined, { next: at }), { status: 'late' });
      const owner = ownerOf(one);
      const reply = await claim(one, at, owner);
      assertMatches(reply, { status: 'granted' });
      await end(one, owner, reply);
      assertMatches(await claim(two, at), { status: 'taken' });
      assertMatches(await claim(two, at - MINUTE_MS, undefined, { next: at + MINUTE_MS }), { status: 'late' });
    });

    it('leaves no tick to a call by hand where another schedule is registered', async ({ one, at, registration }) => {
      await run(one, at - 5 * MINUTE_MS);
      await one.jobs.register([{ ...registration, schedule: 'another' }]);
      assertMatches(await claim(one, at, undefined, { schedule: 'another' }), { status: 'late' });
    });

    it.onEveryServer(
      'has the schedule that another one was registered after, and whose it is',
      async ({ one, two, at, registration, look }) => {
        await one.jobs.register([registration]);
        await two.jobs.register([{ ...registration, schedule: '5 4 * * * UTC' }]);
        const other = { schedule: SCHEDULE, instanceId: 'one', since: ANY_NUMBER, seenAt: ANY_NUMBER };
        assertMatches(await look(), { schedule: '5 4 * * * UTC', other });
        assertMatches(await claim(one, at + MINUTE_MS), { status: 'granted' });
        assertMatches(await look(), { schedule: '5 4 * * * UTC', other });
      },
    );

    it.onEveryServer(
      'has the single date that was registered last, and refuses another one',
      async ({ subject, one, two }) => {
        const soon = (await subject.now()) + MINUTE_MS / 2;
        const date = (at: number) => ({ at, staysMs: DAY_MS });
        await one.jobs.register([{ resource: JOB, date: date(soon) }]);
        await two.jobs.register([{ resource: JOB, date: date(soon + 1_000) }]);
        const note = { schedule: undefined, previous: undefined, next: undefined, isDate: true };
        assertEquals(await claim(one, soon, undefined, note), { status: 'otherDate', registered: soon + 1_000 });
        assertMatches(await claim(two, soon + 1_000, undefined, note), { status: 'granted' });
      },
    );

    it('stays with a registration of the same schedule, and starts again with another', async ({
      one,
      at,
      two,
      registration,
      look,
    }) => {
      await run(one, at - 5 * MINUTE_MS);
      await one.jobs.note(missedOf({ after: at - 5 * MINUTE_MS, ticks: [at - 4 * MINUTE_MS], runWithinMs: DAY_MS }));
      await two.jobs.register([registration]);
      assertMatches(await look(), { last: at - 4 * MINUTE_MS, missed: 1, owed: { count: 1 } });
      await two.jobs.register([{ ...registration, schedule: 'another' }]);
      const state = await look();
      assertMatches(state, { schedule: 'another', missed: 1 });
      assertAtLeast(state.last, at);
      assert.equal(state.owed, undefined);
    });

    it('has the registered schedule while an instance of an old release, with another one, claims ticks', async ({
      one,
      at,
      two,
      registration,
      look,
    }) => {
      await one.jobs.register([registration]);
      const old = { schedule: 'another', next: at + 9 * MINUTE_MS };
      assertMatches(await claim(two, at, undefined, old), { status: 'granted' });
      assertMatches(await look(), { schedule: SCHEDULE, next: at + MINUTE_MS });
      await two.jobs.claim(
        { resource: JOB, tick: 'interval' },
        claimOf(ownerOf(two), noteOf(at, { schedule: undefined, next: at })),
      );
      assertMatches(await look(), { schedule: SCHEDULE, next: at + MINUTE_MS });
    });

    it('has the next tick of the registered schedule where another instance was first at this one', async ({
      one,
      at,
      two,
      registration,
      look,
    }) => {
      await one.jobs.register([registration]);
      const time = at + MINUTE_MS;
      assertMatches(await claim(two, time, undefined, { schedule: 'another' }), { status: 'granted' });
      assertMatches(await claim(one, time, undefined, { next: time + 5 * MINUTE_MS }), { status: 'taken' });
      assertMatches(await look(), { schedule: SCHEDULE, next: time + 5 * MINUTE_MS });
    });

    it('has the schedule of a claim where no instance asked for the next tick of the other one', async ({
      one,
      at,
      two,
      registration,
      look,
    }) => {
      await one.jobs.register([{ ...registration, next: at - 2 * MINUTE_MS }]);
      const time = at + MINUTE_MS;
      const due = { at: time, earlyMs: MINUTE_MS, lateMs: MINUTE_MS };
      await claim(two, time, undefined, { schedule: 'another', next: time + 5 * MINUTE_MS }, { due });
      assertMatches(await look(), { schedule: 'another', next: time + 5 * MINUTE_MS });
    });

    it.onEveryServer('is of many jobs at once, in the order of the question', async ({ one, two }) => {
      const names = Array.from({ length: 120 }, (_, index) => `cron:job ${index} {x}`);
      await one.jobs.register(names.map((resource) => ({ resource })));
      await two.jobs.register([{ resource: names[7]! }]);
      const states = await one.jobs.look(names, 0, 10);
      assertEquals(
        states.map(({ resource, isKnown }) => [resource, isKnown]),
        names.map((name) => [name, true]),
      );
      assertEquals(states[7]!.instances.map(({ instanceId }) => instanceId).toSorted(), ['one', 'two']);
      assertEquals((await two.jobs.list()).toSorted(), names.toSorted());
    });

    it.onEveryServer(
      'is listed of a job that an instance has registered or paused',
      async ({ one, two, at, look, registration }) => {
        await run(one, at);
        assertMatches(await look(), { isKnown: true });
        assertEquals(await two.jobs.list(), []);
        await one.jobs.register([registration]);
        assertEquals(await two.jobs.list(), [JOB]);
      },
    );

    it('has each instance that asks for a tick', async ({ one, at, two, look }) => {
      await run(one, at);
      await claim(two, at);
      assertEquals((await look()).instances.map(({ instanceId }) => instanceId).toSorted(), ['one', 'two']);
    });

    it('names as many instances as are asked for, and counts all of them', async ({ one, two, registration }) => {
      await one.jobs.register([registration]);
      await two.jobs.register([registration]);
      const countOf = async (limit?: number) => {
        const [state] = await one.jobs.look([JOB], 0, limit);
        return [state!.instances.length, state!.instanceCount];
      };
      assertEquals(await countOf(1), [1, 2]);
      assertEquals(await countOf(2), [2, 2]);
      assertEquals(await countOf(3), [2, 2]);
      assertEquals(await countOf(), [0, 0]);
    });

    it('has a pause of a job that no instance has', async ({ one, two }) => {
      await one.jobs.pause(JOB, { by: 'Ada' });
      assertEquals(await two.jobs.list(), [JOB]);
    });
  });
}

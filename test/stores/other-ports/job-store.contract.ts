import {
  catchUpTick,
  type JobNote,
  type JobState,
  type JobStore,
  type MissedNote,
  type RunEnd,
} from '../../../lib/core/store/job-store.js';
import type { LockOwner, LockStore } from '../../../lib/core/store/lock-store.js';
import type { Tick, TickClaim, TickReply, TickStore } from '../../../lib/core/store/tick-store.js';
import { LONG_MS, newOwner, SHORT_MS, type Subject } from '../subjects/subject.js';

const JOB = 'cron:report';
const MINUTE_MS = 60_000;
const SCHEDULE = '* * * * * Europe/Berlin';
const DAY_MS = 24 * 60 * MINUTE_MS;

type Granted = Extract<TickReply, { status: 'granted' }>;

/** One instance, and its next owner. */
interface One {
  readonly store: LockStore;
  readonly tickStore: TickStore;
  readonly jobs: JobStore;
}

/** What every store keeps to that remembers jobs. */
export function describeJobStore(createSubject: () => Promise<Subject>): void {
  let subject: Subject;
  let one: One;
  let two: One;
  /** The tick of this minute, by the clock of the store. */
  let at: number;

  beforeEach(async () => {
    subject = await createSubject();
    one = await subject.open('one');
    two = await subject.open('two');
    at = Math.floor((await subject.now()) / MINUTE_MS) * MINUTE_MS;
  });
  afterEach(() => subject.close());

  const tickAt = (time: number): Tick => ({ resource: JOB, tick: new Date(time).toISOString() });
  const ownerOf = ({ store }: One): LockOwner => newOwner(store, JOB);

  function noteOf(time: number, changes: Partial<JobNote> = {}): JobNote {
    const ahead = { previous: time - MINUTE_MS, next: time + MINUTE_MS };
    return { kind: 'tick', historySize: 100, schedule: SCHEDULE, ...ahead, ...changes };
  }

  function wish(owner: LockOwner, note: JobNote, changes: Partial<TickClaim> = {}): TickClaim {
    return { owner, leaseMs: LONG_MS, keepMs: DAY_MS, overlap: 'skip', takeOver: 'nothing', note, ...changes };
  }

  /** Claims the tick that is due at a time. */
  function claim(
    by: One,
    time: number,
    owner = ownerOf(by),
    note: Partial<JobNote> = {},
    changes: Partial<TickClaim> = {},
  ): Promise<TickReply> {
    const due = { at: time, earlyMs: MINUTE_MS, lateMs: DAY_MS };
    return by.tickStore.claim(tickAt(time), wish(owner, noteOf(time, note), { due, ...changes }));
  }

  /** Claims a text that is no time. */
  const claimText = (
    by: One,
    tick: string,
    owner: LockOwner,
    kind: JobNote['kind'],
    changes: Partial<TickClaim> = {},
  ) => by.tickStore.claim({ resource: JOB, tick }, wish(owner, { kind, historySize: 100 }, changes));

  async function end(by: One, owner: LockOwner, reply: TickReply, changes: Partial<RunEnd> = {}): Promise<boolean> {
    const { fencingToken } = reply as Granted;
    return by.jobs.end({ owner, fencingToken, outcome: 'ok', ...changes });
  }

  /** A whole run. */
  async function run(by: One, time: number, changes: Partial<RunEnd> = {}, note: Partial<JobNote> = {}): Promise<void> {
    const owner = ownerOf(by);
    await end(by, owner, await claim(by, time, owner, note), changes);
  }

  async function look(limit = 100): Promise<JobState> {
    const [state] = await one.jobs.look([JOB], limit, 1_000);
    return state!;
  }

  const missedOf = (changes: Partial<MissedNote> & Pick<MissedNote, 'after' | 'ticks'>): MissedNote => ({
    resource: JOB,
    schedule: SCHEDULE,
    historySize: 100,
    ...changes,
  });

  describe('the history', () => {
    it('has a run from its claim on, and its end', async () => {
      const owner = ownerOf(one);
      const before = await subject.now();
      const reply = await claim(one, at, owner);
      const { fencingToken } = reply as Granted;
      const begun = {
        tick: tickAt(at).tick,
        startedAt: expect.any(Number),
        instance: 'one',
        rerun: false,
        manual: false,
        catchUp: false,
        fencingToken,
      };
      const during = await look();
      expect(during.runs).toEqual([begun]);
      expect(during.running).toEqual(begun);
      expect(await end(one, owner, reply)).toBe(true);
      const { runs, running, lastSuccessAt } = await look();
      expect(runs).toEqual([{ ...begun, endedAt: expect.any(Number), outcome: 'ok' }]);
      expect(running).toBeUndefined();
      expect(runs[0]!.startedAt).toBeGreaterThanOrEqual(before);
      expect(runs[0]!.endedAt).toBeGreaterThanOrEqual(runs[0]!.startedAt);
      expect(runs[0]!.endedAt).toBeLessThanOrEqual(await subject.now());
      expect(lastSuccessAt).toBe(runs[0]!.endedAt);
    });

    it('frees the lock with the end, and grants it to the next waiter', async () => {
      const owner = ownerOf(one);
      const reply = await claim(one, at, owner);
      const waiter = ownerOf(two);
      expect((await two.store.acquire(waiter, LONG_MS, { sentAt: 0, maxWaiters: 10 })).status).toBe('queued');
      expect(await end(one, owner, reply)).toBe(true);
      expect(await two.store.verify(waiter)).toBe(true);
    });

    it('notes an end only once, and frees no lock of another owner', async () => {
      const owner = ownerOf(one);
      const reply = await claim(one, at, owner);
      await end(one, owner, reply);
      const [first] = (await look()).runs;
      const next = ownerOf(two);
      await two.store.acquire(next, LONG_MS);
      expect(await end(one, owner, reply, { outcome: 'error' })).toBe(false);
      expect((await look()).runs).toEqual([first]);
      expect(await two.store.verify(next)).toBe(true);
    });

    it('knows the first end of a run as its last success, however often it is told', async () => {
      const owner = ownerOf(one);
      const reply = await claim(one, at, owner);
      await end(one, owner, reply);
      const { lastSuccessAt } = await look();
      await subject.pass(SHORT_MS);
      await end(one, owner, reply);
      expect((await look()).lastSuccessAt).toBe(lastSuccessAt);
    });

    it('finds the run that ends behind any number of missed ticks', async () => {
      const owner = ownerOf(one);
      const reply = await claim(one, at, owner, { historySize: 1_000 });
      const ticks = Array.from({ length: 200 }, (_, index) => at + (index + 1) * MINUTE_MS);
      await two.jobs.noteMissed(missedOf({ after: at, ticks, historySize: 1_000 }));
      await end(one, owner, reply);
      expect((await look(1_000)).runs.at(-1)).toMatchObject({ tick: tickAt(at).tick, outcome: 'ok' });
    });

    it('shows the run that goes on behind any number of missed ticks', async () => {
      await claim(one, at, ownerOf(one), { historySize: 1_000 });
      const ticks = Array.from({ length: 200 }, (_, index) => at + (index + 1) * MINUTE_MS);
      await two.jobs.noteMissed(missedOf({ after: at, ticks, historySize: 1_000 }));
      expect((await look(2)).running).toMatchObject({ tick: tickAt(at).tick, instance: 'one' });
      expect((await look(2)).runs).toHaveLength(2);
    });

    it('knows the last success of a job that no instance has registered', async () => {
      const owner = ownerOf(one);
      const note = { kind: 'manual', historySize: 1 } as const;
      const reply = await one.tickStore.claim({ resource: JOB, tick: 'manual:1' }, wish(owner, note));
      await end(one, owner, reply);
      expect((await look()).lastSuccessAt).toBeGreaterThan(0);
    });

    it('says with its first run that there was no record of the job', async () => {
      const owner = ownerOf(one);
      const reply = await claim(one, at, owner);
      expect(reply).toMatchObject({ isNew: true });
      await end(one, owner, reply);
      expect(await claim(two, at + MINUTE_MS)).not.toHaveProperty('isNew');
    });

    it('tells what an error said of itself, whatever characters that has', async () => {
      const strange = { errorName: 'Type Error', errorCode: '-', errorMessage: 'a  b\n%41 – ü\u0000 ok 12' };
      await run(one, at, { outcome: 'error', ...strange });
      expect((await look()).runs).toMatchObject([{ outcome: 'error', ...strange }]);
      expect((await look()).lastSuccessAt).toBeUndefined();
    });

    it('tells a run as lost whose lease was over, without freeing anything', async () => {
      const owner = ownerOf(one);
      const reply = await claim(one, at, owner);
      await one.store.release(owner);
      expect((await look()).runs).toMatchObject([{ outcome: 'crashed' }]);
      expect(await end(one, owner, reply, { outcome: 'lost' })).toBe(false);
      expect((await look()).runs).toMatchObject([{ outcome: 'lost', endedAt: expect.any(Number) }]);
    });

    it('tells a run as crashed once its lease is over, and as running before', async () => {
      await claim(one, at, ownerOf(one), {}, { leaseMs: SHORT_MS });
      expect((await look()).running).toMatchObject({ instance: 'one' });
      await subject.pass(SHORT_MS);
      const { running, runs } = await look();
      expect(running).toBeUndefined();
      expect(runs).toMatchObject([{ outcome: 'crashed' }]);
      expect(runs[0]!.endedAt).toBeUndefined();
    });

    it('tells a rerun beside the run that crashed', async () => {
      await claim(one, at, ownerOf(one), {}, { leaseMs: SHORT_MS });
      await subject.pass(SHORT_MS);
      const owner = ownerOf(two);
      const reply = await claim(two, at, owner, {}, { takeOver: 'unfinished' });
      expect(reply).toMatchObject({ status: 'granted', rerun: true });
      await end(two, owner, reply);
      expect((await look()).runs).toMatchObject([
        { instance: 'two', rerun: true, outcome: 'ok' },
        { instance: 'one', rerun: false, outcome: 'crashed' },
      ]);
    });

    it('has a run once whose claim was sent again', async () => {
      const owner = ownerOf(one);
      await claim(one, at, owner);
      await claim(one, at, owner);
      expect((await look()).runs).toHaveLength(1);
    });

    it('has a run once that was granted to the same owner twice', async () => {
      const owner = ownerOf(one);
      await claim(one, at, owner, {}, { leaseMs: SHORT_MS });
      await subject.pass(SHORT_MS);
      await end(one, owner, await claim(one, at, owner));
      expect((await look()).runs).toMatchObject([{ outcome: 'ok' }]);
    });

    it('forgets a run that never began', async () => {
      const owner = ownerOf(one);
      const reply = await claim(one, at, owner);
      expect(await end(one, owner, reply, { outcome: 'none' })).toBe(true);
      expect((await look()).runs).toEqual([]);
    });

    it('forgets a run that was given back', async () => {
      await run(one, at - MINUTE_MS);
      const owner = ownerOf(one);
      await claim(one, at, owner);
      await one.tickStore.giveBack(tickAt(at), owner, LONG_MS);
      expect((await look()).runs).toMatchObject([{ tick: tickAt(at - MINUTE_MS).tick }]);
    });

    it('keeps a run of another instance when a tick is given back', async () => {
      await claim(one, at, ownerOf(one));
      await two.tickStore.giveBack(tickAt(at), ownerOf(two), LONG_MS);
      expect((await look()).runs).toHaveLength(1);
    });

    it('keeps the newest runs, the newest first, as many as the claim says', async () => {
      for (const minute of [4, 3, 2, 1]) await run(one, at - minute * MINUTE_MS, {}, { historySize: 3 });
      const ticks = (await look()).runs.map(({ tick }) => tick);
      expect(ticks).toEqual([1, 2, 3].map((minute) => tickAt(at - minute * MINUTE_MS).tick));
      expect((await look(2)).runs).toHaveLength(2);
      expect((await look(0)).runs).toEqual([]);
    });

    it('keeps none with size 0, and the rest of the record all the same', async () => {
      await run(one, at - MINUTE_MS);
      await run(one, at, {}, { historySize: 0 });
      expect(await look()).toMatchObject({ runs: [], lastSuccessAt: expect.any(Number), schedule: SCHEDULE });
    });

    it('has nothing of a claim without a note', async () => {
      const owner = ownerOf(one);
      await claim(one, at, owner, {}, { note: undefined });
      expect(await look()).toMatchObject({ isKnown: false, runs: [], instances: [] });
    });

    it('has manual runs, which are no tick: neither accounted nor in the way of one', async () => {
      const owner = ownerOf(one);
      const reply = await claimText(one, 'manual:1', owner, 'manual');
      await end(one, owner, reply);
      expect((await look()).runs).toMatchObject([{ tick: 'manual:1', manual: true, outcome: 'ok' }]);
      expect((await look()).last).toBeUndefined();
      expect((await claim(two, at)).status).toBe('granted');
    });
  });

  describe('a pause', () => {
    it('is obeyed by each claim, with what its caller said', async () => {
      const until = (await subject.now()) + DAY_MS;
      expect(await two.jobs.pause(JOB, { by: 'Ada, on call', until })).toBeUndefined();
      expect(await claim(one, at)).toEqual({ status: 'paused', by: 'Ada, on call', until });
      expect(await look()).toMatchObject({
        isKnown: true,
        pause: { at: expect.any(Number), by: 'Ada, on call', until },
      });
      expect(await one.store.inspect(JOB)).toMatchObject({ mode: null });
    });

    it('accounts the tick, so that a resume a moment later does not run it elsewhere', async () => {
      await one.jobs.pause(JOB, {});
      expect(await claim(one, at)).toEqual({ status: 'paused' });
      expect(await two.jobs.resume(JOB)).toEqual({ at: expect.any(Number) });
      expect((await claim(two, at)).status).toBe('finished');
      expect((await look()).pause).toBeUndefined();
      expect(await one.jobs.resume(JOB)).toBeUndefined();
    });

    it('leaves the record complete: a paused job is known with its schedule and its next tick', async () => {
      await one.jobs.pause(JOB, {});
      await claim(one, at);
      expect(await look()).toMatchObject({ schedule: SCHEDULE, next: at + MINUTE_MS });
    });

    it('stops texts that are no time, too, and no manual run', async () => {
      await one.jobs.pause(JOB, {});
      expect((await claimText(one, 'mine', ownerOf(one), 'tick')).status).toBe('paused');
      expect((await claimText(one, 'manual:1', ownerOf(one), 'manual')).status).toBe('granted');
    });

    it('stops the rerun of a run that crashed', async () => {
      await claim(one, at, ownerOf(one), {}, { leaseMs: SHORT_MS });
      await one.jobs.pause(JOB, {});
      await subject.pass(SHORT_MS);
      expect((await claim(two, at, ownerOf(two), {}, { takeOver: 'unfinished' })).status).toBe('paused');
      await one.jobs.resume(JOB);
      expect((await claim(two, at, ownerOf(two), {}, { takeOver: 'unfinished' })).status).toBe('finished');
    });

    it('leaves a run alone that has begun', async () => {
      const owner = ownerOf(one);
      const reply = await claim(one, at, owner);
      await two.jobs.pause(JOB, {});
      const { fencingToken } = reply as Granted;
      expect(await claim(one, at, owner)).toEqual({ status: 'granted', fencingToken, rerun: false });
      expect(await end(one, owner, reply)).toBe(true);
    });

    it('ends by itself', async () => {
      await one.jobs.pause(JOB, { until: (await subject.now()) + SHORT_MS });
      await subject.pass(SHORT_MS);
      expect((await look()).pause).toBeUndefined();
      expect((await claim(one, at)).status).toBe('granted');
    });

    it('is replaced by another one, and counts from the first', async () => {
      await one.jobs.pause(JOB, { by: 'Ada' });
      const { pause } = await look();
      await subject.pass(5);
      expect(await two.jobs.pause(JOB, { by: 'Bob' })).toEqual(pause);
      expect((await look()).pause).toEqual({ at: pause!.at, by: 'Bob' });
    });

    it('accounts with its end all ticks until then', async () => {
      await run(one, at - 5 * MINUTE_MS);
      await one.jobs.pause(JOB, {});
      await one.jobs.resume(JOB);
      expect((await look()).last).toBeGreaterThanOrEqual(at);
      // Nothing was missed.
      expect((await claim(one, at + MINUTE_MS, ownerOf(one), { previous: at })).status).toBe('granted');
    });
  });

  describe('missed ticks', () => {
    const ago = (minutes: number): number => at - minutes * MINUTE_MS;

    beforeEach(() => run(one, ago(10)));

    it('are found by the claim of a later tick, which changes nothing', async () => {
      const before = await look();
      expect(await claim(two, at)).toMatchObject({ status: 'gap', last: ago(10) });
      expect(await look()).toMatchObject({ last: before.last, runs: before.runs, missed: 0 });
      expect(await one.store.inspect(JOB)).toMatchObject({ mode: null });
    });

    it('are not found where the tick before was accounted', async () => {
      expect((await claim(two, ago(9))).status).toBe('granted');
    });

    it('are not found by another schedule, which takes the place of the first', async () => {
      await one.jobs.noteMissed(missedOf({ after: ago(10), ticks: [ago(9)], runWithinMs: DAY_MS }));
      const owner = ownerOf(two);
      await end(two, owner, await claim(two, ago(2), owner, { schedule: 'another' }));
      expect(await look()).toMatchObject({ schedule: 'another', last: ago(2) });
      expect((await look()).owed).toBeUndefined();
      expect((await claim(one, at)).status).toBe('granted');
    });

    it('are told by one instance, counted, and in the history', async () => {
      const missed = missedOf({ after: ago(10), ticks: [ago(9), ago(8), ago(7)] });
      const replies = await Promise.all([one.jobs.noteMissed(missed), two.jobs.noteMissed(missed)]);
      const noted = {
        status: 'noted',
        missed: { count: 3, first: ago(9), last: ago(7), ticks: [ago(9), ago(8), ago(7)] },
      };
      expect(replies).toEqual(expect.arrayContaining([noted, { status: 'stale' }]));
      const state = await look();
      expect(state).toMatchObject({ missed: 3, last: ago(7) });
      expect(state.owed).toBeUndefined();
      expect(state.runs).toHaveLength(4);
      expect(state.runs.slice(0, 3)).toMatchObject(
        [7, 8, 9].map((minutes) => ({ tick: tickAt(ago(minutes)).tick, outcome: 'missed' })),
      );
      expect(Object.keys(state.runs[0]!)).not.toContain('fencingToken');
    });

    it('are told again to the instance that told them, and did not hear the answer', async () => {
      const missed = missedOf({ after: ago(10), ticks: [ago(9), ago(8)], runWithinMs: DAY_MS });
      const reply = await one.jobs.noteMissed(missed);
      expect(reply).toMatchObject({ status: 'noted', missed: { count: 2 }, owed: { count: 2 } });
      const state = await look();
      expect(await one.jobs.noteMissed(missed)).toEqual(reply);
      expect((await two.jobs.noteMissed(missed)).status).toBe('stale');
      expect(await look()).toEqual({ ...state, now: expect.any(Number) });
      await one.jobs.noteMissed(missedOf({ after: ago(8), ticks: [ago(7)] }));
      expect((await one.jobs.noteMissed(missed)).status).toBe('stale');
    });

    it('are never granted to a late instance', async () => {
      await one.jobs.noteMissed(missedOf({ after: ago(10), ticks: [ago(9)] }));
      expect((await claim(two, ago(9))).status).toBe('late');
    });

    it('are not told of another schedule, or of a job that is not known', async () => {
      const missed = missedOf({ after: ago(10), ticks: [ago(9)] });
      expect(await one.jobs.noteMissed({ ...missed, schedule: 'another' })).toEqual({ status: 'stale' });
      expect(await one.jobs.noteMissed({ ...missed, resource: 'cron:unknown' })).toEqual({ status: 'stale' });
      expect((await look()).missed).toBe(0);
    });

    it('count those before the ones that are named', async () => {
      const earlier = { count: 5_000, first: ago(10) + 1, last: ago(3) };
      const reply = await one.jobs.noteMissed(missedOf({ after: ago(10), ticks: [ago(2), ago(1)], earlier }));
      expect(reply).toMatchObject({
        missed: { count: 5_002, first: ago(10) + 1, last: ago(1), ticks: [ago(2), ago(1)] },
      });
      expect((await look()).missed).toBe(5_002);
    });

    it('are a thousand at once, and the history stays as long as it is', async () => {
      const ticks = Array.from({ length: 1_000 }, (_, index) => ago(10) + 100 + index);
      const reply = await one.jobs.noteMissed(missedOf({ after: ago(10), ticks, historySize: 20 }));
      expect(reply).toMatchObject({ missed: { count: 1_000 } });
      const { runs } = await look(1_000);
      expect(runs).toHaveLength(20);
      expect(runs[0]!.tick).toBe(new Date(ticks.at(-1)!).toISOString());
    });

    it('are not those of a pause', async () => {
      await one.jobs.pause(JOB, {});
      const { pause } = await look();
      const during = pause!.at + 1;
      const reply = await one.jobs.noteMissed(
        missedOf({ after: ago(10), ticks: [ago(9), during], runWithinMs: DAY_MS }),
      );
      expect(reply).toMatchObject({ missed: { count: 1, first: ago(9), last: ago(9), ticks: [ago(9)] } });
      expect(await look()).toMatchObject({ missed: 1, last: during });
    });

    it('are not those of a pause that has ended by itself', async () => {
      const from = await subject.now();
      await one.jobs.pause(JOB, { until: from + SHORT_MS });
      await subject.pass(SHORT_MS);
      const reply = await one.jobs.noteMissed(missedOf({ after: ago(10), ticks: [from + 20] }));
      expect(reply).toEqual({ status: 'noted' });
      expect(await look()).toMatchObject({ missed: 0, last: from + 20 });
    });

    describe('with a catch-up', () => {
      const tick = (): string => catchUpTick(ago(8));
      const owed = () => ({ count: 2, first: ago(9), last: ago(8), tick: tick(), until: ago(8) + DAY_MS });
      const missed = () => missedOf({ after: ago(10), ticks: [ago(9), ago(8)], runWithinMs: DAY_MS });

      it('is owed, and told to every instance', async () => {
        expect(await one.jobs.noteMissed(missed())).toMatchObject({ status: 'noted', owed: owed() });
        expect(await two.jobs.noteMissed(missed())).toEqual({ status: 'stale', owed: owed() });
        expect((await look()).owed).toEqual(owed());
      });

      it('runs once', async () => {
        await one.jobs.noteMissed(missed());
        const owner = ownerOf(one);
        const reply = await claimText(one, tick(), owner, 'catchUp');
        expect(reply).toMatchObject({ status: 'granted', missed: { count: 2, first: ago(9), last: ago(8) } });
        expect((await claimText(two, tick(), ownerOf(two), 'catchUp')).status).toBe('taken');
        expect((await look()).owed).toBeUndefined();
        await end(one, owner, reply);
        await one.tickStore.finish({ resource: JOB, tick: tick() }, owner, LONG_MS);
        expect((await claimText(two, tick(), ownerOf(two), 'catchUp')).status).toBe('finished');
        expect((await look()).runs[0]).toMatchObject({ tick: tick(), catchUp: true, outcome: 'ok' });
      });

      it('is not shut out by a newer tick that ran already', async () => {
        await one.jobs.noteMissed(missed());
        await run(one, ago(7));
        expect((await claimText(one, tick(), ownerOf(one), 'catchUp')).status).toBe('granted');
      });

      it('is owed until it begins: a run in the way, and a pause, leave it', async () => {
        await one.jobs.noteMissed(missed());
        const owner = ownerOf(one);
        const reply = await claim(one, ago(7), owner);
        expect((await claimText(two, tick(), ownerOf(two), 'catchUp')).status).toBe('overlap');
        await one.jobs.pause(JOB, {});
        expect((await claimText(two, tick(), ownerOf(two), 'catchUp')).status).toBe('paused');
        await end(one, owner, reply);
        await one.jobs.resume(JOB);
        expect((await look()).owed).toEqual(owed());
        expect((await claimText(two, tick(), ownerOf(two), 'catchUp')).status).toBe('granted');
      });

      it('is owed again if it was given back', async () => {
        await one.jobs.noteMissed(missed());
        const owner = ownerOf(one);
        await claimText(one, tick(), owner, 'catchUp');
        await one.tickStore.giveBack({ resource: JOB, tick: tick() }, owner, LONG_MS);
        await one.store.release(owner);
        expect(await look()).toMatchObject({ owed: owed() });
        expect((await claimText(two, tick(), ownerOf(two), 'catchUp')).status).toBe('granted');
      });

      it('is the one for all that was missed since', async () => {
        await one.jobs.noteMissed(missed());
        await one.jobs.noteMissed(missedOf({ after: ago(8), ticks: [ago(7)], runWithinMs: DAY_MS }));
        const all = { count: 3, first: ago(9), last: ago(7), tick: catchUpTick(ago(7)), until: ago(7) + DAY_MS };
        expect((await look()).owed).toEqual(all);
        expect((await claimText(one, tick(), ownerOf(one), 'catchUp')).status).toBe('finished');
      });

      it('is not owed for what is too old, and not for ever', async () => {
        await one.jobs.noteMissed(missedOf({ after: ago(10), ticks: [ago(9)], runWithinMs: MINUTE_MS }));
        expect((await look()).owed).toBeUndefined();
        const soon = (await subject.now()) - ago(8) + SHORT_MS;
        await one.jobs.noteMissed(missedOf({ after: ago(9), ticks: [ago(8)], runWithinMs: soon }));
        expect((await look()).owed).toBeDefined();
        await subject.pass(SHORT_MS + 1);
        expect((await look()).owed).toBeUndefined();
        expect((await claimText(one, tick(), ownerOf(one), 'catchUp')).status).toBe('finished');
      });

      it('that nobody owes is not granted', async () => {
        expect((await claimText(one, tick(), ownerOf(one), 'catchUp')).status).toBe('finished');
      });
    });
  });

  describe('what is known', () => {
    const registration = () => ({ resource: JOB, schedule: SCHEDULE, next: at + MINUTE_MS });

    it('is nothing at first', async () => {
      const now = await subject.now();
      const { now: seen, ...rest } = await look();
      expect(rest).toEqual({ resource: JOB, isKnown: false, missed: 0, runs: [], instances: [] });
      expect(seen).toBeGreaterThanOrEqual(now);
      expect(await one.jobs.list()).toEqual([]);
    });

    it('begins with a registration: nothing before it was missed', async () => {
      const [state] = await one.jobs.register([registration()]);
      expect(state).toMatchObject({ isKnown: true, schedule: SCHEDULE, next: at + MINUTE_MS, missed: 0, runs: [] });
      expect(state!.last).toBeGreaterThanOrEqual(at);
      expect(state!.instances).toEqual([{ instance: 'one', seenAt: expect.any(Number) }]);
      expect(await two.jobs.list()).toEqual([JOB]);
    });

    it('stays with a registration of the same schedule, and begins anew with another', async () => {
      await run(one, at - 5 * MINUTE_MS);
      await one.jobs.noteMissed(
        missedOf({ after: at - 5 * MINUTE_MS, ticks: [at - 4 * MINUTE_MS], runWithinMs: DAY_MS }),
      );
      await two.jobs.register([registration()]);
      expect(await look()).toMatchObject({ last: at - 4 * MINUTE_MS, missed: 1, owed: { count: 1 } });
      await two.jobs.register([{ ...registration(), schedule: 'another' }]);
      const state = await look();
      expect(state).toMatchObject({ schedule: 'another', missed: 1 });
      expect(state.last).toBeGreaterThanOrEqual(at);
      expect(state.owed).toBeUndefined();
    });

    it('is of many jobs at once, in the order of the question', async () => {
      const names = Array.from({ length: 120 }, (_, index) => `cron:job ${index} {x}`);
      await one.jobs.register(names.map((resource) => ({ resource })));
      await two.jobs.register([{ resource: names[7]! }]);
      const states = await one.jobs.look(names, 0);
      expect(states.map(({ resource, isKnown }) => [resource, isKnown])).toEqual(names.map((name) => [name, true]));
      expect(states[7]!.instances.map(({ instance }) => instance).toSorted()).toEqual(['one', 'two']);
      expect((await two.jobs.list()).toSorted()).toEqual(names.toSorted());
    });

    it('has each instance that asks for a tick', async () => {
      await run(one, at);
      await claim(two, at);
      expect((await look()).instances.map(({ instance }) => instance).toSorted()).toEqual(['one', 'two']);
    });

    it('has a pause of a job that no instance has', async () => {
      await one.jobs.pause(JOB, { by: 'Ada' });
      expect(await two.jobs.list()).toEqual([JOB]);
    });
  });
}

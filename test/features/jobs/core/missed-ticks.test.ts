import type { JobState } from '../../../../lib/features/jobs/core/job-state.js';
import type { MissedTicks } from '../../../../lib/features/jobs/core/missed-ticks.js';
import type { TickSchedule, Watched } from '../../../../lib/features/jobs/core/watched-job.js';
import { RedisJobStore } from '../../../../lib/features/jobs/redis/redis-job-store.js';
import { LockUnavailableError } from '../../../../lib/kernel/api/errors.js';
import { LockClient } from '../../../../lib/kernel/lock-client.js';
import { MemoryLockStore } from '../../../../lib/memory/memory-lock-store.js';
import { ProcessClock } from '../../../support/simulation/simulated-process.js';
import { every } from '../../../support/world/every.js';
import { claimsOn } from '../../../support/world/forgetful.js';
import { eventsOf, type Instance, LockWorld } from '../../../support/world/lock-world.js';
import { JobRecords } from './job-records.js';

describe('missed ticks', () => {
  const MINUTE = 60_000;
  const HOUR = 60 * MINUTE;
  const DAY = 24 * HOUR;
  const RESOURCE = 'cron:report';

  interface Process {
    readonly instance: Instance;
    readonly missed: MissedTicks;
    readonly warnings: string[];
    /** The runs for missed ticks that it began. */
    readonly ran: NonNullable<JobState['owed']>[];
    isDead: boolean;
  }

  let world: LockWorld;
  let records: JobRecords;

  beforeEach(() => {
    world = new LockWorld();
    records = new JobRecords(() => world.clock.wallNow());
  });

  /** A process that has the job, and is up. */
  function start(
    name: string,
    changes: Partial<Watched['job']> = {},
    clock = world.clock as LockWorld['clock'],
  ): Process {
    const warnings: string[] = [];
    const instance = world.instance(name, { clock, warn: (line) => warnings.push(line) });
    const ran: NonNullable<JobState['owed']>[] = [];
    const process: { isDead: boolean } = { isDead: false };
    const missed = (instance.locks as LockClient).jobs.missedTicks(records.client(process));
    const job = changes.job ?? 'report';
    missed.add({
      job,
      historySize: 100,
      graceMs: MINUTE,
      onMissed: 'skip',
      catchUpWindowMs: 7 * DAY,
      schedule: () => every(HOUR),
      async runOwed(owed) {
        if (!process.isDead && records.takeOwed(`cron:${job}`, owed.tick)) ran.push(owed);
      },
      ...changes,
    });
    missed.start();
    return Object.assign(process, { instance, missed, warnings, ran });
  }

  function toldBy(...processes: Process[]) {
    return processes.flatMap(({ instance }) => eventsOf(instance, 'tickMissed'));
  }

  /** The process sees this tick: it or another one runs it. */
  function claim({ missed }: Process, at: number, job = 'report'): void {
    records.claim(`cron:${job}`, at);
    missed.accounted(job, at, at + HOUR);
  }

  /** A night off: all processes that had the job are gone, and so many hours pass. */
  async function nightOff(hours: number): Promise<void> {
    const before = start('before');
    await world.clock.advance(1_000);
    before.isDead = true;
    await before.instance.locks.shutdown(0);
    await world.clock.advance(hours * HOUR + 2 * MINUTE);
    records.commands.length = 0;
  }

  describe('one of many jobs, which the store refuses', () => {
    const names = Array.from({ length: 20 }, (_, index) => `job-${index}`);
    const caughtUp = new Set<string>();

    beforeEach(() => caughtUp.clear());

    /** The process has many jobs beside the one of every process here. */
    function startMany(name: string, jobs = names): Process {
      const process = start(name);
      for (const job of jobs) add(process, job);
      return process;
    }

    function add({ missed }: Process, job: string, schedule: () => TickSchedule = () => every(HOUR)): void {
      missed.add({
        job,
        historySize: 100,
        graceMs: MINUTE,
        onMissed: 'runOnce',
        catchUpWindowMs: DAY,
        schedule,
        async runOwed(owed) {
          if (records.takeOwed(`cron:${job}`, owed.tick)) caughtUp.add(job);
        },
      });
    }

    /** @param wrong what becomes wrong in that night */
    async function nightOffOfMany(jobs = names, wrong: readonly string[] = []): Promise<Process> {
      const before = startMany('before', jobs);
      await world.clock.advance(1_000);
      for (const job of wrong) records.away.add(`cron:${job}`);
      before.isDead = true;
      await before.instance.locks.shutdown(0);
      await world.clock.advance(3 * HOUR);
      return startMany('anna', jobs);
    }

    const many = (count: number): string[] => Array.from({ length: count }, (_, index) => `job-${index}`);
    const wrongs = { refused: () => records.refused, 'on a server that is away': () => records.away };

    it.each(['at its start', 'when ticks are due'])(
      'is reported by its name, and the others catch up: %s',
      async (when) => {
        if (when === 'at its start') records.refused.add('cron:job-7');
        const process = await nightOffOfMany();
        if (when === 'when ticks are due') {
          await world.clock.advance(10_000);
          records.refused.add('cron:job-7');
          caughtUp.clear();
          await world.clock.advance(HOUR + 2 * MINUTE);
        }
        await world.clock.advance(2 * MINUTE);
        expect([...caughtUp].sort()).toEqual(names.filter((name) => name !== 'job-7').sort());
        expect(process.warnings).toHaveLength(1);
        expect(process.warnings[0]).toMatch(/^Cannot check the job "job-7" for missed ticks: .*"cron:job-7"/);
      },
    );

    it('is queried by itself, now and then, and continues when the store answers', async () => {
      records.refused.add('cron:job-7');
      const process = await nightOffOfMany();
      await world.clock.advance(10_000);
      const before = records.refusals;
      await world.clock.advance(MINUTE);
      expect(records.refusals - before).toBeLessThan(4);
      records.refused.clear();
      await world.clock.advance(MINUTE);
      records.refused.add('cron:job-7');
      await world.clock.advance(HOUR + 2 * MINUTE);
      expect(process.warnings).toHaveLength(2);
    });

    it.each(Object.entries(wrongs))('does not stop the others if it is added later, %s', async (_what, wrong) => {
      const process = await nightOffOfMany();
      await world.clock.advance(10_000);
      wrong().add('cron:late');
      add(process, 'late');
      caughtUp.clear();
      await world.clock.advance(HOUR + 3 * MINUTE);
      expect([...caughtUp].sort()).toEqual([...names].sort());
      expect(process.warnings).toEqual([expect.stringMatching(/^Cannot check the job "late" for missed ticks: /)]);
    });

    it.each([
      ['is the last of 101, and asked for alone', 101, ['job-99', 'job-100']],
      ['are all that are asked for together', 201, many(100)],
      ['are all but one', 150, many(149)],
    ])('does not stop them if those that are wrong %s', async (_what, count, wrongNames) => {
      for (const job of wrongNames) records.refused.add(`cron:${job}`);
      const process = await nightOffOfMany(many(count));
      await world.clock.advance(MINUTE);
      expect([...caughtUp].sort()).toEqual(
        many(count)
          .filter((job) => !wrongNames.includes(job))
          .sort(),
      );
      expect(process.warnings).toHaveLength(1);
    });

    it('is reported in one line with some others, and each gets its turn to be queried again', async () => {
      const jobs = many(60);
      const process = await nightOffOfMany(jobs, jobs.slice(20));
      await world.clock.advance(MINUTE);
      expect([...caughtUp].sort()).toEqual(jobs.slice(0, 20).sort());
      expect(process.warnings).toHaveLength(1);
      expect(process.warnings[0]).toMatch(
        /^Cannot check 40 jobs \(("job-\d+", ){4}"job-\d+" and 35 more\) for missed ticks: .*no answer/,
      );
      records.commands.length = 0;
      await world.clock.advance(3 * MINUTE);
      // Each half minute a few of them.
      expect(records.commands.filter((command) => command === 'register').length).toBeLessThan(60);
      expect(process.warnings).toHaveLength(1);
      records.away.delete('cron:job-59');
      await world.clock.advance(4 * MINUTE);
      expect(caughtUp).toContain('job-59');
      records.away.clear();
      await world.clock.advance(MINUTE);
      expect([...caughtUp].sort()).toEqual([...jobs].sort());
      expect(process.warnings).toHaveLength(1);
    });
  });

  it('an unreachable Redis gets few requests, however many jobs there are', async () => {
    records.isAway = true;
    const process = start('anna');
    for (const job of Array.from({ length: 1_000 }, (_, index) => `job-${index}`)) {
      process.missed.add({ ...jobOf(process), job, schedule: () => every(HOUR) });
    }
    await world.clock.advance(900);
    // One for all, and a few.
    expect(records.commands.length).toBeLessThan(10);
    expect(process.warnings).toHaveLength(1);
  });

  describe('ticks that no instance claimed', () => {
    it('are reported by an instance that starts afterwards', async () => {
      await nightOff(3);
      const process = start('anna');
      await world.clock.advance(1_000);
      expect(toldBy(process)).toEqual([
        {
          type: 'tickMissed',
          service: 'default',
          group: 'report',
          job: 'report',
          count: 3,
          first: Date.UTC(2026, 0, 1, 1),
          last: Date.UTC(2026, 0, 1, 3),
          ticks: [1, 2, 3].map((hour) => Date.UTC(2026, 0, 1, hour)),
          catchUp: false,
        },
      ]);
      expect(records.commands).toEqual(['register', 'note']);
      await world.clock.advance(30 * MINUTE);
      expect(toldBy(process)).toHaveLength(1);
    });

    it('are reported once if ten instances start at the same moment', async () => {
      await nightOff(3);
      const fleet = Array.from({ length: 10 }, (_, index) => start(`p${index}`));
      await world.clock.advance(5 * MINUTE);
      expect(toldBy(...fleet)).toMatchObject([{ count: 3 }]);
    });

    it('are reported once if an instance finds them at its start and before several late ticks, all at the same moment', async () => {
      await nightOff(3);
      const process = start('anna');
      const last = records.byResource.get(RESOURCE)!.last!;
      const claimed = Date.UTC(2026, 0, 1, 4);
      const closings = () =>
        Array.from({ length: 3 }, () => process.missed.close('report', last, claimed, every(HOUR)));
      const closed = closings();
      await world.clock.advance(5 * MINUTE);
      await Promise.all([...closed, ...closings()]);
      expect(toldBy(process)).toMatchObject([{ count: 3 }]);
    });

    it('are not reported if an instance claimed them', async () => {
      const [anna, ben] = [start('anna'), start('ben')];
      for (let hour = 0; hour < 24; hour++) {
        await world.clock.advance(HOUR);
        claim(anna, Math.floor(world.clock.wallNow() / HOUR) * HOUR);
      }
      // Ben has not seen them himself, so he looks.
      expect(toldBy(anna, ben)).toEqual([]);
      expect(records.noted).toEqual([]);
    });

    it('cost no command while an instance sees every tick of its jobs', async () => {
      const process = start('anna');
      await world.clock.advance(1_000);
      records.commands.length = 0;
      for (let hour = 0; hour < 24; hour++) {
        await world.clock.advance(HOUR - (hour === 0 ? 1_000 : 0));
        claim(process, Math.floor(world.clock.wallNow() / HOUR) * HOUR);
      }
      expect(records.commands).toEqual([]);
    });

    it('are not reported before graceMs has passed, by the clock of Redis', async () => {
      await nightOff(1);
      const process = start('anna', { graceMs: 10 * MINUTE });
      await world.clock.advance(7 * MINUTE);
      expect(toldBy(process)).toHaveLength(0);
      await world.clock.advance(12 * MINUTE);
      expect(toldBy(process)).toHaveLength(1);
    });

    it('are not reported by an instance whose clock is behind, and which will still run them', async () => {
      const clock = new ProcessClock(world.clock, 0, 1);
      clock.wallSkewMs = -5 * MINUTE;
      const process = start('late', {}, clock as never);
      for (let minute = 0; minute < 65; minute++) {
        await world.clock.advance(MINUTE);
        expect(toldBy(process)).toEqual([]);
      }
      claim(process, Date.UTC(2026, 0, 1, 1));
      await world.clock.advance(30 * MINUTE);
      expect(toldBy(process)).toEqual([]);
    });

    it('are counted, with the newest named, if there are thousands', async () => {
      const schedule = (): TickSchedule => every(1_000);
      const before = start('before', { schedule });
      await world.clock.advance(1_000);
      before.isDead = true;
      await before.instance.locks.shutdown(0);
      await world.clock.advance(3 * DAY);
      const process = start('anna', { schedule });
      await world.clock.advance(1_000);
      const [event] = toldBy(process);
      expect(event!.count).toBeGreaterThan(3 * 86_400 - 65);
      expect(event!.ticks).toHaveLength(100);
      expect(event!.ticks.at(-1)).toBe(event!.last);
      expect(records.noted[0]!.ticks).toHaveLength(1_000);
      expect(records.noted[0]!.earlier!.count + 1_000).toBe(event!.count);
    });

    it('are counted without those of pauses, if there are more than can be named', async () => {
      await nightOff(2);
      const from = world.clock.wallNow() - HOUR;
      records.byResource.get(RESOURCE)!.pause = { at: from, until: from + 30 * MINUTE };
      const earlier = [50 * MINUTE, 30 * MINUTE].map((ago) => ({ from: from - ago, until: from - ago + 10 * MINUTE }));
      records.byResource.get(RESOURCE)!.timedPauses = earlier;
      records.byResource.get(RESOURCE)!.schedule = 'each second';
      const a = start('a', { schedule: () => every(1_000, 'each second') });
      await world.clock.advance(2_000);
      const [told] = toldBy(a);
      const { after, ticks } = records.noted[0]!;
      const inPauses = [{ from, until: from + 30 * MINUTE }, ...earlier].map(
        (pause) => Math.floor(pause.until / 1_000) - Math.ceil(pause.from / 1_000) + 1,
      );
      const all = (ticks.at(-1)! - Math.floor(after / 1_000) * 1_000) / 1_000;
      expect(told!.count).toBe(all - inPauses.reduce((sum, count) => sum + count));
      expect(records.commands).toEqual(['register', 'look', 'note']);
    });

    it('are reported though the reply of the store was lost', async () => {
      await nightOff(3);
      records.losesAnswer = true;
      const a = start('a');
      await world.clock.advance(5_000);
      expect(toldBy(a)).toMatchObject([{ count: 3 }]);
      const b = start('b');
      await world.clock.advance(5_000);
      expect(toldBy(a, b)).toHaveLength(1);
    });

    it('are reported if the scheduler is late: the job is registered only with its schedule', async () => {
      await nightOff(3);
      let isMounted = false;
      const process = start('anna', { schedule: () => (isMounted ? every(HOUR) : undefined) });
      await world.clock.advance(5_000);
      expect(records.commands).toEqual([]);
      isMounted = true;
      await world.clock.advance(1_000);
      expect(toldBy(process)).toMatchObject([{ count: 3 }]);
    });
  });

  describe('no tick is missed', () => {
    it('of a new job', async () => {
      const process = start('anna');
      await world.clock.advance(30 * MINUTE);
      expect(toldBy(process)).toEqual([]);
      expect(records.byResource.get(RESOURCE)).toMatchObject({ schedule: every(HOUR).text });
    });

    it('of a job for which another release has registered another schedule, which remains', async () => {
      start('anna', { onMissed: 'runOnce' });
      await world.clock.advance(10 * MINUTE);
      const other = start('bert', { schedule: () => every(DAY) });
      await world.clock.advance(5_000);
      other.isDead = true;
      records.commands.length = 0;
      await world.clock.advance(5 * HOUR);
      expect(records.byResource.get(RESOURCE)).toMatchObject({ schedule: every(DAY).text });
      expect(new Set(records.commands)).toEqual(new Set(['look']));
      // Not at each look of the process: after its own ticks, and every few minutes for a run that may be owed.
      expect(records.commands.length).toBeLessThan(5 + 5 * 24);
    });

    it('of a job whose other release has ended: it is registered again', async () => {
      const process = start('anna');
      await world.clock.advance(10 * MINUTE);
      const other = start('bert', { schedule: () => every(90 * MINUTE) });
      await world.clock.advance(5_000);
      other.isDead = true;
      await world.clock.advance(3 * HOUR);
      expect(records.byResource.get(RESOURCE)).toMatchObject({ schedule: every(HOUR).text });
      expect(toldBy(process)[0]).toMatchObject({ first: Date.parse('2026-01-01T03:00:00.000Z') });
    });

    it('of a job whose schedule was changed while the application runs', async () => {
      let current = every(HOUR);
      const process = start('anna', { schedule: () => current });
      await world.clock.advance(50 * MINUTE);
      current = every(7 * MINUTE);
      await world.clock.advance(5 * MINUTE);
      expect(toldBy(process)).toEqual([]);
      expect(records.byResource.get(RESOURCE)).toMatchObject({ schedule: current.text });
    });

    it('after Redis has lost its data while the application runs', async () => {
      const process = start('anna');
      await world.clock.advance(55 * MINUTE);
      records.byResource.clear();
      await world.clock.advance(10 * MINUTE);
      expect(toldBy(process)).toEqual([]);
      expect(records.byResource.has(RESOURCE)).toBe(true);
      await world.clock.advance(HOUR);
      expect(toldBy(process)).toMatchObject([{ count: 1, first: Date.parse('2026-01-01T02:00:00.000Z') }]);
    });
  });

  function jobOf(_process: Process): Watched['job'] {
    return {
      job: 'another',
      historySize: 1,
      graceMs: MINUTE,
      onMissed: 'skip',
      catchUpWindowMs: DAY,
      schedule: () => undefined,
      runOwed: async () => {},
    };
  }

  describe("the run for missed ticks (onMissed: 'runOnce')", () => {
    const runOnce = { onMissed: 'runOnce' } as const;

    it('is announced if another instance has begun it before a lost reply is requested again', async () => {
      await nightOff(3);
      records.losesAnswer = true;
      const fleet = [start('a', runOnce), start('b', runOnce)];
      await world.clock.advance(10_000);
      expect(fleet.flatMap(({ ran }) => ran)).toMatchObject([{ count: 3 }]);
      expect(toldBy(...fleet)).toMatchObject([{ count: 3, catchUp: true }]);
    });

    it('starts although the instance that reported them dies before its start', async () => {
      await nightOff(3);
      const dies: Process = start('dies', { ...runOnce, runOwed: async () => void (dies.isDead = true) });
      await world.clock.advance(1_000);
      expect([toldBy(dies).length, dies.isDead]).toEqual([1, true]);
      const [up, comes] = [start('up', runOnce), start('comes', runOnce)];
      await world.clock.advance(MINUTE);
      expect([...up.ran, ...comes.ran]).toHaveLength(1);
      expect(toldBy(up, comes)).toEqual([]);
    });

    it('does not start if the newest of them was due too long ago', async () => {
      await nightOff(3);
      const process = start('anna', { ...runOnce, catchUpWindowMs: 0, graceMs: 1_000 });
      await world.clock.advance(MINUTE);
      expect(process.ran).toEqual([]);
      expect(toldBy(process)).toMatchObject([{ count: 3, catchUp: false }]);
    });
  });

  describe('a gap before a tick', () => {
    it('is accounted, and its ticks are reported', async () => {
      await nightOff(0);
      const process = start('anna');
      await world.clock.advance(3 * HOUR);
      const { last } = records.byResource.get(RESOURCE)!;
      records.noted.length = 0;
      // The next tick is due now, and its claim was answered so.
      expect(await process.missed.close('report', last!, Date.UTC(2026, 0, 1, 5), every(HOUR))).toBe(true);
      expect(records.noted).toHaveLength(1);
      expect(records.byResource.get(RESOURCE)!.last).toBeLessThan(Date.UTC(2026, 0, 1, 5));
    });

    it('is reported with the schedule of the tick, even if the job has another one by now, or none', async () => {
      let current: TickSchedule | undefined = every(HOUR);
      const process = start('anna', { schedule: () => current });
      await world.clock.advance(10_000);
      const { last } = records.byResource.get(RESOURCE)!;
      current = undefined;
      expect(await process.missed.close('report', last!, Date.UTC(2026, 0, 1, 3), every(HOUR))).toBe(true);
      current = every(DAY);
      expect(await process.missed.close('report', Date.UTC(2026, 0, 1, 2), Date.UTC(2026, 0, 1, 5), every(HOUR))).toBe(
        true,
      );
      expect(records.noted).toMatchObject([
        { schedule: every(HOUR).text },
        { ticks: [3, 4].map((hour) => hour * HOUR + Date.UTC(2026, 0, 1)) },
      ]);
    });

    it('is an error while the store does not answer', async () => {
      const process = start('anna');
      await world.clock.advance(10_000);
      records.isAway = true;
      const closed = process.missed
        .close('report', 0, Date.UTC(2026, 0, 1, 5), every(HOUR))
        .catch((error: unknown) => error);
      await world.clock.advance(10_000);
      expect(await closed).toBeInstanceOf(LockUnavailableError);
    });
  });

  describe('while Redis does not answer', () => {
    it('the check is repeated, with one line and no error', async () => {
      await nightOff(3);
      records.isAway = true;
      const process = start('anna');
      await world.clock.advance(30 * MINUTE);
      expect(process.warnings).toHaveLength(1);
      expect(process.warnings[0]).toMatch(
        /Cannot check jobs for missed ticks: .*not connected to Redis.* See docs\/operations\/logs\.md#ticks-are-missed\.$/,
      );
      const tries = records.commands.length;
      expect(tries).toBeGreaterThan(50);
      expect(tries).toBeLessThan(100);
      records.isAway = false;
      await world.clock.advance(MINUTE);
      expect(toldBy(process)).toHaveLength(1);
      records.isAway = true;
      await world.clock.advance(2 * HOUR);
      expect(process.warnings).toHaveLength(2);
    });
  });
});

describe('an interval', () => {
  const SECOND = 1_000;
  const MINUTE = 60 * SECOND;

  /** One application with an interval, as the decorator and the scheduler make it. */
  interface Application {
    readonly instance: Instance;
    /** When it fired, by its timer or before it. */
    readonly fired: number[];
  }

  let world: LockWorld;
  /** When the job was run, and where. */
  let runs: { readonly at: number; readonly on: string }[];
  let started: number;

  beforeEach(() => {
    world = new LockWorld();
    runs = [];
    started = 0;
  });

  function start(ms: number, { isForgetful = false, bootMs = 0 } = {}): Application {
    const name = `app-${++started}`;
    const instance = world.instance(name);
    const records = new RedisJobStore(new MemoryLockStore({ instanceId: name, server: world.server }));
    const jobs = isForgetful ? claimsOn(world.server) : records;
    const singletons = instance.locks.jobs.runs(jobs);
    const missed = instance.locks.jobs.missedTicks(jobs);
    const fired: number[] = [];
    let phase = 0;
    const fire = (): void => {
      fired.push(world.clock.now());
      const lock = { leaseMs: 30 * SECOND };
      const run = {
        job: 'poll',
        tick: 'interval',
        overlap: 'skip',
        onCrash: 'skip',
        claimTtlMs: 0.9 * ms,
        lock,
      } as const;
      void singletons.run(run, () => void runs.push({ at: world.clock.now(), on: name }), {
        next: world.clock.wallNow() + ms,
        onUnknown: () => missed.unknown('poll'),
      });
    };
    /** Restarts a timer that fires every `ms`. */
    const beginTimer = (): void => {
      const mine = ++phase;
      const ring = (): void => {
        if (instance.locks.closing.aborted || mine !== phase) return;
        fire();
        world.clock.setTimer(ring, ms);
      };
      world.clock.setTimer(ring, ms);
    };
    beginTimer();
    const bootedAt = world.clock.now() + bootMs;
    const fireFirst = (): boolean => {
      if (world.clock.now() < bootedAt) return false;
      beginTimer();
      fire();
      return true;
    };
    missed.add({
      job: 'poll',
      historySize: 0,
      graceMs: Infinity,
      onMissed: 'skip',
      catchUpWindowMs: 0,
      schedule: () => undefined,
      interval: { ms, fire: fireFirst },
      runOwed: async () => {},
    });
    missed.start();
    return { instance, fired };
  }

  const stop = ({ instance }: Application): Promise<void> => instance.locks.shutdown(0);

  const gaps = (): number[] => runs.slice(1).map(({ at }, index) => at - runs[index]!.at);

  it('runs about once an interval if every application has a shorter life', async () => {
    const ms = 6 * SECOND;
    let living = start(ms);
    // Each is started before the one before it is stopped.
    for (let restart = 0; restart < 60; restart++) {
      await world.clock.advance(4 * SECOND);
      const next = start(ms);
      await world.clock.advance(SECOND);
      await stop(living);
      living = next;
    }
    expect(runs.length).toBeGreaterThan((0.75 * 300) / 6);
    expect(Math.min(...gaps())).toBeGreaterThanOrEqual(0.9 * ms);
    expect(Math.max(...gaps())).toBeLessThan(2 * ms);
  });

  it('runs soon after a start if the last run was long ago, and not immediately', async () => {
    const ms = 10 * MINUTE;
    const before = start(ms);
    await world.clock.advance(ms + SECOND);
    await stop(before);
    await world.clock.advance(5 * ms);
    const at = world.clock.now();
    start(ms);
    await world.clock.advance(30 * SECOND);
    expect(runs.at(-1)!.on).toBe('app-2');
    expect(runs.at(-1)!.at).toBeGreaterThan(at + SECOND);
    // Restarts its timer then.
    await world.clock.advance(4 * ms);
    expect(gaps().slice(1)).toEqual([ms, ms, ms, ms]);
  });

  it('runs when the scheduler has its timer, if the application starts slowly', async () => {
    const ms = MINUTE;
    const before = start(ms);
    await world.clock.advance(ms + SECOND);
    await stop(before);
    await world.clock.advance(ms);
    start(ms, { bootMs: 20 * SECOND });
    await world.clock.advance(20 * SECOND);
    expect(runs).toHaveLength(1);
    await world.clock.advance(2 * SECOND);
    expect(runs).toHaveLength(2);
  });

  it('runs once, without a burst of claims, if a fleet starts together after a downtime', async () => {
    const ms = 10 * MINUTE;
    const before = start(ms);
    await world.clock.advance(ms + SECOND);
    await stop(before);
    await world.clock.advance(ms);
    const fleet = Array.from({ length: 50 }, () => start(ms));
    await world.clock.advance(ms - 2 * SECOND);
    expect(runs).toHaveLength(2);
    const fired = fleet.flatMap((each) => each.fired);
    expect(fired.length).toBeLessThanOrEqual(50);
    // Over half a minute, or not at all.
    const perSecond = fired.map((at) => fired.filter((other) => other >= at && other < at + SECOND).length);
    expect(Math.max(...perSecond)).toBeLessThan(10);
    await world.clock.advance(3 * ms);
    expect(runs).toHaveLength(5);
    expect(Math.min(...gaps())).toBeGreaterThanOrEqual(0.9 * ms);
  });

  it('follows its timer if the store keeps no records', async () => {
    const ms = 6 * SECOND;
    for (let restart = 0; restart < 10; restart++) {
      const application = start(ms, { isForgetful: true });
      await world.clock.advance(5 * SECOND);
      await stop(application);
    }
    expect(runs).toEqual([]);
    start(ms, { isForgetful: true });
    await world.clock.advance(ms);
    expect(runs).toHaveLength(1);
  });
});

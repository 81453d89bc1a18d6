import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { eventually } from '../../../support/expect/eventually.js';
import { type JobProcess, type JobRun, useJobFleets } from './job-process.js';
import { useRedis } from '../../../support/redis/redis-server.js';

const SECOND = 1_000;

function secondsOf(runs: readonly JobRun[]): number[] {
  return runs.map(({ tick }) => Date.parse(tick) / SECOND);
}

/** The current run. */
function current(runs: readonly JobRun[]): JobRun {
  const run = runs.at(-1);
  if (!run || run.endedAt !== undefined) throw new Error('The job does not run now');
  return run;
}

/** If it has not, the package `cron` may have dropped the tick in a process that was late. */
function hasAskedFor(tick: string, jobProcess: JobProcess): boolean {
  return jobProcess.told('asked').some((asked) => asked.tick === tick);
}

describe('a @SingletonCron on three processes', () => {
  const redis = useRedis();
  const fleetOf = useJobFleets(() => redis().url);

  /** Kills it while it runs no tick and has none granted. Stops it first, and asks Redis. */
  async function killBetweenTicks(jobProcess: JobProcess): Promise<void> {
    const client = new Redis(redis().url);
    await eventually(async () => {
      jobProcess.pause();
      // So that Redis has executed whatever it had sent.
      await sleep(50);
      const isIdle = (await client.keys('*:{cron:job}')).length === 0;
      if (!isIdle) jobProcess.resume();
      expect(isIdle).toBe(true);
    });
    await jobProcess.signal('SIGKILL');
    client.disconnect();
  }

  /** Waits until Redis has forgotten the claim of the tick. */
  async function forgotten(tick: string): Promise<void> {
    const client = new Redis(redis().url);
    try {
      await eventually(async () => expect(await client.keys(`*:{cron:job}:tick:${tick}`)).toEqual([]), 10_000);
    } finally {
      client.disconnect();
    }
  }

  it('runs every tick exactly once though their clocks differ, and continues when the fastest dies', async () => {
    // overlap: 'wait', because a machine that stalls for a second should delay a tick here, and not drop it.
    const fleet = fleetOf({ kind: 'cron', jobLastsMs: 5, options: { overlap: 'wait' } });
    await fleet.start(-400, 0, 350);
    const firstSeen = fleet.runs.length;
    const seen = (): JobRun[] => fleet.runs.slice(firstSeen);
    await eventually(() => expect(seen().length).toBeGreaterThanOrEqual(4));
    const fastest = seen().at(-1)!.by;
    await killBetweenTicks(fastest);
    const beforeItDied = seen().length;
    await eventually(() => expect(seen().length).toBeGreaterThanOrEqual(beforeItDied + 4));
    // The slowest clock has come to all of these too.
    await sleep(SECOND);
    const seconds = secondsOf(seen());
    expect(seconds).toEqual(seconds.map((_, index) => seconds[0]! + index));
    expect(
      seen()
        .slice(beforeItDied)
        .every(({ by }) => by !== fastest),
    ).toBe(true);
    // Instances without the tick logged nothing.
    expect(fleet.output).toBe('');
    const losses = fleet.processes.flatMap((jobProcess) => jobProcess.told('tickSkipped'));
    expect(losses.length).toBeGreaterThanOrEqual(seconds.length);
  });

  it("is run again elsewhere within a lease when its runner is killed (onCrash: 'retry')", async () => {
    const leaseMs = 3_000;
    const fleet = fleetOf({ kind: 'cron', jobLastsMs: 5, options: { onCrash: 'retry', leaseMs }, tellsAsked: true });
    const others = await fleet.start(-300, 0);
    // The fastest clock, so it gets the ticks.
    const runner = await fleet.startSlow(300, 60_000);
    const { tick } = await eventually(() => current(runner.runs));
    // One of the others has heard of the tick too.
    await eventually(() => expect(others.some((other) => hasAskedFor(tick, other))).toBe(true));
    await runner.signal('SIGKILL');
    const killedAt = performance.timeOrigin + performance.now();
    const rerun = await eventually(() => {
      const found = fleet.runs.find((run) => run.tick === tick && run.by !== runner);
      if (found?.endedAt === undefined) throw new Error(`${tick} is not run again`);
      return found;
    });
    expect(rerun.rerun).toBe(true);
    expect(rerun.beganAt - killedAt).toBeLessThan(leaseMs + 3 * SECOND);
    expect(fleet.runs.filter((run) => run.tick === tick)).toHaveLength(2);
    expect(fleet.output).toBe('');
  });

  it('is skipped as late by a process that was blocked for longer than the tick is remembered', async () => {
    const every = 20 * SECOND;
    // Remembered for three seconds: the skew twice, and waitMs, and what is spare.
    const options = { timeZone: 'UTC', maxClockSkewMs: SECOND, waitMs: 0 };
    const fleet = fleetOf({ kind: 'cron', jobLastsMs: 5, cronTime: '*/20 * * * * *', options });
    const [stopped, runner] = await fleet.start(0, 0);
    stopped!.pause();
    const tick = new Date(Math.ceil((Date.now() + 2 * SECOND) / every) * every).toISOString();
    const toldOf = (jobProcess: JobProcess, ...types: ('tickFinished' | 'tickSkipped' | 'tickStarted')[]) =>
      jobProcess.told(...types).filter((event) => event.tick === tick);
    await eventually(() => expect(toldOf(runner!, 'tickFinished')).toHaveLength(1), 30_000);
    await forgotten(tick);
    stopped!.resume();
    await eventually(() => expect(toldOf(stopped!, 'tickSkipped', 'tickStarted')).not.toEqual([]), 10_000);
    expect(toldOf(stopped!, 'tickSkipped', 'tickStarted')).toMatchObject([
      { type: 'tickSkipped', reason: 'late', lateMs: expect.any(Number) },
    ]);
    expect(fleet.runs.filter((run) => run.tick === tick)).toHaveLength(1);
    expect(fleet.output).toBe('');
  });

  it('lets a run end at SIGTERM, which counts: the tick does not run again', async () => {
    const options = { onCrash: 'retry', leaseMs: 5_000 } as const;
    const fleet = fleetOf({ kind: 'cron', jobLastsMs: 2_500, options, tellsAsked: true });
    await fleet.start(0, 0);
    // A tick that both of them have heard of.
    const { by: runner, tick } = await eventually(() => {
      const run = current(fleet.runs);
      expect(fleet.processes.every((jobProcess) => hasAskedFor(run.tick, jobProcess))).toBe(true);
      return run;
    });
    await runner.signal('SIGTERM');
    expect(runner.runs.find((run) => run.tick === tick)).toMatchObject({ endedAt: expect.any(Number) });
    await eventually(() => expect(fleet.runs.at(-1)!.by).not.toBe(runner));
    // The one who stood by for it has gone home.
    const other = fleet.processes.find((jobProcess) => jobProcess !== runner)!;
    await eventually(() => expect(other.told('tickSkipped').some((skipped) => skipped.tick === tick)).toBe(true));
    expect(fleet.runs.filter((run) => run.tick === tick)).toHaveLength(1);
    expect(fleet.output).toBe('');
  });
});

import type { MissedTicks } from '../../../../lib/features/jobs/core/missed-ticks.js';
import { LockStoreError } from '../../../../lib/kernel/store/store-error.js';
import type { JobStore } from '../../../../lib/features/jobs/core/job-store.js';
import type { RunPlan, SingletonRunOptions } from '../../../../lib/features/jobs/core/singleton-run-options.js';
import type { SingletonRuns } from '../../../../lib/features/jobs/core/singleton-runs.js';
import { Network, ProcessClock } from '../../../../test/support/simulation/simulated-process.js';
import { type Instance, LockWorld } from '../../../../test/support/world/lock-world.js';
import { type Fate, lostOnTheWay } from '../../../../test/support/world/scripted-store.js';
import { SeededRandom } from '../../../../test/support/world/seeded-random.js';
import type { SimulatedSchedule } from './simulated-schedule.js';
import { SimulatedScheduler, type SimulatedWorld } from './simulated-scheduler.js';
import type { EverySoOften, RememberedJob } from './simulated-record.js';
import { type JobState, catchUpTick } from '../../../../lib/features/jobs/core/job-state.js';

export interface JobWorld extends SimulatedWorld {
  readonly lockWorld: LockWorld;
  readonly isAway: boolean;
  scheduleOf(job: RememberedJob): EverySoOften;
  /** Which of its ticks fires. */
  firingsOf(job: RememberedJob): SimulatedSchedule;
  /** The store of the process with this name. */
  jobStore(name: string): JobStore;
}

interface Firing {
  readonly tick: string;
  readonly due?: number;
  readonly plan: RunPlan;
  readonly manual?: true;
}

/** Errors of the work bear this code. */
export const WORK_FAILED = 'E_SIMULATED';
const TROUBLE = 0.2;
const MAX_SKEW_MS = 60_000;
const KEEP_MS = 600_000;

/** One process of the fleet, with a network and a clock of its own. */
export class JobProcess {
  readonly instance: Instance;
  readonly clock: ProcessClock;
  readonly network: Network;
  readonly scheduler: SimulatedScheduler;
  readonly #singletons: SingletonRuns;
  readonly #missed: MissedTicks;
  readonly #random: SeededRandom;
  #calls = 1_000_000;
  #isDead = false;

  constructor(
    readonly name: string,
    private readonly world: JobWorld,
    private readonly jobs: readonly RememberedJob[],
  ) {
    const { clock: worldClock } = world.lockWorld;
    const upTo = (limit: number): number => Math.floor(world.random.fraction() * limit);
    this.#random = new SeededRandom(upTo(2 ** 31));
    this.clock = new ProcessClock(worldClock, upTo(1e9), 0.995 + world.random.fraction() / 100);
    this.skew();
    this.instance = world.lockWorld.instance(name, { clock: this.clock, random: this.#random, observers: [] });
    const kind = upTo(2) === 0 ? 'inOrder' : 'unordered';
    const delayMs = 2 * world.leaseMs;
    this.network = new Network(worldClock, this.clock, this.#random, { kind, trouble: TROUBLE, delayMs });
    const fate: Fate = (execute) =>
      this.#isDead ? lostOnTheWay(execute) : this.network.commandFate(() => refusedWhile(world.isAway, execute));
    this.instance.store.all(fate);
    const jobStore = onTheWay(world.jobStore(name), fate);
    this.#singletons = this.instance.locks.jobs.runs(jobStore);
    this.#missed = this.instance.locks.jobs.missedTicks(jobStore);
    this.scheduler = new SimulatedScheduler(world, this.clock);
    for (const job of jobs) this.#schedule(job);
    this.#missed.start();
  }

  skew(): void {
    this.clock.wallSkewMs = Math.floor(this.world.random.fraction() * 2 * MAX_SKEW_MS) - MAX_SKEW_MS;
  }

  /** It begins nothing more. */
  stop(): void {
    this.scheduler.stop();
    for (const { name } of this.jobs) this.#missed.remove(name);
  }

  /**
   * Its application ends: it gives back what it has not begun, and what it has begun gets some time. Then it is gone.
   *
   * @param drainMs so much time
   */
  async shutdown(drainMs: number): Promise<void> {
    this.stop();
    await this.instance.locks.shutdown(drainMs);
    this.kill();
  }

  kill(): void {
    if (this.#isDead) return;
    this.#isDead = true;
    this.clock.kill();
    void this.instance.store.close();
    this.world.add({ type: 'killed', on: this.name, at: this.world.now() });
  }

  /** A person asks for a run. */
  runNow(job: RememberedJob): void {
    void this.#run(job, { tick: `manual:${this.#random.id()}`, plan: {}, manual: true });
  }

  #schedule(job: RememberedJob): void {
    const schedule = this.world.scheduleOf(job);
    this.scheduler.schedule(this.world.firingsOf(job), (due) => {
      const { before: previous, after: next } = schedule.around(due);
      const onGap = (after: number) => this.#missed.close(job.name, after, due, schedule);
      const onAccounted = (): void => this.#missed.accounted(job.name, due, next);
      const plan = { schedule: schedule.text, previous, next, onGap, onAccounted };
      void this.#run(job, { tick: new Date(due).toISOString(), due, plan });
    });
    const { historySize, graceMs, onMissed, catchUpWindowMs } = job;
    const runOwed = (owed: NonNullable<JobState['owed']>) =>
      this.#run(job, { tick: catchUpTick(owed.last), plan: { kind: 'catchUp', next: schedule.after(owed.last) } });
    const options = { historySize, graceMs, onMissed, catchUpWindowMs };
    this.#missed.add({ job: job.name, ...options, schedule: () => schedule, runOwed });
  }

  async #run(job: RememberedJob, { tick, due, plan, manual }: Firing): Promise<void> {
    const { world, clock } = this;
    const call = ++this.#calls;
    const upTo = (limit: number): number => Math.floor(this.#random.fraction() * limit);
    const line = () => ({ on: this.name, call, at: world.now() });
    const lastingMs = upTo(upTo(20) === 0 ? 30_000 : 3_000);
    const attemptTimeoutMs = upTo(10) === 0 ? 60_000 : 1_000;
    const { overlap, historySize } = job;
    const onCrash = manual ? 'skip' : job.onCrash;
    const lock = { leaseMs: world.leaseMs, waitMs: 10_000, attemptTimeoutMs };
    const options: SingletonRunOptions = {
      job: job.name,
      tick,
      overlap,
      onCrash,
      claimTtlMs: KEEP_MS,
      historySize,
      lock,
      due: due === undefined ? undefined : { at: due, maxClockSkewMs: world.maxClockSkewMs },
      ...(manual && { manual }),
    };
    world.add({ type: 'fired', ...line(), job: job.name, tick });
    let error: string | undefined;
    let signal: AbortSignal | undefined;
    try {
      await this.#singletons.run(
        options,
        async (lease, { rerun }) => {
          ({ signal } = lease);
          const remainingMs = (): number => lease.remainingMs() / clock.rate;
          world.add({ type: 'start', ...line(), rerun, token: lease.fencingToken, remainingMs: remainingMs() });
          await new Promise<void>((resolve) => clock.setTimer(resolve, lastingMs));
          const fails = upTo(6) === 0;
          world.add({ type: 'end', ...line(), remainingMs: remainingMs(), ...(fails && { hasFailed: true }) });
          if (fails) throw Object.assign(new RangeError('it fails'), { code: WORK_FAILED });
        },
        plan,
      );
    } catch (thrown) {
      error = thrown instanceof Error ? thrown.name : String(thrown);
    }
    const isLost = signal?.aborted === true;
    world.add({ type: 'done', ...line(), ...(error !== undefined && { error }), ...(isLost && { isLost }) });
  }
}

async function refusedWhile<T>(isAway: boolean, execute: () => Promise<T>): Promise<T> {
  if (!isAway) return execute();
  throw new LockStoreError('notExecuted', 'Redis is away');
}

/** Each command has its fate on the way. */
function onTheWay(jobs: JobStore, fate: Fate): JobStore {
  return {
    claim: (tick, claim) => fate(() => jobs.claim(tick, claim)),
    end: (...args) => fate(() => jobs.end(...args)),
    note: (missed) => fate(() => jobs.note(missed)),
    look: (...args) => fate(() => jobs.look(...args)),
    pause: (resource, pause) => fate(() => jobs.pause(resource, pause)),
    resume: (resource) => fate(() => jobs.resume(resource)),
    register: (registrations) => fate(() => jobs.register(registrations)),
    list: () => fate(() => jobs.list()),
  };
}

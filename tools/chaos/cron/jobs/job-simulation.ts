import type { JobStore } from '../../../../lib/features/jobs/core/job-store.js';
import { RedisJobStore } from '../../../../lib/features/jobs/redis/redis-job-store.js';
import { MemoryLockStore } from '../../../../lib/memory/memory-lock-store.js';
import { MemoryServer } from '../../../../lib/memory/memory-server.js';
import { LockWorld } from '../../../../test/support/world/lock-world.js';
import { SeededRandom } from '../../../../test/support/world/seeded-random.js';
import { TickHistory, type TickLine } from '../tick-log.js';
import { JobProcess, type JobWorld } from './job-process.js';
import { EverySoOften, REMEMBERED_JOBS, type RememberedJob } from './simulated-record.js';
import { SimulatedSchedule } from './simulated-schedule.js';
import { StoreWitness } from './store-witness.js';

export interface JobSimulationOptions {
  readonly seed: number;
  /** For how long the fleet is up at most. */
  readonly upMs: number;
  /** It ends once so many ticks were granted or told as missed. @default never */
  readonly ticks?: number;
  /** `true` makes each downtime of the fleet up to 14 hours long. @default mostly less */
  readonly hasNights?: boolean;
  /** @default one of each kind */
  readonly jobs?: readonly RememberedJob[];
  /** The mean time between two incidents. @default a minute */
  readonly calmMs?: number;
  /** `true` stops the simulation at the first deviation of the store. @default false */
  readonly endsEarly?: boolean;
  /** Replaces the store of each process with a broken one, to prove that the checks find it. */
  readonly breakJobs?: (jobs: JobStore, server: MemoryServer) => JobStore;
}

const LEASE_MS = 3_000;
const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;
const CALM_MS = 60_000;
const STEP_MS = 60_000;
/** Durations of a bad and a good phase of a network. */
const BAD_MS = 8_000;
const GOOD_MS = 40_000;
/** After the last incident, all that is due is accounted within this time. */
const REST_MS = 18 * MINUTE_MS;
const SETTLED_MS = 9 * MINUTE_MS;
/** Runs and commands that are under way end within this time. */
const UNDER_WAY_MS = 2 * MINUTE_MS;

/** A fleet whose jobs are remembered, with operators, in bad times. */
export class JobSimulation implements JobWorld {
  readonly leaseMs = LEASE_MS;
  readonly maxClockSkewMs = 61_000;
  readonly random: SeededRandom;
  readonly lockWorld = new LockWorld();
  readonly history = new TickHistory();
  readonly jobs: readonly RememberedJob[];
  readonly witness: StoreWitness;
  readonly counts = {
    kills: 0,
    shutdowns: 0,
    pauses: 0,
    suspends: 0,
    clockSteps: 0,
    outages: 0,
    longOutages: 0,
    restarts: 0,
    dataLosses: 0,
    jobPauses: 0,
    resumes: 0,
    runNows: 0,
    deployments: 0,
  };
  isAway = false;
  readonly #schedules: Map<RememberedJob, EverySoOften>;
  readonly #firings = new Map<number, SimulatedSchedule>();
  readonly #operator: JobStore;
  #processes: JobProcess[] = [];
  #joined = 0;
  #isCalm = false;

  constructor(private readonly options: JobSimulationOptions) {
    this.random = new SeededRandom(options.seed);
    this.jobs = options.jobs ?? REMEMBERED_JOBS;
    this.#schedules = new Map(this.jobs.map((job) => [job, new EverySoOften(job.everySeconds * 1_000)]));
    this.witness = new StoreWitness(this.lockWorld.server, this.jobs);
    this.#operator = this.jobStore('operator');
  }

  now(): number {
    return this.lockWorld.clock.now();
  }

  add(line: TickLine): void {
    this.history.add(line);
  }

  scheduleOf(job: RememberedJob): EverySoOften {
    return this.#schedules.get(job)!;
  }

  firingsOf(job: RememberedJob): SimulatedSchedule {
    const everySeconds = this.scheduleOf(job).everyMs / 1_000;
    const firings = this.#firings.get(everySeconds) ?? new SimulatedSchedule(everySeconds);
    this.#firings.set(everySeconds, firings);
    return firings;
  }

  jobStore(name: string): JobStore {
    const { server } = this.lockWorld;
    const { breakJobs = (jobs) => jobs } = this.options;
    const jobs = new RedisJobStore(new MemoryLockStore({ instanceId: name, server }));
    return this.witness.jobStore(breakJobs(jobs, server), name);
  }

  async run(): Promise<void> {
    const { clock } = this.lockWorld;
    this.#join(4);
    let leftMs = this.options.upMs;
    while (leftMs > 0 && this.#ticks < (this.options.ticks ?? Infinity)) {
      const ms = Math.min(leftMs, this.#upTo(2 * (this.options.calmMs ?? CALM_MS)));
      await this.#pass(ms);
      leftMs -= ms;
      if (this.options.endsEarly && this.witness.violations.length > 0) return;
      await this.#happens();
    }
    this.#isCalm = true;
    for (const { network, clock: each } of this.#processes) {
      network.isHealed = true;
      each.continue();
    }
    this.isAway = false;
    for (const job of this.jobs) await this.#operator.resume(`cron:${job.name}`);
    await this.#pass(REST_MS);
    this.witness.checkEnd(clock.wallNow() - SETTLED_MS);
    // Ends pending work without its reply, which may be delayed further.
    for (const each of this.#processes) each.stop();
    await this.#pass(UNDER_WAY_MS);
  }

  /** `true` if no lock is left. */
  get isClean(): boolean {
    return this.lockWorld.server.isEmpty;
  }

  get #ticks(): number {
    return this.witness.counts.granted + this.witness.counts.told;
  }

  #upTo(limit: number): number {
    return Math.floor(this.random.fraction() * limit);
  }

  async #pass(ms: number): Promise<void> {
    const { clock } = this.lockWorld;
    for (let leftMs = ms; leftMs > 0; leftMs -= STEP_MS) {
      await clock.advance(Math.min(STEP_MS, leftMs));
      await this.witness.checkHistory(this.#operator);
      for (const { instance } of this.#processes) {
        for (const notes of [instance.events, instance.store.commands, instance.store.grants]) notes.length = 0;
      }
    }
  }

  #join(count: number): void {
    for (let i = 0; i < count; i++) {
      const joined = new JobProcess(`process-${++this.#joined}`, this, this.jobs);
      this.#processes.push(joined);
      this.#turn(joined, true);
    }
  }

  /** Its network turns bad, or good. */
  #turn(each: JobProcess, isGood: boolean): void {
    if (!this.#processes.includes(each)) return;
    each.network.isHealed = isGood || this.#isCalm;
    const ms = 1 + this.#upTo(2 * (isGood ? GOOD_MS : BAD_MS));
    this.lockWorld.clock.setTimer(() => this.#turn(each, !isGood), ms);
  }

  /** Something happens to one process, to Redis, to all, or an operator does something. */
  async #happens(): Promise<void> {
    const victim = this.#processes[this.#upTo(this.#processes.length)]!;
    const job = this.jobs[this.#upTo(this.jobs.length)]!;
    const resource = `cron:${job.name}`;
    switch (this.#upTo(16)) {
      case 0:
      case 1:
        this.counts.kills++;
        this.#kill(victim);
        this.#join(1);
        return;
      case 2:
      case 3:
        this.#stop(victim);
        return;
      case 4:
        this.counts.clockSteps++;
        victim.skew();
        return;
      case 5:
        this.counts.restarts++;
        await this.#goAway();
        if (this.#upTo(4) > 0) return;
        this.counts.dataLosses++;
        this.#loseData();
        return;
      case 6:
        await this.#outage();
        return;
      case 7:
      case 8: {
        this.counts.jobPauses++;
        const until = this.lockWorld.clock.wallNow() + this.#upTo(5 * MINUTE_MS);
        await this.#operator.pause(resource, this.#upTo(2) === 0 ? { by: 'ann', until } : { by: 'ann' });
        return;
      }
      case 9:
      case 10:
        this.#shutDown(victim);
        this.#join(1);
        return;
      case 11:
      case 12:
      case 13:
        this.counts.resumes++;
        for (const each of this.jobs) if (this.#upTo(2) === 0) await this.#operator.resume(`cron:${each.name}`);
        return;
      default:
        this.counts.runNows++;
        victim.runNow(job);
    }
  }

  #kill(victim: JobProcess): void {
    victim.kill();
    this.#processes = this.#processes.filter((each) => each !== victim);
  }

  #shutDown(victim: JobProcess): void {
    if (!victim.clock.isAwake) return this.#kill(victim);
    this.counts.shutdowns++;
    this.#processes = this.#processes.filter((each) => each !== victim);
    // Some runs take longer than that.
    void victim.shutdown(this.#upTo(2) === 0 ? 0 : this.#upTo(10_000));
  }

  /**
   * Stalls a process or suspends its machine: mostly for less than a lease, sometimes for longer than any record lives.
   */
  #stop({ clock, scheduler }: JobProcess): void {
    if (!clock.isAwake) return;
    const ms = this.#upTo(this.#upTo(4) === 0 ? 3 * HOUR_MS : 4 * LEASE_MS);
    const isSuspend = this.#upTo(2) === 0;
    this.counts[isSuspend ? 'suspends' : 'pauses']++;
    clock.stop();
    this.lockWorld.clock.setTimer(() => {
      if (isSuspend) scheduler.suspended(ms);
      clock.continue();
    }, ms);
  }

  async #goAway(): Promise<void> {
    this.isAway = true;
    await this.#pass(1 + this.#upTo(this.#upTo(4) === 0 ? 2 * MINUTE_MS : 20_000));
    this.isAway = false;
  }

  #loseData(): void {
    this.lockWorld.server.redis.flushall();
    this.witness.dataIsLost();
  }

  /** All processes die. Later, ten start at the same moment; sometimes with a new schedule. */
  async #outage(): Promise<void> {
    for (const each of this.#processes) this.#kill(each);
    const isLong = this.#upTo(12) === 0;
    this.counts[isLong ? 'longOutages' : 'outages']++;
    const usualMs = this.#upTo(2) === 0 ? 10 * HOUR_MS : 20 * MINUTE_MS;
    const offMs = this.#upTo(this.options.hasNights ? 14 * HOUR_MS : usualMs);
    await this.lockWorld.clock.advance(isLong ? 9 * DAY_MS : offMs);
    if (this.#upTo(4) === 0) {
      this.counts.deployments++;
      const job = this.jobs[this.#upTo(this.jobs.length)]!;
      const [usual, standing] = [job.everySeconds * 1_000, this.scheduleOf(job).everyMs];
      this.#schedules.set(job, new EverySoOften(standing === usual ? 2 * usual : usual));
    }
    this.#join(10);
    await this.#pass(MINUTE_MS);
    while (this.#processes.length > 4) this.#kill(this.#processes[0]!);
  }
}

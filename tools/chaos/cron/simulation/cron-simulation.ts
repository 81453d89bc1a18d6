import type { JobClaims } from '../../../../lib/features/jobs/core/job-store.js';
import { Network, ProcessClock } from '../../../../test/support/simulation/simulated-process.js';
import { SeededRandom } from '../../../../test/support/world/seeded-random.js';
import { Fleet, type Member } from '../../../../test/support/world/singleton-fleet.js';
import { SIMULATED_JOBS, type SimulatedJob, SimulatedSchedule } from './simulated-job.js';
import { SimulatedScheduler, type SimulatedWorld } from './simulated-scheduler.js';
import { TickHistory, type TickLine } from '../tick-log.js';

export interface CronSimulationOptions {
  /** At least so many (job, tick) pairs fall due. */
  readonly ticks: number;
  /** The same seed, the same history. */
  readonly seed: number;
  /** The number of running processes. @default 4 */
  readonly members?: number;
  /** @default two of each kind */
  readonly jobs?: readonly SimulatedJob[];
  /** `true` lets members be killed and suspended, and their clocks be set. @default true */
  readonly incidents?: boolean;
  /** The longest stall of a process or suspend of its machine. @default three leases */
  readonly longestPauseMs?: number;
  /** The mean time between two incidents. @default 30 s */
  readonly calmMs?: number;
  /** Broken claims in place of a member's own, to see that it is found out. */
  readonly breakLedger?: (claims: JobClaims) => JobClaims;
}

const LEASE_MS = 3_000;
const MAX_SKEW_MS = 60_000;
const MAX_PAUSE_MS = 3 * LEASE_MS;
/** The share of commands that fail while the network of a process is bad, and the durations of bad and good phases. */
const TROUBLE = 0.3;
const BAD_MS = 8_000;
const GOOD_MS = 40_000;
const MAX_DELAY_MS = 2 * LEASE_MS;
const CALM_MS = 30_000;
/** The step of the simulated clock. */
const STEP_MS = 60_000;

interface Process {
  readonly member: Member;
  readonly clock: ProcessClock;
  readonly network: Network;
  readonly scheduler: SimulatedScheduler;
}

/** A fleet that shares some jobs, with clocks that differ, on a network that delays, loses and doubles. */
export class CronSimulation implements SimulatedWorld {
  readonly leaseMs = LEASE_MS;
  readonly maxClockSkewMs = MAX_SKEW_MS + 1_000;
  readonly random: SeededRandom;
  readonly history = new TickHistory();
  readonly counts = { kills: 0, pauses: 0, suspends: 0, clockSteps: 0 };
  readonly #fleet = new Fleet();
  readonly #processes: Process[] = [];
  readonly #schedules: readonly (readonly [SimulatedJob, SimulatedSchedule])[];
  #joined = 0;
  #isEnding = false;

  constructor(private readonly options: CronSimulationOptions) {
    this.random = new SeededRandom(options.seed);
    this.#schedules = (options.jobs ?? SIMULATED_JOBS).map((job) => [job, new SimulatedSchedule(job)] as const);
    for (let i = 0; i < (options.members ?? 4); i++) this.#join();
  }

  now(): number {
    return this.#fleet.clock.now();
  }

  add(line: TickLine): void {
    this.history.add(line);
  }

  /** The time until enough ticks are due. */
  get #lengthMs(): number {
    const perMs = this.#schedules.reduce((sum, [, { everyMs }]) => sum + 1 / everyMs, 0);
    return Math.ceil(this.options.ticks / perMs);
  }

  async run(): Promise<void> {
    const { clock } = this.#fleet;
    const endsAt = clock.now() + this.#lengthMs;
    if (this.options.incidents ?? true) this.#plague(endsAt);
    while (clock.now() < endsAt) {
      await clock.advance(Math.min(STEP_MS, endsAt - clock.now()));
      this.#forget();
    }
    this.#isEnding = true;
    for (const { scheduler, network, clock: each } of this.#processes) {
      scheduler.stop();
      network.isHealed = true;
      each.continue();
    }
    // Ends pending work without its reply, which may be delayed further.
    for (let i = 0; i < 10; i++) await clock.advance(STEP_MS);
  }

  /** `true` if no lock is left. */
  get isClean(): boolean {
    return this.#fleet.world.server.isEmpty;
  }

  #upTo(limit: number): number {
    return Math.floor(this.random.fraction() * limit);
  }

  #join(): void {
    const { clock: worldClock } = this.#fleet;
    const name = `member-${++this.#joined}`;
    const clock = new ProcessClock(worldClock, this.#upTo(1e9), 0.995 + this.random.fraction() / 100);
    clock.wallSkewMs = this.#skew();
    const random = new SeededRandom(this.#upTo(2 ** 31));
    const member = this.#fleet.member(name, { clock, random }, this.options.breakLedger);
    const kind = this.#upTo(2) === 0 ? 'inOrder' : 'unordered';
    const network = new Network(worldClock, clock, random, { kind, trouble: TROUBLE, delayMs: MAX_DELAY_MS });
    member.instance.store.all(network.commandFate);
    member.tickStore.fates.claim = network.commandFate;
    member.tickStore.fates.finish = network.commandFate;
    member.tickStore.fates.giveBack = network.commandFate;
    const scheduler = new SimulatedScheduler(this, member, clock);
    for (const [job, schedule] of this.#schedules) scheduler.schedule(job, schedule);
    const joined = { member, clock, network, scheduler };
    this.#processes.push(joined);
    this.#turn(joined, true);
  }

  /** Its network turns bad, or good. Not for long: where every grant comes too late, nothing would ever run. */
  #turn(each: Process, isGood: boolean): void {
    if (!this.#processes.includes(each)) return;
    each.network.isHealed = isGood || this.#isEnding;
    this.#fleet.clock.setTimer(() => this.#turn(each, !isGood), 1 + this.#upTo(2 * (isGood ? GOOD_MS : BAD_MS)));
  }

  #skew(): number {
    return this.#upTo(2 * MAX_SKEW_MS) - MAX_SKEW_MS;
  }

  /** Starts random incidents, one after another. */
  #plague(endsAt: number): void {
    const { clock } = this.#fleet;
    const next = (): void => {
      clock.setTimer(
        () => {
          if (clock.now() >= endsAt) return;
          this.#happens(endsAt);
          next();
        },
        this.#upTo(2 * (this.options.calmMs ?? CALM_MS)),
      );
    };
    next();
  }

  #happens(endsAt: number): void {
    const victim = this.#processes[this.#upTo(this.#processes.length)]!;
    switch (this.#upTo(3)) {
      case 0:
        this.counts.kills++;
        this.#kill(victim);
        break;
      case 1:
        this.#pause(victim, endsAt);
        break;
      default:
        this.counts.clockSteps++;
        victim.clock.wallSkewMs = this.#skew();
    }
  }

  /** Stalls a process or suspends its machine. */
  #pause({ clock, scheduler }: Process, endsAt: number): void {
    const ms = this.#upTo(this.options.longestPauseMs ?? MAX_PAUSE_MS);
    // Each job has a later tick, so that one which was too late for all members was not the last.
    const lastTickFrom = endsAt - 2 * Math.max(...this.#schedules.map(([, { everyMs }]) => everyMs));
    if (!clock.isAwake || this.now() + ms > lastTickFrom) return;
    const isSuspend = this.#upTo(2) === 0;
    this.counts[isSuspend ? 'suspends' : 'pauses']++;
    clock.stop();
    this.#fleet.clock.setTimer(() => {
      if (isSuspend) scheduler.suspended(ms);
      clock.continue();
    }, ms);
  }

  #kill(victim: Process): void {
    victim.clock.kill();
    victim.member.kill();
    void victim.member.instance.store.close(); // its connection ends with it
    this.add({ type: 'killed', on: victim.member.name, at: this.now() });
    this.#processes.splice(this.#processes.indexOf(victim), 1);
    this.#join();
  }

  /** Frees the notes of members, which are for other tests and would fill the memory. */
  #forget(): void {
    for (const { member } of this.#processes) {
      const { events, store } = member.instance;
      for (const notes of [events, store.commands, store.grants, member.tickStore.claims, member.tickStore.finishes]) {
        notes.length = 0;
      }
    }
  }
}

import type { ProcessClock } from '../../../../test/support/simulation/simulated-process.js';
import type { SeededRandom } from '../../../../test/support/world/seeded-random.js';
import type { SimulatedSchedule } from './simulated-schedule.js';
import type { TickLine } from '../tick-log.js';

/** Timers are late, and now and then a little early: by so much at most. */
const USUAL_DELAY_MS = 30;
const LONG_DELAY_MS = 900;
const EARLY_MS = 9;

export interface SimulatedWorld {
  readonly random: SeededRandom;
  readonly leaseMs: number;
  /** The maximum error of a clock against the server's. */
  readonly maxClockSkewMs: number;
  /** The shared clock of all log lines. */
  now(): number;
  add(line: TickLine): void;
}

/**
 * The scheduler of one process. Fires each job by the wall clock of the process, however wrong that is.
 *
 * Like the package `cron` with `@SingletonCron`: the timer of a tick that passed in a stall fires after the stall, and
 * after a suspend it is late by the length of the suspend. It then fires for the last tick by the wall clock, however
 * old that tick is.
 */
export class SimulatedScheduler {
  #isStopped = false;
  /** Total time of suspends, in which the timers made no progress. */
  #suspendedMs = 0;

  constructor(
    private readonly world: SimulatedWorld,
    private readonly clock: ProcessClock,
  ) {}

  /** @param fire what happens at a tick */
  schedule(schedule: SimulatedSchedule, fire: (due: number) => void): void {
    const armFor = (tick: number): void => {
      const delayMs = Math.max(0, tick - this.clock.wallNow() + this.#lateness());
      this.#setTimer(() => {
        if (this.#isStopped) return;
        // The clock was set back, or runs too slowly: waits again, like cron itself.
        if (tick - this.clock.wallNow() > EARLY_MS) return armFor(tick);
        const due = schedule.tickAt(this.clock.wallNow());
        fire(due);
        armFor(due + schedule.everyMs);
      }, delayMs);
    };
    armFor(schedule.tickAt(this.clock.wallNow()) + schedule.everyMs);
  }

  stop(): void {
    this.#isStopped = true;
  }

  /** Resumes the machine after a suspend of this length. */
  suspended(ms: number): void {
    this.#suspendedMs += ms;
  }

  #setTimer(callback: () => void, delayMs: number): void {
    const awakeMs = (): number => this.world.now() - this.#suspendedMs;
    const endsAt = awakeMs() + delayMs;
    const ring = (): void => {
      const leftMs = endsAt - awakeMs();
      // A clock that runs too fast rings a little before.
      if (leftMs <= delayMs / 50) callback();
      else this.clock.setTimer(ring, leftMs);
    };
    this.clock.setTimer(ring, delayMs);
  }

  #upTo(limit: number): number {
    return Math.floor(this.world.random.fraction() * limit);
  }

  #lateness(): number {
    switch (this.#upTo(20)) {
      case 0:
        return this.#upTo(LONG_DELAY_MS);
      case 1:
        return -this.#upTo(EARLY_MS);
      default:
        return this.#upTo(USUAL_DELAY_MS);
    }
  }
}

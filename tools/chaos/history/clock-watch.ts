import { machineNow } from '../../../test/support/expect/machine-now.js';
import type { HistoryLog } from './history-log.js';

const LOOK_MS = 5;
/** `Date.now()` has whole milliseconds, and a clock that is slewed moves by less than one in so short a time. */
const STEP_MS = 10;

/**
 * Says when the machine's clock of the day was set, by its own time service or by the host of a virtual machine. Redis ends its
 * leases by that clock, so a step forward ends them early.
 */
export class ClockWatch {
  readonly #timer: NodeJS.Timeout;
  #ahead = Date.now() - machineNow();

  constructor(private readonly log: HistoryLog) {
    this.#timer = setInterval(() => this.#look(), LOOK_MS);
  }

  end(): void {
    clearInterval(this.#timer);
  }

  #look(): void {
    // Between two readings far apart, time may have passed in which this process did not run.
    const before = machineNow();
    const day = Date.now();
    const after = machineNow();
    if (after - before > 1) return;
    const byMs = day - after - this.#ahead;
    if (Math.abs(byMs) < STEP_MS) return;
    this.#ahead += byMs;
    this.log.say({ type: 'clockSet', byMs });
  }
}

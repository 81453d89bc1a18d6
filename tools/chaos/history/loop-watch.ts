import { machineNow } from '../../../test/support/expect/machine-now.js';
import type { HistoryLog } from './history-log.js';

const LOOP_MS = 5;
/** The shortest gap that counts as a stall. */
const STALL_MS = 50;

/** Reports stalls of this process's event loop, and calls back whenever it runs. */
export class LoopWatch {
  /** When the event loop last ran, by a timer of its own. */
  ranAt = machineNow();
  readonly #timer: NodeJS.Timeout;

  constructor(
    private readonly log: HistoryLog,
    private readonly onTurn: () => void = () => undefined,
  ) {
    this.#timer = setInterval(() => this.#run(), LOOP_MS);
  }

  end(): void {
    clearInterval(this.#timer);
  }

  #run(): void {
    const [from, at] = [this.ranAt, machineNow()];
    if (at - from > STALL_MS) this.log.say({ type: 'stall', from, at });
    this.onTurn();
    // Waits for the end of this turn: its other callbacks were delayed by the same stall.
    setImmediate(() => (this.ranAt = at));
  }
}

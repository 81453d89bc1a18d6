import { machineNow } from '../../../test/support/expect/machine-now.js';
import type { HistoryLog } from './history-log.js';

const LOOP_MS = 5;
/** A loop that did not run for so long stood still. */
const STALL_MS = 50;

/** Says when the event loop of this process stood still, and calls back whenever it runs. */
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
    // Not before this turn of the loop is over: what stood still with it belongs to it.
    setImmediate(() => (this.ranAt = at));
  }
}

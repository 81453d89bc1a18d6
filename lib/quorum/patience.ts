import type { Alarm, Alarms } from '../core/util/alarms.js';
import type { Random } from '../core/util/random.js';

/**
 * In round trips; found by simulation. Longer with each vote it has and each time it has yielded, and some by nature up to so many times
 * longer than others: those who are alike would hand votes round for ever.
 */
const PATIENCE = { least: 0.25, perVote: 2, perYield: 1.05, mostYields: 20, byNature: 8 };

/** How long a contender that has some votes waits for more before it hands them on. */
export class Patience implements Alarm {
  dueAt = 0;
  heapIndex = -1;
  readonly #nature: number;
  #passes = 0;

  constructor(
    private readonly alarms: Alarms,
    private readonly random: Random,
    private readonly passVotesOn: () => void,
  ) {
    this.#nature = PATIENCE.byNature ** random.fraction();
  }

  /**
   * Begins to wait, anew where it was waiting.
   *
   * @param roundTripMs how long the nodes take to answer
   */
  wait(roundTripMs: number, votes: number): void {
    this.alarms.setIn(this, this.#nextMs(roundTripMs, votes));
  }

  end(): void {
    this.alarms.cancel(this);
  }

  ring(): void {
    this.#passes++;
    this.passVotesOn();
  }

  #nextMs(roundTripMs: number, votes: number): number {
    const { least, perVote, perYield, mostYields } = PATIENCE;
    const growth = perVote ** (votes - 1) * perYield ** Math.min(this.#passes, mostYields);
    return roundTripMs * least * (1 + 2 * this.random.fraction()) * growth * this.#nature;
  }
}

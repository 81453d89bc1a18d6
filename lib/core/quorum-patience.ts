import type { Random } from './random.js';

/**
 * In round trips; found by simulation. Longer with each vote it has and each time it has yielded, and some by nature up to so many times
 * longer than others: those who are alike would hand votes round for ever.
 */
const PATIENCE = { least: 0.25, perVote: 2, perYield: 1.05, mostYields: 20, byNature: 8 };

/** How long a contender that has some votes waits for more before it hands them on. */
export class QuorumPatience {
  readonly #nature: number;
  #yields = 0;

  constructor(private readonly random: Random) {
    this.#nature = PATIENCE.byNature ** random.fraction();
  }

  /** It has handed its votes on. */
  yielded(): void {
    this.#yields++;
  }

  /** @param roundTripMs how long the nodes take to answer */
  nextMs(roundTripMs: number, votes: number): number {
    const { least, perVote, perYield, mostYields } = PATIENCE;
    const growth = perVote ** (votes - 1) * perYield ** Math.min(this.#yields, mostYields);
    return roundTripMs * least * (1 + 2 * this.random.fraction()) * growth * this.#nature;
  }
}

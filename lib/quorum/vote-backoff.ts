import type { Alarm, Alarms } from '../kernel/util/alarms.js';
import type { Random } from '../kernel/util/clock.js';

/**
 * In round trips; found by simulation. The pause grows with each vote held and each time the votes were passed on. A
 * random factor per candidate, from 1 to `mostFactor`, breaks ties: equal candidates would pass votes round for ever.
 */
const PAUSE = { least: 0.25, growthPerVote: 2, growthPerPass: 1.05, mostPasses: 20, mostFactor: 8 };

/**
 * Decides when a candidate with too few votes passes them on: it waits for more votes for a random time first, as
 * candidates do in Raft (section 5.2, randomized election timeouts).
 */
export class VoteBackoff implements Alarm {
  dueAt = 0;
  heapIndex = -1;
  readonly #factor: number;
  #passes = 0;

  constructor(
    private readonly alarms: Alarms,
    private readonly random: Random,
    private readonly passVotesOn: () => void,
  ) {
    this.#factor = PAUSE.mostFactor ** random.fraction();
  }

  /**
   * Starts or restarts the pause.
   *
   * @param roundTripMs the time that the nodes take to answer
   */
  wait(roundTripMs: number, votes: number): void {
    const { least, growthPerVote, growthPerPass, mostPasses } = PAUSE;
    const growth = growthPerVote ** (votes - 1) * growthPerPass ** Math.min(this.#passes, mostPasses);
    this.alarms.setIn(this, roundTripMs * least * (1 + 2 * this.random.fraction()) * growth * this.#factor);
  }

  end(): void {
    this.alarms.cancel(this);
  }

  ring(): void {
    this.#passes++;
    this.passVotesOn();
  }
}

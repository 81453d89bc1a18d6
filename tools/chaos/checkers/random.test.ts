import { History } from '../history/history.js';
import { checkers } from './index.js';
import { corruptions } from './corruptions.js';
import { dice, randomHistory } from './random-history.js';
import type { Violation } from './violation.js';

const SEEDS = Array.from({ length: 40 }, (_, seed) => seed + 1);
const STEPS = 200;
/** Each corruption is tried on so many of them, each on others. */
const TRIES = 6;

function violationsIn(entries: ConstructorParameters<typeof History>[0]): Violation[] {
  const history = new History(entries);
  return [...checkers.values()].flatMap((check) => check(history).violations);
}

describe('histories by chance', () => {
  it.each(SEEDS)('of a lock that is right are accepted: seed %i', (seed) => {
    const entries = randomHistory(seed, STEPS);
    expect(violationsIn(entries)).toEqual([]);
  });

  it('give every checker something to look at', () => {
    const history = new History(randomHistory(1, STEPS));
    // Its locks run no jobs, and nothing is refused.
    const rules = [...checkers].filter(([rule]) => rule !== 'ticks' && rule !== 'refusals');
    for (const [rule, check] of rules) expect([rule, check(history).looked]).not.toEqual([rule, 0]);
  });

  it.each(Object.keys(corruptions).map((name, place) => [name, place] as const))(
    'are refused where %s',
    (name, place) => {
      let tried = 0;
      for (let seed = place * TRIES; seed < (place + 1) * TRIES; seed++) {
        const corrupted = corruptions[name]!(randomHistory(seed, STEPS), dice(seed));
        if (!corrupted) continue;
        tried++;
        expect([seed, violationsIn(corrupted).length]).not.toEqual([seed, 0]);
      }
      expect(tried).toBeGreaterThan(TRIES / 2);
    },
  );
});

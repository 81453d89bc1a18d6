import fc from 'fast-check';
import {
  type LeadershipIncident,
  type LeadershipPlan,
  LeadershipSimulation,
} from '../../../support/simulation/leadership-simulation.js';
import { PATIENCE_MS, runs } from '../../../support/simulation/runs.js';

const WITHIN_MS = 30_000;

type Kind = LeadershipIncident['kind'];

const incidents = (kinds: readonly Kind[]): fc.Arbitrary<readonly LeadershipIncident[]> =>
  fc.array(
    fc.record({
      at: fc.nat(WITHIN_MS),
      on: fc.nat(4),
      kind: fc.constantFrom(...kinds),
      lastingMs: fc.nat(8_000),
    }),
    { minLength: 5, maxLength: 30, size: 'max' },
  );

const plan = (kinds: readonly Kind[], network: fc.Arbitrary<LeadershipPlan['network']>): fc.Arbitrary<LeadershipPlan> =>
  fc.record({ seed: fc.nat(), instances: fc.integer({ min: 2, max: 5 }), network, incidents: incidents(kinds) });

/** Seed and path that fast-check prints with a failure repeat the smallest failing plan. */
const RUNS = {
  seed: 20260101,
  numRuns: runs(100, 50),
  interruptAfterTimeLimit: PATIENCE_MS,
};

describe('candidates that come and go', () => {
  it('on a bad network, killed, stopped and cut off: one leads at a time, with a token larger than all before', async () => {
    let terms = 0;
    let plans = 0;
    const everything: Kind[] = [
      'resign',
      'stand',
      'stand',
      'release',
      'work',
      'kill',
      'vanish',
      'stop',
      'stop',
      'silence',
      'silence',
      'reconnect',
    ];
    const network = fc.record({
      kind: fc.constantFrom('inOrder' as const, 'unordered', 'lossless'),
      trouble: fc.constantFrom(0, 0.05, 0.2, 0.5),
      delayMs: fc.constantFrom(20, 300, 2_500),
    });
    const property = fc.asyncProperty(plan(everything, network), async (one) => {
      const simulation = new LeadershipSimulation(one);
      await simulation.run();
      plans++;
      terms += simulation.tokens.length;
    });
    await fc.assert(property, RUNS);
    // One leads at the end of each plan. Or it has proved nothing: on average, another one has led before.
    expect(terms).toBeGreaterThan(2 * plans);
  });

  it('on a good network, also killed: a leadership is vacant no longer than a lease and a heartbeat', async () => {
    let longest = 0;
    const network = fc.constant({ kind: 'inOrder' as const, trouble: 0, delayMs: 20 });
    const orderly: Kind[] = ['resign', 'stand', 'stand', 'release', 'work', 'kill'];
    const property = fc.asyncProperty(plan(orderly, network), async (one) => {
      const simulation = new LeadershipSimulation(one);
      await simulation.run();
      longest = Math.max(longest, simulation.longestVacancyMs);
      expect(simulation.longestVacancyMs).toBeLessThan(LeadershipSimulation.longestVacancyMs);
    });
    await fc.assert(property, RUNS);
    expect(longest).toBeGreaterThan(2_000); // some leader did die
  });
});

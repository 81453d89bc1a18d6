import fc from 'fast-check';
import type { Pace } from './comparison.js';
import { History } from './history.js';
import { historyPlan } from './history-plan.js';
import type { StoreSubject } from '../../contract/subject.js';
import { PATIENCE_MS } from '../../support/simulation/runs.js';

export interface ModelRuns extends Pace {
  readonly numRuns: number;
  /** `true` if leases end in these histories. */
  readonly withTime: boolean;
}

/** Contract of lock stores: after each step of any history, replies and state equal the model's. */
export function describeStoreModel(createSubject: () => Promise<StoreSubject>, runs: ModelRuns): void {
  it('does what the model does, step by step, and leaves nothing behind', async () => {
    let grants = 0;
    let kept = 0;
    let freed = 0;
    let tried = 0;
    const histories = fc.asyncProperty(historyPlan(runs.withTime), async (plan) => {
      const subject = await createSubject();
      try {
        const history = await History.begin(subject, plan, runs);
        await history.run();
        grants += history.grants;
        kept += history.kept;
        freed += history.freed;
        tried++;
      } finally {
        await subject.close();
      }
    });
    // Seed and path that fast-check prints with a failure repeat the smallest failing history.
    await fc.assert(histories, { seed: 20_260_101, numRuns: runs.numRuns, interruptAfterTimeLimit: 2 * PATIENCE_MS });
    // Or it has proved nothing. A busy machine has no time for all of the histories.
    expect(grants).toBeGreaterThan(5 * tried);
    expect(kept).toBeGreaterThan(tried / 4);
    expect(freed).toBeGreaterThan(tried / 2);
  });
}

import type { FaultTargets } from '../run/faults-part.js';
import type { Chapter } from '../run/judge-chapter.js';
import { amounts, complaints, fencing, recoveries, verdicts } from './faults-rows.js';
import { TOPOLOGY_RECOVERIES } from './recoveries.js';
import type { Outcome } from './row.js';

/** Results of the same work on other topologies than one Redis. */
export function topologiesOutcome(chapters: readonly Chapter[], targets: FaultTargets): Outcome {
  return {
    rows: [
      ...amounts(chapters, targets),
      ...verdicts(chapters, targets),
      ...recoveries(chapters, targets, TOPOLOGY_RECOVERIES),
      ...fencing(chapters),
    ],
    complaints: complaints(chapters),
  };
}

import type { FaultTargets } from '../run/faults-part.js';
import type { Chapter } from '../run/judge-chapter.js';
import {
  AFTER_A_DEAD_HOLDER,
  amounts,
  complaints,
  fencing,
  recoveries,
  type Recovery,
  verdicts,
} from './faults-rows.js';
import { allScripts, longestScriptRow } from './longest-script-row.js';
import type { Outcome } from './row.js';

/** From when the fault is over: when another node is the primary, or the nodes answer again. */
const RECOVERIES: readonly Recovery[] = [
  AFTER_A_DEAD_HOLDER,
  {
    what: 'after a fail-over, a slot that moved, or nodes that stood still',
    kinds: /^redis: /,
    target: 'a lease + 250 ms',
    boundMs: (leaseMs) => leaseMs + 250,
  },
];

/** What came of the same work on other topologies than one Redis. */
export function topologiesOutcome(chapters: readonly Chapter[], targets: FaultTargets): Outcome {
  return {
    rows: [
      ...amounts(chapters, targets),
      ...verdicts(chapters, targets),
      ...recoveries(chapters, targets, RECOVERIES),
      longestScriptRow(allScripts(chapters)),
      ...fencing(chapters),
    ],
    complaints: complaints(chapters),
  };
}

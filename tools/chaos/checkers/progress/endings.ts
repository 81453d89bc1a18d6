import type { Call } from '../../history/call.js';
import type { History } from '../../history/history.js';
import { BOUNDS, type Bounds } from '../bounds.js';
import { Findings, ms } from '../findings.js';
import { Struck } from '../struck.js';
import type { Verdict } from '../violation.js';

/** Each call ends, once, and in its time; before its process has closed. */
export function endings(history: History, bounds: Bounds = BOUNDS): Verdict {
  const findings = new Findings('endings');
  const struck = new Struck(history, { afterMs: bounds.slowMs });
  const closings = new Map(history.of('closed').map(({ process, at }) => [process, at]));
  for (const call of history.calls) {
    findings.looked++;
    checkEnding(call, closings.get(call.invoked.process), findings);
    checkTime(call, struck, bounds, findings);
  }
  return findings.verdict();
}

function checkEnding(call: Call, closedAt: number | undefined, findings: Findings): void {
  const { invoked, endings: count, diedAt, endCalledAt, endedAt, granted, refused } = call;
  const name = `${invoked.process} (${invoked.call}, invoked at ${ms(invoked.at)})`;
  if (count > 1) findings.violate(invoked.at, () => `${name} ended ${count} times`);
  const at = granted?.at ?? refused?.at;
  if (at !== undefined && closedAt !== undefined && at > closedAt) {
    findings.violate(at, () => `${name} ended at ${ms(at)}, when its process had closed at ${ms(closedAt)}`);
  }
  if (diedAt !== undefined) return;
  if (count === 0) {
    const how = closedAt === undefined ? '' : `, and its process closed at ${ms(closedAt)}`;
    findings.violate(invoked.at, () => `${name} never ended${how}`);
  }
  if (endCalledAt !== undefined && endedAt === undefined) {
    findings.violate(endCalledAt, () => `${name}: its release, called at ${ms(endCalledAt)}, never ended`);
  }
}

function checkTime({ invoked, granted, refused }: Call, struck: Struck, bounds: Bounds, findings: Findings): void {
  const at = granted?.at ?? refused?.at;
  // JSON has no Infinity.
  const { waitMs } = invoked as { waitMs?: number | null };
  if (at === undefined || waitMs === undefined || waitMs === null) return;
  const waitedMs = at - invoked.at;
  if (waitedMs <= waitMs + bounds.overdueMs) return;
  const struckMs = struck.spansOf(invoked.process).coveredMs(invoked.at, at);
  if (waitedMs - struckMs <= waitMs + bounds.overdueMs) return;
  findings.violate(at, () => {
    return (
      `${invoked.process} (${invoked.call}) ended after ${ms(waitedMs)} at ${ms(at)}, with a waitMs of ${waitMs}, and was struck ` +
      `for ${ms(struckMs)} of them`
    );
  });
}

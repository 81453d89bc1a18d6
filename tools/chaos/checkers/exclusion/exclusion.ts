import type { Hold } from '../../history/call.js';
import type { History } from '../../history/history.js';
import { brokenBy, Findings, ms, quote, under } from '../findings.js';
import type { Verdict } from '../violation.js';

/**
 * Leases that exclude each other are never held at the same time: an exclusive lease excludes all others, and readers
 * exclude permits. Another rule limits the number of permits.
 */
export function exclusion(history: History): Verdict {
  const findings = new Findings('exclusion');
  for (const holds of history.holdsByResource.values()) sweep(history, holds, findings);
  return findings.verdict();
}

/** Visits the holds in the order of their starts, and remembers the few that have not ended. */
function sweep(history: History, holds: readonly Hold[], findings: Findings): void {
  const open: Record<Hold['shares'], Hold[]> = { nothing: [], read: [], permits: [] };
  for (const hold of holds) {
    if (hold.to <= hold.from) continue;
    findings.looked++;
    for (const kind of ['nothing', 'read', 'permits'] as const) {
      if (kind === hold.shares && kind !== 'nothing') continue;
      if (open[kind].length === 0) continue;
      open[kind] = open[kind].filter(({ to }) => to > hold.from);
      for (const earlier of open[kind]) report(history, earlier, hold, findings);
    }
    open[hold.shares].push(hold);
  }
}

function report(history: History, earlier: Hold, later: Hold, findings: Findings): void {
  const to = Math.min(earlier.to, later.to);
  const leaseMs = Math.max(earlier.call.invoked.leaseMs, later.call.invoked.leaseMs);
  findings.tell(later.from, brokenBy(history, later.from, to, leaseMs), () => {
    return (
      `${quote(later.resource)} was held by ${tell(earlier)} and by ${tell(later)} at the same time, for ` +
      `${ms(to - later.from)}, with ${under(history, later.from, to, leaseMs)}`
    );
  });
}

function tell({ process, token, from, to, call: { invoked } }: Hold): string {
  return `${process} (${invoked.call}, ${invoked.mode}, token ${token}, from ${ms(from)} to ${ms(to)})`;
}

import type { Hold } from '../../history/call.js';
import type { History } from '../../history/history.js';
import { brokenBy, Findings, ms, quote, under } from '../findings.js';
import type { Verdict } from '../violation.js';

/** The permits of a semaphore that are held at the same time are never more than there are. */
export function permits(history: History): Verdict {
  const findings = new Findings('permits');
  for (const holds of history.holdsByResource.values()) {
    const shares = holds.filter(({ shares, from, to }) => shares === 'permits' && to > from);
    if (shares.length > 0) sweep(history, shares, findings);
  }
  return findings.verdict();
}

function sweep(history: History, holds: readonly Hold[], findings: Findings): void {
  const ends = holds.toSorted((a, b) => a.to - b.to);
  let [next, used] = [0, 0];
  for (const hold of holds) {
    for (; ends[next]!.to <= hold.from; next++) used -= ends[next]!.permits;
    used += hold.permits;
    findings.looked++;
    const total = hold.call.invoked.total ?? 1;
    if (used <= total) continue;
    const { resource, process, token, from, to, call } = hold;
    const now = used;
    const { leaseMs } = call.invoked;
    // Until the first of them ends, they are all held.
    const soonest = Math.min(to, ends[next]!.to);
    findings.tell(from, brokenBy(history, from, soonest, leaseMs), () => {
      return (
        `${now} permits of ${quote(resource)} were held, and there are ${total}: the last one by ${process} (${call.invoked.call}, ` +
        `token ${token}, from ${ms(from)}), with ${under(history, from, soonest, leaseMs)}`
      );
    });
  }
}

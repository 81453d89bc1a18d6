import type { Call } from '../../history/call.js';
import type { Wrote } from '../../history/entries.js';
import type { History } from '../../history/history.js';
import { brokenBy, Findings, ms, quote, under } from '../findings.js';
import type { Verdict } from '../violation.js';

/**
 * Fencing tokens protect writes: a write under the lock is accepted, and the witness accepts no smaller token after a
 * larger one.
 */
export function writes(history: History): Verdict {
  const findings = new Findings('writes');
  for (const call of history.calls) {
    for (const write of call.writes) {
      if (wasAlone(call, write)) check(history, call, write, findings);
    }
  }
  const largest = new Map<string, number>();
  for (const { at, resource, token, accepted } of history.of('witnessed')) {
    findings.looked++;
    const known = largest.get(resource) ?? 0;
    if (accepted && token < known) {
      findings.violate(at, () => {
        return `the witness accepted a write to ${quote(resource)} with token ${token} at ${ms(at)}, after one with ${known}`;
      });
    }
    if (accepted) largest.set(resource, Math.max(known, token));
  }
  return findings.verdict();
}

/** Readers and permits write beside each other, with tokens in no order. A writer is alone until it is downgraded. */
function wasAlone(call: Call, write: Wrote): boolean {
  const { mode } = call.invoked;
  return mode !== 'read' && mode !== 'semaphore' && write.at <= (call.downgradedAt ?? Infinity);
}

function check(history: History, { invoked, granted }: Call, write: Wrote, findings: Findings): void {
  const { at, resource, token, accepted, heldAfter, process } = write;
  findings.looked++;
  const own = granted?.tokens.get(resource);
  if (own !== token) {
    findings.violate(
      at,
      () => `${process} (${invoked.call}) wrote to ${quote(resource)} with ${token}, and has ${own}`,
    );
  }
  if (accepted || !heldAfter) return;
  const { leaseMs } = invoked;
  const from = Math.max(invoked.at, (granted?.until ?? at) - leaseMs);
  findings.tell(at, brokenBy(history, Math.min(from, at), at, leaseMs), () => {
    return (
      `a write of ${process} (${invoked.call}) to ${quote(resource)} with token ${token} was refused at ${ms(at)}, though the ` +
      `lease was held, with ${under(history, from, at, leaseMs)}`
    );
  });
}

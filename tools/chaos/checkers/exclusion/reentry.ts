import { type Call, heldUntil, reenters } from '../../history/call.js';
import type { History } from '../../history/history.js';
import { Findings, ms, quote } from '../findings.js';
import type { Verdict } from '../violation.js';

/**
 * A call that re-enters gets the current token, only while the lease is held, and leaves the outer lease unchanged.
 * (The other checkers also detect a resource that is free after the inner release: by overlaps, and by leases that are
 * taken over.)
 */
export function reentry(history: History): Verdict {
  const findings = new Findings('reentry');
  const inners = new Map<Call, Call[]>();
  for (const call of history.calls) {
    const { outer } = call;
    if (!outer || !call.granted || !reenters(call)) continue;
    findings.looked++;
    if (!outer.granted) {
      findings.violate(call.granted.at, () => `${tell(call)} entered ${tell(outer)}, which was never granted`);
      continue;
    }
    const others = inners.get(outer) ?? [];
    compare(outer, call, others, findings);
    inners.set(outer, [...others, call]);
  }
  for (const [outer, entered] of inners) checkOuter(outer, entered, findings);
  return findings.verdict();
}

function compare(outer: Call, inner: Call, others: readonly Call[], findings: Findings): void {
  const { at, tokens } = inner.granted!;
  for (const [resource, token] of tokens) {
    const expected = outer.granted!.tokens.get(resource);
    if (token === expected) continue;
    findings.violate(at, () => {
      return `${tell(inner)} entered ${quote(resource)} again with token ${token}; ${tell(outer)} has ${expected}`;
    });
  }
  if (outer.granted!.at > at) {
    findings.violate(at, () => `${tell(inner)} entered at ${ms(at)} what ${tell(outer)} did not hold yet`);
  }
  const overAt = isOver(outer, others, at);
  if (inner.invoked.at > overAt) {
    findings.violate(at, () => {
      return `${tell(inner)} entered at ${ms(at)} what ${tell(outer)} no longer held since ${ms(overAt)}`;
    });
  }
}

/** Returns the end of the outer lease. A call that has entered before its release still holds it. */
function isOver({ lost, looks, releaseCalledAt = Infinity }: Call, others: readonly Call[], at: number): number {
  const lostAt = Math.min(lost?.at ?? Infinity, looks.find(({ held }) => !held)?.at ?? Infinity);
  const isKept = others.some((other) => other.granted!.at < releaseCalledAt && (other.endedAt ?? Infinity) > at);
  return isKept ? lostAt : Math.min(lostAt, releaseCalledAt);
}

/** After an inner release the outer lease is held, unless a loss is reported. */
function checkOuter(outer: Call, entered: readonly Call[], findings: Findings): void {
  const innerEnd = entered.reduce((first, { releasedAt = Infinity }) => Math.min(first, releasedAt), Infinity);
  for (const { at, held } of outer.looks) {
    if (at < innerEnd || at >= (outer.endCalledAt ?? Infinity)) continue;
    findings.looked++;
    if (held || outer.lost || at >= heldUntilBefore(outer, at)) continue;
    findings.violate(at, () => {
      return `${tell(outer)} was not held at ${ms(at)}, after one that had entered it was released, and nothing says that it was lost`;
    });
  }
}

/** The deadline as it was known before a look that found the lease over. */
function heldUntilBefore(call: Call, at: number): number {
  return heldUntil({ ...call, looks: call.looks.filter((look) => look.at < at && look.held) });
}

function tell({ invoked: { process, call } }: Call): string {
  return `${process} (${call})`;
}

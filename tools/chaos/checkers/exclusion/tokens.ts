import { type Call, type Hold, reenters } from '../../history/call.js';
import type { FaultSpan, History } from '../../history/history.js';
import { BOUNDS, type Bounds } from '../bounds.js';
import { brokenBy, Findings, ms, quote, under } from '../findings.js';
import type { Verdict } from '../violation.js';

/**
 * No token of a resource is given to two leases; and of two leases that exclude each other the later one has the larger token.
 * Readers among each other, and permits among each other, come in no order; over a quorum, readers may have the same one.
 */
export function tokens(history: History, { splitsVotes }: Bounds = BOUNDS): Verdict {
  const findings = new Findings('tokens');
  for (const [resource, calls] of history.callsByResource) {
    const mayShare = (call: Call): boolean => splitsVotes && call.invoked.mode === 'read';
    findRepeated(history, resource, calls, mayShare, findings);
  }
  for (const holds of history.holdsByResource.values()) findUnordered(history, holds, findings);
  return findings.verdict();
}

function findRepeated(
  history: History,
  resource: string,
  calls: readonly Call[],
  mayShare: (call: Call) => boolean,
  findings: Findings,
): void {
  const seen = new Map<number, Call>();
  for (const call of calls) {
    const { invoked, granted } = call;
    if (!granted || reenters(call)) continue;
    const token = granted.tokens.get(resource);
    findings.looked++;
    const what = (problem: string) => () => {
      return `${invoked.process} (${invoked.call}) was granted ${quote(resource)} with token ${token} at ${ms(granted.at)}: ${problem}`;
    };
    if (token === undefined || !Number.isSafeInteger(token) || token <= 0) {
      findings.violate(granted.at, what('that is no token'));
      continue;
    }
    const other = seen.get(token);
    if (other && !(mayShare(other) && mayShare(call))) {
      const { process, call: name } = other.invoked;
      const text = what(`${process} (${name}) had that token at ${ms(other.granted!.at)}`);
      findings.tell(granted.at, repeatsTokens(history, other, call), text);
    }
    seen.set(token, call);
  }
}

/** A token repeats only if the last tick was lost and the clock stepped back: a fault of each kind before the second grant. */
function repeatsTokens({ faults }: History, one: Call, other: Call): FaultSpan | undefined {
  const [from, to] = [one.granted!.at, other.granted!.at].sort((a, b) => a - b) as [number, number];
  if (!faults.some((fault) => fault.movesClock && fault.from <= to)) return undefined;
  return faults.find((fault) => fault.losesData && fault.from <= to && fault.to >= from - one.invoked.leaseMs);
}

/** Visits starts and ends in the order of time, and remembers the largest token that has ended. */
function findUnordered(history: History, unsorted: readonly Hold[], findings: Findings): void {
  // A process that was paused until its lease had ended held it for an unknown time.
  const holds = unsorted.filter(({ from, to }) => to > from);
  const ends = holds.toSorted((a, b) => a.to - b.to);
  const largest: Partial<Record<Hold['shares'], Hold>> = {};
  let next = 0;
  for (const hold of holds) {
    for (let ended = ends[next]; ended && ended.to <= hold.from; ended = ends[++next]) {
      const known = largest[ended.shares];
      if (!known || ended.token > known.token) largest[ended.shares] = ended;
    }
    for (const kind of ['nothing', 'read', 'permits'] as const) {
      const earlier = largest[kind];
      if (!earlier || (kind === hold.shares && kind !== 'nothing')) continue;
      findings.looked++;
      // Equal tokens: the same lease, passed on or downgraded; or repeated, which another finding reports.
      if (earlier.token > hold.token) report(history, earlier, hold, findings);
    }
  }
}

function report(history: History, earlier: Hold, later: Hold, findings: Findings): void {
  const { invoked, granted } = later.call;
  const leaseMs = Math.max(earlier.call.invoked.leaseMs, invoked.leaseMs);
  // It may have been granted, and forgotten by Redis, before the other one was; its process only heard of it late.
  const grantedFrom = Math.max(invoked.at, granted!.until - invoked.leaseMs);
  findings.tell(later.from, brokenBy(history, Math.min(grantedFrom, later.from), later.from, leaseMs), () => {
    return (
      `${later.process} (${invoked.call}) held ${quote(later.resource)} from ${ms(later.from)} with token ${later.token}, which is ` +
      `smaller than ${earlier.token} of ${earlier.process} (${earlier.call.invoked.call}), which had ended at ` +
      `${ms(earlier.to)}, with ${under(history, earlier.to, later.from, leaseMs)}`
    );
  });
}

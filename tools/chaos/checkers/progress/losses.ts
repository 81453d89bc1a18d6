import type { Call } from '../../history/call.js';
import type { History } from '../../history/history.js';
import { BOUNDS, type Bounds } from '../bounds.js';
import { brokenBy, Findings, ms, quote, under } from '../findings.js';
import { Spans } from '../spans.js';
import { Struck } from '../struck.js';
import type { Verdict } from '../violation.js';

/**
 * A lost lease is reported by its deadline, or as soon as the event loop runs; a lease reported as not held stays so;
 * and no lease is granted to another call before its deadline.
 */
export function losses(history: History, bounds: Bounds = BOUNDS): Verdict {
  const findings = new Findings('losses');
  const struck = new Struck(history);
  for (const call of history.calls) {
    if (call.lost) checkLost(history, call, struck, bounds, findings);
    if (call.looks.length > 0) checkLooks(call, findings);
  }
  return findings.verdict();
}

function checkLost(history: History, call: Call, struck: Struck, bounds: Bounds, findings: Findings): void {
  const { lossMs, splitsVotes } = bounds;
  const { at, until, loopRanAt, reason } = call.lost!;
  findings.looked++;
  // After a standstill another timer may run first, and then the loop ran, but a moment before the loss was seen.
  const { process } = call.invoked;
  const still = new Spans([...struck.stallsOf(process, until, at), ...struck.faultsOf(process)]);
  const last = Math.min(at, loopRanAt);
  if (last > until && last - until - still.coveredMs(until, last) > lossMs) {
    findings.violate(at, () => {
      return `${tell(call)} was lost at ${ms(at)} (${reason}): its deadline was ${ms(until)}, and the loop ran at ${ms(loopRanAt)}`;
    });
  }
  if (reason !== 'takenOver' || at >= until || at >= (call.endCalledAt ?? Infinity)) return;
  const { leaseMs } = call.invoked;
  const from = call.granted?.at ?? at;
  // The majority that voted for it has forgotten it and reports so; no other call gets it before its deadline.
  if (splitsVotes && struck.redis.touches(from, at)) return;
  // With a quarantine Redis may forget it, but must not grant it to another process before its deadline: that is another rule.
  const forgotten = history.faults.find((fault) => fault.losesData && fault.from <= at && fault.to >= from);
  findings.tell(at, brokenBy(history, from, at, leaseMs) ?? forgotten, () => {
    return `${tell(call)} was taken over at ${ms(at)}, before its deadline at ${ms(until)}, with ${under(history, at, at, leaseMs)}`;
  });
}

function checkLooks(call: Call, findings: Findings): void {
  const { looks, lost, endCalledAt = Infinity } = call;
  let overAt = Infinity;
  for (const { at, held, aborted, until } of looks) {
    findings.looked++;
    const what = (problem: string) => () =>
      `${tell(call)} said at ${ms(at)} that it was ${held ? '' : 'not '}held, ${problem}`;
    if (held) {
      if (at >= until) findings.violate(at, what(`and its deadline was ${ms(until)}`));
      if (at > overAt) findings.violate(at, what(`and at ${ms(overAt)} that it was not`));
      if (at > (lost?.at ?? Infinity)) findings.violate(at, what(`and its signal had aborted at ${ms(lost!.at)}`));
      if (aborted) findings.violate(at, what('and its signal had aborted'));
    } else {
      overAt = Math.min(overAt, at);
      // A lease that was released is not held either, and nothing was lost.
      if (!aborted && at < endCalledAt) findings.violate(at, what('and its signal had not aborted'));
    }
  }
}

function tell({ invoked: { process, call, resources } }: Call): string {
  return `${process} (${call}, ${resources.map(quote).join(', ')})`;
}

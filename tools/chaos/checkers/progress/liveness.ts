import { type Call, reenters } from '../../history/call.js';
import type { FaultSpan, History } from '../../history/history.js';
import { BOUNDS, type Bounds, heartbeatMs } from '../bounds.js';
import { Findings, ms, quote, under } from '../findings.js';
import { possession } from '../exclusion/possession.js';
import { type Span, Spans } from '../spans.js';
import { Struck } from '../struck.js';
import type { Verdict } from '../violation.js';

/**
 * A free resource is granted within a heartbeat if a live process without faults waits for it. Free: nobody may still
 * hold it, judging by what was seen and by the longest time that Redis keeps it for holders that died, lost it or got
 * no reply. Faults that only lose messages are no excuse.
 */
export function liveness(history: History, bounds: Bounds = BOUNDS): Verdict {
  const findings = new Findings('liveness');
  const struck = new Struck(history, { except: bounds.losesMessages });
  const faults = new Struck(history, { except: bounds.losesMessages, stallMs: Infinity });
  for (const [resource, calls] of history.callsByResource) {
    const leaseMs = calls.reduce((longest, { invoked }) => Math.max(longest, invoked.leaseMs), 0);
    const boundMs = heartbeatMs(leaseMs) + bounds.idleMs;
    const taken = takenSpans(calls, struck, (fault) => {
      return leaseMs + boundMs + (fault.movesClock ? bounds.clockStepMs : 0);
    });
    for (const call of calls) {
      if (!isWaiter(call)) continue;
      findings.looked++;
      const { at: from, process } = call.invoked;
      const to = endOf(call, history);
      if (to - from <= boundMs) continue;
      const free = freeSpans(taken, faults.spansOf(process), from, to).filter((span) => span.to - span.from > boundMs);
      if (free.length === 0) continue;
      const stalls = stallsWhile(call, to, calls, struck);
      const idle = free.find((span) => span.to - span.from - stalls.coveredMs(span.from, span.to) > boundMs);
      if (!idle) continue;
      findings.violate(idle.from + boundMs, () => {
        return (
          `${quote(resource)} was free from ${ms(idle.from)} to ${ms(idle.to)}, while ${process} (${call.invoked.call}) waited: it is ` +
          `granted within ${ms(boundMs)}, with ${under(history, idle.from, idle.to, leaseMs)}`
        );
      });
    }
  }
  return findings.verdict();
}

/** Returns true for a call that waits for this one resource only. */
export function isWaiter(call: Call): boolean {
  const { invoked } = call;
  return invoked.queues && invoked.resources.length === 1 && !reenters(call);
}

export function endOf({ granted, refused, diedAt }: Call, history: History): number {
  return granted?.at ?? refused?.at ?? diedAt ?? history.endsAt;
}

/** Spans in which the resource may be held, or Redis can't grant it. */
export function takenSpans(calls: readonly Call[], struck: Struck, afterMs: (fault: FaultSpan) => number): Spans {
  const spans: Span[] = struck.ofRedis.map((fault) => ({ from: fault.from, to: fault.to + afterMs(fault) }));
  spans.push(...struck.slow);
  for (const call of calls) {
    spans.push(...possession(call));
    addUnaware(spans, call, struck);
  }
  return new Spans(spans);
}

/** Redis may grant a struck waiter the resource without its knowledge, until its place and lease expire. */
function addUnaware(spans: Span[], call: Call, struck: Struck): void {
  const { invoked, granted, refused, diedAt } = call;
  const { process, leaseMs } = invoked;
  const end = granted?.at ?? refused?.at ?? diedAt ?? Infinity;
  // Its last command may be lost as well, so its place or lock remains for a lease.
  const overAt = (call.endedAt ?? call.lost?.at ?? end) + leaseMs;
  for (const { from, to } of struck.faultsOf(process)) {
    if (from > overAt || to + leaseMs < invoked.at) continue;
    // A process that only stalled sent nothing after the stall began.
    const isStill = struck.stallsOf(process, from, to).some((one) => one.from <= from + 50 && one.to >= to - 50);
    const until = isStill ? from : Math.min(to, diedAt ?? Infinity);
    spans.push({ from: Math.max(from, invoked.at), to: Math.max(from, until) + leaseMs });
  }
}

/** When the resource was free and no fault struck the waiter. */
function freeSpans(taken: Spans, faults: Spans, from: number, to: number): Span[] {
  return taken.gaps(from, to).flatMap((gap) => faults.gaps(gap.from, gap.to));
}

/**
 * Spans in which this waiter, or another one that may have been granted the resource unknowingly, was stalled: until it
 * runs again, or its place and lease have expired. That time does not count. No new period starts after it, because
 * timers fire as soon as a process runs.
 */
function stallsWhile(waiter: Call, until: number, calls: readonly Call[], struck: Struck): Spans {
  const spans = struck.stallsOf(waiter.invoked.process, waiter.invoked.at, until);
  for (const { invoked, granted, refused, diedAt } of calls) {
    const { at, process, leaseMs } = invoked;
    const end = Math.min(until, granted?.at ?? refused?.at ?? diedAt ?? Infinity);
    if (end < waiter.invoked.at || at > until) continue;
    for (const { from, to } of struck.stallsOf(process, at, end))
      spans.push({ from, to: Math.min(to, from + leaseMs) });
  }
  return new Spans(spans);
}

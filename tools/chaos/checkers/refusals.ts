import type { Call } from '../history/call.js';
import type { FaultSpan, History } from '../history/history.js';
import { endOf, isWaiter } from './progress/liveness.js';
import { Findings, ms, quote } from './findings.js';
import { Spans } from './spans.js';
import { Struck } from './struck.js';
import type { Verdict } from './violation.js';

/** A refused command is sent again after 2 s at most. The rest is for its answer, and for the message to the next one. */
export const FREE_AGAIN_MS = 2_500;
/** A call that started less than this before the end may still wait. */
const TOO_LATE_MS = 500;
const LATE_MS = 100;

const REFUSES = /^Redis: refuses/;

/** When Redis accepted commands again, and until when all that was freed must be granted. */
interface Time {
  readonly back: number;
  readonly until: number;
}

/**
 * A resource that is freed while Redis refuses commands is granted soon after it accepts them again: a lock, some
 * permits, the place of a caller that gave up, the run of a job. Stalls of a process or of Redis don't count.
 */
export function refusals(history: History): Verdict {
  const findings = new Findings('refusals');
  const struck = new Struck(history, { lateMs: LATE_MS });
  const still = new Spans([...struck.slow, ...history.of('stall').map(({ from, at }) => ({ from, to: at }))]);
  const timeOf = (fault: FaultSpan): Time | undefined => {
    const { kind, missed, to: back } = fault;
    if (!REFUSES.test(kind) || missed) return undefined;
    const until = movedUntil(still, back, FREE_AGAIN_MS);
    const isOther = history.faults.some((other) => other !== fault && other.from <= until && other.to >= back);
    return isOther || until > history.endsAt ? undefined : { back, until };
  };
  for (const fault of history.faults) {
    const time = timeOf(fault);
    if (!time) continue;
    const { back, until } = time;
    const check = (what: string, grants: readonly number[]): void => {
      findings.looked++;
      if (grants.some((at) => at > back && at <= until)) return;
      findings.violate(until, () => {
        return `${what} was free by ${ms(back)}, when Redis accepted commands again, and nobody had it before ${ms(until)}, though it was wanted`;
      });
    };
    for (const [resource, calls] of history.callsByResource) {
      if (!isWanted(history, resource, time)) continue;
      check(
        quote(resource),
        calls.map(({ granted }) => granted?.at ?? Infinity),
      );
    }
    const starts = history.of('tick').filter(({ phase }) => phase === 'start');
    for (const job of idleJobs(history, back)) {
      check(
        `job ${job}`,
        starts.map((start) => (start.job === job ? start.at : Infinity)),
      );
    }
  }
  return findings.verdict();
}

/** The time at which `ms` without stalls have passed. */
function movedUntil(still: Spans, from: number, ms: number): number {
  let leftMs = ms;
  for (const gap of still.gaps(from, Infinity)) {
    if (gap.from + leftMs <= gap.to) return gap.from + leftMs;
    leftMs -= gap.to - gap.from;
  }
  return Infinity;
}

/** Returns true if a call waited then that could be granted, because enough of the resource was free. */
function isWanted(history: History, resource: string, { back, until }: Time): boolean {
  const calls = history.callsByResource.get(resource)!;
  const asked = calls.filter((call) => {
    return isWaiter(call) && call.invoked.at <= until - TOO_LATE_MS && endOf(call, history) > back;
  });
  if (!asked.some((call) => call.granted || endOf(call, history) > until)) return false;
  const holders = calls.filter((call) => mayHold(call, back));
  if (holders.length === 0) return true;
  if (holders.some(({ invoked }) => invoked.mode !== 'semaphore')) return false;
  const held = holders.reduce((sum, { invoked, lowered }) => {
    return sum + (lowered && lowered.at <= back ? lowered.left : (invoked.permits ?? 1));
  }, 0);
  // Any of them may be the first in the queue.
  return asked.every(({ invoked }) => held + (invoked.permits ?? 1) <= (invoked.total ?? 1));
}

/** Returns true if it was granted and may not have ended. */
function mayHold({ granted, endCalledAt = Infinity, lost, looks }: Call, at: number): boolean {
  if (!granted || granted.at > at) return false;
  const lostAt = looks.find(({ held }) => !held)?.at ?? Infinity;
  return Math.min(endCalledAt, lost?.at ?? Infinity, lostAt) > at;
}

/** Recurring jobs that did not run at that moment. */
function idleJobs(history: History, at: number): Set<string> {
  const idle = new Set<string>();
  for (const { job, phase, at: told } of history.of('tick')) {
    if (told > at) break;
    if (phase === 'start') idle.delete(job);
    else idle.add(job);
  }
  return idle;
}

import { formatDuration } from '../../../kernel/util/durations.js';
import { quote } from '../../../kernel/util/quoted.js';
import { type TriedCall, type ReliedOnCall, isHeld } from './history.js';

/** From `from` to `to`, in milliseconds. */
export interface SlowSpan {
  readonly from: number;
  readonly to: number;
}

/** Facts about a run that its history does not have. */
export interface Conditions {
  /** The longest time that Redis keeps the lock of a process that died. */
  readonly leaseMs: number;
  /** When this process was blocked, or Redis replied late. A bound counts from the end of such a time. */
  readonly slow: readonly SlowSpan[];
}

/** The rules, from the worst to break on. */
export const RULES = ['exclusion', 'tokens', 'losses', 'handOver'] as const;

/** A promise that was broken. */
export interface Violation {
  readonly rule: (typeof RULES)[number];
  /** One sentence. */
  readonly what: string;
}

/** The findings, the worst first, and how close it was. */
export interface Verdict {
  readonly violations: readonly Violation[];
  /** The longest delay from the end of a lease to its report as lost. */
  readonly latestLossMs: number;
  /** The longest time for which a lock was free while a call waited for it. */
  readonly slowestHandOverMs: number;
}

/** The delay after its deadline in which a lease has to be reported as lost. */
export const LOSS_MS = 250;
/** The promise about a lock that is free, even if messages get lost. */
export const HAND_OVER_MS = 5_000;
/** A dead holder is noticed within so many leases. */
const DEAD_LEASES = 1.1;

/** Checks what was promised. It knows the history, and nothing of how locks work. */
export function checkHistory(calls: readonly TriedCall[], { leaseMs, slow }: Conditions): Verdict {
  const violations: Violation[] = [];
  const delay = (from: number, to: number): number => {
    const overlapping = slow.filter((each) => each.from < to && each.to > from);
    return Math.max(0, to - overlapping.reduce((last, each) => Math.max(last, each.to), from));
  };
  let [latestLossMs, slowestHandOverMs] = [0, 0];
  for (const key of new Set(calls.map((call) => call.key))) {
    const all = calls.filter((call) => call.key === key);
    const held = all.filter(isHeld).toSorted((a, b) => a.lease.at - b.lease.at);
    for (const [index, later] of held.entries()) violations.push(...compare(later, held.slice(0, index)));
    for (const { lease, end, endedAt = lease.heldUntil } of held) {
      if (end !== 'lost') continue;
      const lateMs = delay(lease.heldUntil, endedAt);
      latestLossMs = Math.max(latestLossMs, lateMs);
      if (lateMs <= LOSS_MS) continue;
      const what = `The lease of ${quote(key)} with the token ${lease.token} was lost, but its holder learned of that ${formatDuration(lateMs)} late.`;
      violations.push({ rule: 'losses', what });
    }
    for (const call of all) {
      const until = call.lease?.at ?? call.endedAt;
      if (until === undefined) continue;
      const from = freeFrom(call, until, all, leaseMs);
      const idleMs = delay(from, until);
      slowestHandOverMs = Math.max(slowestHandOverMs, idleMs);
      if (idleMs <= HAND_OVER_MS) continue;
      const what = `${quote(key)} was free for ${formatDuration(idleMs)} while a call waited for it.`;
      violations.push({ rule: 'handOver', what });
    }
  }
  violations.sort((a, b) => RULES.indexOf(a.rule) - RULES.indexOf(b.rule));
  return { violations, latestLossMs, slowestHandOverMs };
}

/** Compares a lease with all that were granted before it. */
function compare(later: ReliedOnCall, before: readonly ReliedOnCall[]): Violation[] {
  const found: Violation[] = [];
  const { key, mode, permits = 1, total = 1, lease } = later;
  const name = quote(key);
  let used = permits;
  for (const { mode: otherMode, permits: taken = 1, lease: earlier } of before) {
    const isOverlapping = earlier.heldUntil > lease.at;
    if (earlier.token === lease.token) {
      found.push({ rule: 'tokens', what: `Two leases of ${name} have the token ${lease.token}.` });
    }
    if (otherMode === mode && mode !== 'exclusive') {
      if (isOverlapping) used += taken;
    } else if (isOverlapping) {
      const forMs = Math.min(earlier.heldUntil, later.lease.heldUntil) - lease.at;
      const tokens = `${earlier.token} and ${lease.token}`;
      const what = `${name} was held twice for ${formatDuration(forMs)}, with the tokens ${tokens}.`;
      found.push({ rule: 'exclusion', what });
    } else if (earlier.token > lease.token) {
      const what = `${name} was granted with the token ${lease.token} after a lease with the larger token ${earlier.token}.`;
      found.push({ rule: 'tokens', what });
    }
  }
  if (mode === 'semaphore' && used > total) {
    found.push({ rule: 'exclusion', what: `${used} permits of ${name} were held, but there are only ${total}.` });
  }
  return found;
}

/** From when on nothing stood in the way of a call: neither a lease, nor a call that may be before it in the queue. */
function freeFrom(call: TriedCall, until: number, others: readonly TriedCall[], leaseMs: number): number {
  const isDone = ({ end }: TriedCall): boolean => end === 'released' || end === 'refused';
  let from = call.askedAt;
  for (const other of others) {
    const { lease, askedAt, endedAt = Infinity } = other;
    if (other === call || (lease?.at ?? askedAt) >= until) continue;
    // Redis keeps a lock that was not released.
    const goneAt = isDone(other) ? endedAt : (lease?.heldUntil ?? endedAt) + DEAD_LEASES * leaseMs;
    from = Math.max(from, Math.min(goneAt, until));
  }
  return from;
}

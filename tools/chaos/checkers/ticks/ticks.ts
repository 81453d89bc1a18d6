import type { Violation } from '../violation.js';

/** One start of one tick, as its process saw it. Times are milliseconds on a clock that all processes share. */
export interface TickStart {
  readonly job: string;
  readonly tick: string;
  /** The process. */
  readonly on: string;
  readonly onCrash: 'skip' | 'retry';
  /** The flag that the job received: `true` after an earlier start in another process. */
  readonly rerun: boolean;
  readonly fencingToken: number;
  readonly startedAt: number;
  /** Until when it held the job's lock for certain; `startedAt` where nothing is certain. */
  readonly heldUntil: number;
  /** It ended, and recorded that, while it held the lock. The tick must not start again after that. */
  readonly isWhole: boolean;
}

/**
 * "One start per (job, tick)", with its consequences:
 *
 * - `duplicate`: at most one start of a tick is the first, with the smallest token. The others are marked as reruns,
 * and
 *   `onCrash: 'skip'` allows none;
 * - `rerun of a whole run`: a tick is rerun only if the run before died or lost its lease;
 * - `overlap`: no two runs of a job hold its lock at the same time;
 * - `token order`: a run that begins after another has ended has a larger token, and no two have the same.
 */
export function checkTicks(starts: readonly TickStart[]): Violation[] {
  const violations: Violation[] = [];
  for (const ofTick of groups(starts, ({ job, tick }) => JSON.stringify([job, tick]))) {
    if (ofTick.length > 1 || ofTick[0]!.rerun) violations.push(...checkTick(ofTick));
  }
  for (const ofJob of groups(starts, ({ job }) => job)) violations.push(...checkJob(ofJob));
  return violations;
}

function checkTick(starts: readonly TickStart[]): Violation[] {
  const violations: Violation[] = [];
  const [first, ...later] = starts.toSorted(byToken) as [TickStart, ...TickStart[]];
  const firsts = later.filter(({ rerun }) => !rerun);
  for (const start of firsts) violations.push(violation('duplicate', first, start));
  if (first.onCrash === 'skip') {
    for (const start of [first, ...later]) if (start.rerun) violations.push(violation('duplicate', first, start));
  }
  const whole = starts.filter(({ isWhole }) => isWhole).toSorted(byToken)[0];
  for (const start of later) {
    if (whole && start.fencingToken > whole.fencingToken) {
      violations.push(violation('rerun of a whole run', whole, start));
    }
  }
  return violations;
}

function checkJob(starts: readonly TickStart[]): Violation[] {
  const violations: Violation[] = [];
  const tokens = new Map<number, TickStart>();
  for (const start of starts) {
    const same = tokens.get(start.fencingToken);
    if (same) violations.push(violation('token order', same, start));
    tokens.set(start.fencingToken, start);
  }
  const held = starts.filter(({ startedAt, heldUntil }) => heldUntil > startedAt);
  /** The earlier start with the latest end. */
  let longest: TickStart | undefined;
  /** The earlier start with the largest token. */
  let largest: TickStart | undefined;
  for (const start of held.toSorted((one, other) => one.startedAt - other.startedAt)) {
    if (longest && start.startedAt < longest.heldUntil) violations.push(violation('overlap', longest, start));
    else if (largest && start.fencingToken < largest.fencingToken) {
      violations.push(violation('token order', largest, start));
    }
    if (!longest || start.heldUntil > longest.heldUntil) longest = start;
    if (!largest || start.fencingToken > largest.fencingToken) largest = start;
  }
  return violations;
}

function byToken(one: TickStart, other: TickStart): number {
  return one.fencingToken - other.fencingToken || one.startedAt - other.startedAt;
}

function violation(rule: string, one: TickStart, other: TickStart): Violation {
  const what = one === other ? describe(one) : `${describe(one)}; and ${describe(other)}`;
  return { rule, what, at: other.startedAt };
}

function describe({ job, tick, on, rerun, fencingToken, startedAt, heldUntil, isWhole }: TickStart): string {
  const kind = `${rerun ? 'again, ' : ''}${isWhole ? 'whole, ' : ''}token ${fencingToken}`;
  return `${job} ${tick} on ${on} at ${startedAt.toFixed(2)}, held to ${heldUntil.toFixed(2)} (${kind})`;
}

function groups<T>(items: readonly T[], keyOf: (item: T) => string): T[][] {
  const found = new Map<string, T[]>();
  for (const item of items) {
    const key = keyOf(item);
    const group = found.get(key);
    if (group) group.push(item);
    else found.set(key, [item]);
  }
  return [...found.values()];
}

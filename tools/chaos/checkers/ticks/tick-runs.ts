import type { Ticked } from '../../history/entries.js';
import type { History } from '../../history/history.js';
import { brokenBy, Findings } from '../findings.js';
import { checkTicks, type TickStart } from './ticks.js';
import type { Verdict } from '../violation.js';

/**
 * Each tick of a job starts once. It starts again only after its runner died or lost its lease, and then as a rerun.
 */
export function tickRuns(history: History): Verdict {
  const findings = new Findings('ticks');
  const ticks = history.of('tick');
  const starts = startsOf(ticks);
  const leaseMs = ticks.reduce((longest, { at, until }) => Math.max(longest, until - at), 0);
  findings.looked = starts.length;
  for (const { what, at, rule } of checkTicks(starts)) {
    // A claim that Redis lost is repeated by the next process that fires the tick.
    findings.tell(at, brokenBy(history, at, at, leaseMs), () => `${rule}: ${what}`);
  }
  return findings.verdict();
}

/** The certain facts of each start. */
function startsOf(entries: readonly Ticked[]): TickStart[] {
  const runs = new Map<string, Partial<Record<Ticked['phase'], Ticked>>>();
  for (const entry of entries) {
    const key = `${entry.process} ${entry.token} ${entry.job}`;
    const run = runs.get(key) ?? {};
    run[entry.phase] ??= entry;
    runs.set(key, run);
  }
  return [...runs.values()].flatMap(({ start, end, done }) => {
    if (!start) return [];
    const { job, tick, process: on, onCrash, rerun, token: fencingToken, at: startedAt } = start;
    const heldUntil = end && end.until > end.at ? end.at : start.until;
    // Redis got the note of its end while it held the lock.
    const isWhole = end !== undefined && done !== undefined && done.at < end.until;
    return [{ job, tick, on, onCrash, rerun, fencingToken, startedAt, heldUntil, isWhole }];
  });
}

import { type Gap, gaps } from '../checkers/progress/gaps.js';
import { BOUNDS } from '../checkers/bounds.js';
import { ms } from '../checkers/findings.js';
import { checkers } from '../checkers/index.js';
import { Struck } from '../checkers/struck.js';
import type { Verdict } from '../checkers/violation.js';
import type { Witnessed } from '../history/entries.js';
import { exportHistory } from '../history/export.js';
import type { History } from '../history/history.js';

/** Facts of a chapter that are not in its history. */
export interface Judged extends Pick<Chapter, 'title' | 'seed' | 'leaseMs'> {
  /** The faults that should have come: one that never came is counted as well. */
  readonly kinds: readonly string[];
  /** Rules to skip. */
  readonly unpromised: readonly string[];
  readonly splitsVotes: boolean;
  /** The folder for its history. */
  readonly histories?: string | undefined;
}

/** The result of a chapter. */
export interface Chapter {
  readonly title: string;
  readonly seed: number;
  readonly holds: number;
  readonly calls: number;
  /** Leases granted while others waited for the same resource. */
  readonly contended: number;
  /** The number of injected faults of each kind. */
  readonly faults: Readonly<Record<string, number>>;
  /** The number of calls that ended without a lease, by error code. */
  readonly refusals: Readonly<Record<string, number>>;
  readonly verdicts: readonly Verdict[];
  /** The observations of the unfenced control: lost updates, and overlapping writers. */
  readonly lostUpdates: number;
  readonly refusedWrites: number;
  /** Writes with a smaller token that the fenced register took after a larger one: never. */
  readonly staleWrites: number;
  readonly losses: number;
  /** The longest delay from a deadline, or from the next run of the loop, to the report of the loss. */
  readonly latestLossMs: number;
  readonly leaseMs: number;
  /** Times and steps of changes to the machine's clock: Redis ends leases by it. */
  readonly clockSets: readonly string[];
  readonly gaps: Readonly<Record<string, readonly Gap[]>>;
  /** Each that was later than it may be. */
  readonly late?: readonly string[];
  /** The path of its history, if a rule was broken or a recovery was late. */
  readonly historyPath?: string;
}

/** Goes through what was said, by all checkers. Of a long history that takes many seconds. */
export function judgeChapter(
  { title, seed, leaseMs, kinds, unpromised, splitsVotes, histories }: Judged,
  history: History,
): Chapter {
  if (histories !== undefined) exportHistory(history, histories, title);
  const witnessed = history.of('witnessed');
  const bounds = { ...BOUNDS, splitsVotes };
  return {
    title,
    seed,
    holds: history.holds.length,
    calls: history.calls.length,
    contended: contendedHolds(history),
    faults: countBy(
      history.faults.flatMap(({ kind, missed }) => (missed ? [] : [kind])),
      kinds,
    ),
    refusals: countBy(history.calls.flatMap(({ refused }) => (refused ? [String(refused.code)] : []))),
    verdicts: [...checkers].flatMap(([rule, check]) => (unpromised.includes(rule) ? [] : [check(history, bounds)])),
    lostUpdates: witnessed.filter(({ read, found }) => read !== found).length,
    refusedWrites: witnessed.filter(({ accepted }) => !accepted).length,
    staleWrites: staleWrites(witnessed),
    losses: history.of('lost').length,
    latestLossMs: latestLossMs(history),
    leaseMs,
    clockSets: history.of('clockSet').map(({ at, byMs }) => `${ms(byMs)} at ${ms(at)}`),
    gaps: Object.fromEntries(gaps(history)),
  };
}

/** Holds that another call waited for at their start, or before their end. */
function contendedHolds({ holds, callsByResource }: History): number {
  let contended = 0;
  const waits = new Map(
    [...callsByResource].map(([resource, calls]) => {
      const spans = calls.map(({ invoked, granted, refused }) => {
        return { from: invoked.at, to: granted?.at ?? refused?.at ?? invoked.at, process: invoked.process };
      });
      return [resource, spans.sort((a, b) => a.from - b.from)];
    }),
  );
  for (const { resource, from, to, call } of holds) {
    const others = waits.get(resource)!;
    // Waits are short beside the history, so much earlier ones are skipped.
    let low = 0;
    for (let high = others.length; low < high;) {
      const middle = (low + high) >> 1;
      if (others[middle]!.from < from - 20_000) low = middle + 1;
      else high = middle;
    }
    for (; low < others.length && others[low]!.from < to; low++) {
      const other = others[low]!;
      if (other.to > from && other.from !== call.invoked.at) {
        contended++;
        break;
      }
    }
  }
  return contended;
}

function staleWrites(witnessed: readonly Witnessed[]): number {
  const fences = new Map<string, number>();
  let stale = 0;
  for (const { resource, token, accepted } of witnessed) {
    const fence = fences.get(resource) ?? 0;
    if (accepted && token < fence) stale++;
    if (accepted) fences.set(resource, Math.max(fence, token));
  }
  return stale;
}

function latestLossMs(history: History): number {
  const struck = new Struck(history);
  return history.of('lost').reduce((latest, { process, at, until }) => {
    // A stalled process could not report it.
    const stillUntil = Math.max(until, ...struck.stallsOf(process, until, at).map(({ to }) => to));
    return Math.max(latest, at - stillUntil);
  }, 0);
}

function countBy(names: readonly string[], expected: readonly string[] = []): Record<string, number> {
  const counts: Record<string, number> = Object.fromEntries(expected.map((name) => [name, 0]));
  for (const name of names) counts[name] = (counts[name] ?? 0) + 1;
  return counts;
}

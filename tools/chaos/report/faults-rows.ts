import { spreadOf } from '../checkers/progress/gaps.js';
import type { Chapter } from '../run/judge-chapter.js';
import type { FaultTargets } from '../run/faults-part.js';
import { FAULT_RECOVERIES, gapsOf, isLate, type Recovery } from './recoveries.js';
import { atLeast, grouped, none, type Outcome, type Row } from './row.js';

/** Compares the chapters with their targets. */
export function faultsOutcome(chapters: readonly Chapter[], targets: FaultTargets): Outcome {
  return {
    rows: [
      ...amounts(chapters, targets),
      ...verdicts(chapters, targets),
      ...recoveries(chapters, targets, FAULT_RECOVERIES),
      ...fencing(chapters),
      // Only some of the chapters do harm.
      ...(targets.looks === false ? [] : harm(chapters)),
    ],
    complaints: complaints(chapters),
  };
}

/** Everything that broke a rule. */
export function complaints(chapters: readonly Chapter[]): string[] {
  return chapters.flatMap(({ title, seed, verdicts: all }) =>
    all.flatMap(({ rule, violations }) => violations.map(({ what }) => `${title}, seed ${seed}: ${rule}: ${what}`)),
  );
}

export function amounts(chapters: readonly Chapter[], targets: FaultTargets): Row[] {
  const kinds = totals(chapters.map(({ faults }) => faults));
  const [rarest, least] = Object.entries(kinds).sort(([, a], [, b]) => a - b)[0] ?? ['', 0];
  const all = Object.values(kinds).reduce((sum, count) => sum + count, 0);
  const contended = sum(chapters, (chapter) => chapter.contended);
  return [
    atLeast(
      'holds',
      targets.holds,
      sum(chapters, (chapter) => chapter.holds),
      `, ${grouped(contended)} of them contended`,
    ),
    ...(targets.contended > 0 ? [atLeast('contended holds', targets.contended, contended)] : []),
    atLeast(
      'calls that gave up, by their signal or their time, some while the grant was on its way',
      targets.each,
      sum(chapters, ({ refusals }) => (refusals['LOCK_ABORTED'] ?? 0) + (refusals['LOCK_TIMEOUT'] ?? 0)),
    ),
    atLeast('faults', targets.faults, all, ` of ${Object.keys(kinds).length} kinds`),
    atLeast('faults of each kind', targets.each, least, ` (${rarest})`),
  ];
}

/** One row for each rule. A checker that had nothing to look at proves nothing. */
export function verdicts(chapters: readonly Chapter[], { looks = true }: FaultTargets): Row[] {
  const rules = new Set(chapters.flatMap((chapter) => chapter.verdicts.map(({ rule }) => rule)));
  return [...rules].map((rule) => {
    const own = chapters.flatMap((chapter) => chapter.verdicts.filter((verdict) => verdict.rule === rule));
    const looked = sum(own, (verdict) => verdict.looked);
    const row = none(
      `violations: ${rule}`,
      sum(own, ({ violations }) => violations.length),
      ` in ${grouped(looked)} looks`,
    );
    return { ...row, met: row.met && (looked > 0 || !looks) };
  });
}

/** Recovery times. Omits figures without samples. */
export function recoveries(chapters: readonly Chapter[], targets: FaultTargets, all: readonly Recovery[]): Row[] {
  return all.flatMap((recovery) => {
    const { what, target } = recovery;
    const found = chapters.flatMap(({ gaps }) => gapsOf(recovery, gaps));
    if (found.length === 0) return targets.longest ? [{ what, target, seen: 'nothing', met: false }] : [];
    const { count, medianMs, maxMs } = spreadOf(found);
    const late = found.filter((gap) => isLate(recovery, gap)).length;
    const lateness = late === 0 ? '' : `, ${late} later than that`;
    return [
      {
        what,
        target,
        seen: `median ${ms(medianMs)}, longest ${ms(maxMs)} of ${grouped(count)}${lateness}`,
        // A test does not fail because the machine was busy for a moment, though there are few.
        met: targets.longest ? late === 0 : late <= 1 || 2 * late < count,
      },
    ];
  });
}

export function fencing(chapters: readonly Chapter[]): Row[] {
  const refused = sum(chapters, ({ refusedWrites }) => refusedWrites);
  const late = chapters.reduce((most, { latestLossMs }) => Math.max(most, latestLossMs), 0);
  return [
    {
      what: 'a lost lease is told, after its deadline and once the loop runs',
      target: 'no later',
      seen: `at most ${ms(late)} later`,
      met: late <= 250,
    },
    none(
      'stale writes that the witness accepted',
      sum(chapters, ({ staleWrites }) => staleWrites),
      `, ${grouped(refused)} refused`,
    ),
  ];
}

/** Proves that the faults do harm if they can. */
function harm(chapters: readonly Chapter[]): Row[] {
  const shown = sum(chapters, ({ verdicts: all }) => {
    return all.find(({ rule }) => rule === 'exclusion')!.shown?.length ?? 0;
  });
  return [
    atLeast(
      'updates lost without fencing (positive control)',
      1,
      sum(chapters, ({ lostUpdates }) => lostUpdates),
    ),
    atLeast('overlaps shown where data or time were lost', 1, shown),
  ];
}

function ms(time: number): string {
  return `${Math.round(time)} ms`;
}

function sum<T>(items: readonly T[], count: (item: T) => number): number {
  return items.reduce((total, item) => total + count(item), 0);
}

function totals(counts: readonly Readonly<Record<string, number>>[]): Record<string, number> {
  const all: Record<string, number> = {};
  for (const each of counts) for (const [name, count] of Object.entries(each)) all[name] = (all[name] ?? 0) + count;
  return all;
}

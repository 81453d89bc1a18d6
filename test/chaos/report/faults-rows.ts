import { heartbeatMs } from '../checkers/bounds.js';
import { spreadOf } from '../checkers/gaps.js';
import type { Chapter } from '../run/judge-chapter.js';
import type { FaultTargets } from '../run/faults-part.js';
import { atLeast, grouped, none, type Outcome, type Row } from './row.js';

/** What is measured of each recovery, on keys such as `redis: Redis: LOADING`. */
const RECOVERIES = [
  {
    what: 'after a dead holder',
    kinds: /^died: /,
    target: '1.1 leases + 250 ms',
    boundMs: (leaseMs: number): number => 1.1 * leaseMs + 250,
  },
  {
    what: 'after a lost hand-over message',
    kinds: /^message: /,
    target: 'a heartbeat (a third of a lease, and up to a quarter more) + 100 ms',
    boundMs: (leaseMs: number): number => heartbeatMs(leaseMs) + 100,
  },
  {
    what: 'after Redis restarted, or the connections broke',
    kinds: /^redis: Redis: (kill|LOADING|CLIENT KILL)/,
    target: 'a third of a lease + 250 ms',
    boundMs: (leaseMs: number): number => leaseMs / 3 + 250,
  },
  {
    what: 'after Redis stood still, was busy or refused: what was sent before may be executed first',
    kinds: /^redis: Redis: (SIGSTOP|CLIENT PAUSE|BUSY|SCRIPT|out of memory)/,
    target: 'a lease + 250 ms',
    boundMs: (leaseMs: number): number => leaseMs + 250,
  },
] as const;

/** What the chapters came to, beside what they were to come to. */
export function faultsOutcome(chapters: readonly Chapter[], targets: FaultTargets): Outcome {
  return {
    rows: [
      ...amounts(chapters, targets),
      ...verdicts(chapters),
      ...recoveries(chapters, targets),
      ...fencing(chapters),
    ],
    complaints: chapters.flatMap(({ title, seed, verdicts: all }) =>
      all.flatMap(({ rule, violations }) => violations.map(({ what }) => `${title}, seed ${seed}: ${rule}: ${what}`)),
    ),
  };
}

function amounts(chapters: readonly Chapter[], targets: FaultTargets): Row[] {
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
function verdicts(chapters: readonly Chapter[]): Row[] {
  return chapters[0]!.verdicts.map(({ rule }) => {
    const own = chapters.map((chapter) => chapter.verdicts.find((verdict) => verdict.rule === rule)!);
    const looked = sum(own, (verdict) => verdict.looked);
    const row = none(
      `violations: ${rule}`,
      sum(own, ({ violations }) => violations.length),
      ` in ${grouped(looked)} looks`,
    );
    return { ...row, met: row.met && looked > 0 };
  });
}

/** How soon it went on. A figure that nothing was seen of is left out. */
function recoveries(chapters: readonly Chapter[], targets: FaultTargets): Row[] {
  return RECOVERIES.flatMap(({ what, kinds, target, boundMs }) => {
    const found = chapters.flatMap(({ gaps }) =>
      Object.entries(gaps).flatMap(([key, each]) => (kinds.test(key) ? each : [])),
    );
    if (found.length === 0) return targets.longest ? [{ what, target, seen: 'nothing', met: false }] : [];
    const { count, medianMs, maxMs } = spreadOf(found);
    // Leases are of several lengths.
    const late = found.filter((gap) => gap.ms > boundMs(gap.leaseMs)).length;
    const lateness = late === 0 ? '' : `, ${late} later than that`;
    return [
      {
        what,
        target,
        seen: `median ${ms(medianMs)}, longest ${ms(maxMs)} of ${grouped(count)}${lateness}`,
        // A test does not fail because the machine was busy for a moment.
        met: targets.longest ? late === 0 : 2 * late < count,
      },
    ];
  });
}

function fencing(chapters: readonly Chapter[]): Row[] {
  const shown = sum(chapters, ({ verdicts: all }) => {
    return all.find(({ rule }) => rule === 'exclusion')!.shown?.length ?? 0;
  });
  const lost = sum(chapters, ({ lostUpdates }) => lostUpdates);
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
    atLeast('updates lost without fencing (positive control)', 1, lost),
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

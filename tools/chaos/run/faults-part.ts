import { FAULT_RECOVERIES } from '../report/recoveries.js';
import type { Work } from '../world/world.js';
import { type ChapterSettings, play } from './chapter.js';
import type { Chapter } from './judge-chapter.js';
import { inLanes } from './lanes.js';
import { failingOver, forgetful, outdated, refusing, setBack, steady } from './stages.js';

/** The work of the workers: every mode, and every way to give up. */
export const WORK: Omit<Work, 'callers' | 'longHolds'> = {
  ways: {
    exclusive: 10,
    using: 4,
    polled: 2,
    tried: 2,
    hasty: 3,
    aborted: 3,
    reentrant: 5,
    read: 8,
    write: 3,
    permits: 8,
    several: 4,
    impatient: 3,
    mixed: 1,
  },
  resources: 2,
  campaigns: true,
  ticks: true,
};
/** Everything that frees something, and nothing of which it is not known for how long it is held. */
const REFUSED_WORK = {
  callers: 4,
  longHolds: 2,
  ways: { ...WORK.ways, kept: 5, lowered: 5, several: 0, handedOver: 0 },
};
const WORKERS = 4;
const LEASE_MS = 600;
const FAIL_OVER_LEASE_MS = 3_000;
/** Longer than it takes to start Redis, and to connect to it. */
const OUTDATED_LEASE_MS = 1_000;
/** Much longer than Redis refuses: else what was not freed would be free by itself. */
const REFUSED_LEASE_MS = 8_000;
/** Of a hundred faults so many come together with a second one. */
const TOGETHER = 30;
/** So many leases without a fault: with one in each second, few queues are seen whose order is promised. */
const CALM = 8;

export type Form = 'short' | 'long';

/** The targets of a run. */
export interface FaultTargets {
  readonly holds: number;
  readonly contended: number;
  readonly faults: number;
  /** Of each kind. */
  readonly each: number;
  /** `true` limits the longest recovery, and not only most of them. */
  readonly longest: boolean;
  /** `true` if each rule must have had cases; a few short chapters may lack some. @default true */
  readonly looks?: boolean;
}

export const TARGETS: Readonly<Record<Form, FaultTargets>> = {
  short: { holds: 1_500, contended: 0, faults: 45, each: 1, longest: false },
  long: { holds: 200_000, contended: 200_000, faults: 1_000, each: 40, longest: true },
};

interface Scale {
  /** The number of chapters, the runs of each fault in each, and the minimum of grants: a few more than holds. */
  readonly steady: { readonly chapters: number; readonly each: number; readonly holds: number };
  /** Runs of each fault in the chapter that loses data: enough to show a loss. */
  readonly losses: number;
  readonly others: number;
  /** Restarts from an old snapshot, with operators and without. */
  readonly snapshots: number;
  /** Callers of each worker, and the percentage of long holds. Many short holds need the processor and little else. */
  readonly work: Pick<Work, 'callers' | 'longHolds'>;
}

const SCALES: Readonly<Record<Form, Scale>> = {
  short: {
    steady: { chapters: 1, each: 1, holds: 1_500 },
    losses: 3,
    others: 1,
    snapshots: 3,
    work: { callers: 6, longHolds: 5 },
  },
  long: {
    steady: { chapters: 8, each: 5, holds: 40_000 },
    losses: 40,
    others: 40,
    snapshots: 110,
    work: { callers: 16, longHolds: 1 },
  },
};

/** Chapters of all kinds, the long ones first. */
export function chaptersOf(form: Form, seed: number): ChapterSettings[] {
  const { steady: long, losses, others, snapshots, work: amount } = SCALES[form];
  const common = { workers: WORKERS, leaseMs: LEASE_MS, work: { ...WORK, ...amount }, recoveries: FAULT_RECOVERIES };
  // So that there is a lease when it is forgotten: most holds last a few milliseconds.
  const lasting = { ...common.work, longHolds: 20 };
  const chapters = [
    ...Array.from({ length: long.chapters }, (_, index) => ({
      title: `one Redis that keeps its data (${index + 1})`,
      stage: steady,
      plan: { each: long.each, holds: long.holds, together: TOGETHER, calm: CALM },
    })),
    { title: 'one Redis that loses its data', stage: forgetful, plan: { each: losses, together: 0 }, work: lasting },
    ...[false, true].map((operators) => ({
      title: `one Redis that comes back from an old snapshot${operators ? ', with operators' : ''}`,
      stage: () => outdated(OUTDATED_LEASE_MS, { operators }),
      leaseMs: OUTDATED_LEASE_MS,
      plan: { each: snapshots, together: 0 },
      work: lasting,
    })),
    {
      title: 'one Redis that refuses for a second',
      stage: refusing,
      plan: { each: others, together: 0 },
      leaseMs: REFUSED_LEASE_MS,
      // Each call that is refused is followed by another one at once.
      workers: 2,
      work: { ...common.work, ...REFUSED_WORK },
    },
    { title: 'one Redis whose clock goes back', stage: setBack, plan: { each: others, together: 0 }, work: lasting },
    ...[false, true].map((lagging) => ({
      title: `a sentinel, and a replica that ${lagging ? 'lags behind' : 'is current'}`,
      stage: () => failingOver({ lagging }),
      plan: { each: others, together: 0 },
      // Longer than a failover: otherwise every lease would expire before another call could get one.
      leaseMs: FAIL_OVER_LEASE_MS,
      work: lasting,
    })),
  ];
  return chapters.map((chapter, index) => ({ ...common, ...chapter, seed: seed + index }));
}

/** Runs all chapters, a few at a time, and reports each at its end. */
export function playAll(
  chapters: readonly ChapterSettings[],
  lanes: number,
  tell: (chapter: Chapter) => void,
): Promise<Chapter[]> {
  return inLanes(
    lanes,
    chapters.map((settings) => async () => {
      const chapter = await play(settings);
      tell(chapter);
      return chapter;
    }),
  );
}

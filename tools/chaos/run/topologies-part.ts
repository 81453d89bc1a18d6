import { processFaults } from '../faults/process-faults.js';
import { TOPOLOGY_RECOVERIES } from '../report/recoveries.js';
import type { ChapterSettings } from './chapter.js';
import type { Work } from '../world/world.js';
import { type FaultTargets, type Form, WORK } from './faults-part.js';
import { clustered, durable, durableConnections, voting } from './topology-stages.js';

/** Faults on the processes of an application, for all topologies. Their clocks are their own. */
const OF_PROCESSES = processFaults.filter(({ needsClock }) => !needsClock);

/** Longer than a manual failover or a slot migration: leases survive them. */
const CLUSTER_LEASE_MS = 1_500;
/** Longer than a failover: otherwise every lease would expire before another call could get one. */
const DURABLE_LEASE_MS = 3_000;
const QUORUM_LEASE_MS = 1_500;
/** A grant may wait for the replica for less than a third of it. */
const BROKEN_LEASE_MS = 1_800;

interface Scale {
  /** The number of chapters of each topology, and the runs of each fault in each. */
  readonly chapters: number;
  readonly each: number;
  readonly workers: number;
  /** Which faults of processes come as well. */
  readonly ofProcesses: RegExp;
  /** Callers of each worker, and the percentage of long holds: see faults-part.ts. */
  readonly work: Pick<Work, 'callers' | 'longHolds'>;
}

const SCALES: Readonly<Record<Form, Scale>> = {
  short: {
    chapters: 1,
    each: 1,
    workers: 2,
    ofProcesses: /^kill -9 of a holder/,
    work: { callers: 6, longHolds: 10 },
  },
  long: { chapters: 4, each: 5, workers: 3, ofProcesses: /./, work: { callers: 16, longHolds: 2 } },
};

export const TOPOLOGY_TARGETS: Readonly<Record<Form, FaultTargets>> = {
  short: { holds: 300, contended: 0, faults: 20, each: 1, longest: false, looks: false },
  long: { holds: 50_000, contended: 50_000, faults: 300, each: 20, longest: false },
};

/** The same work on several servers. */
export function topologyChaptersOf(form: Form, seed: number): ChapterSettings[] {
  const { chapters, each, workers, ofProcesses, work: amount } = SCALES[form];
  const others = OF_PROCESSES.filter(({ kind }) => ofProcesses.test(kind));
  const work = { ...WORK, ...amount };
  const common = { workers, work, plan: { each, together: 0 }, recoveries: TOPOLOGY_RECOVERIES };
  const kinds = [
    { title: 'a cluster', stage: () => clustered(others), leaseMs: CLUSTER_LEASE_MS },
    {
      title: 'a quorum of five',
      stage: () => voting(others, QUORUM_LEASE_MS),
      leaseMs: QUORUM_LEASE_MS,
      work: { ...work, ways: { ...work.ways, permits: 0 } },
    },
    {
      title: 'durability, and a replica that lags behind',
      stage: () => durable(others),
      leaseMs: DURABLE_LEASE_MS,
      work: { ...work, longHolds: 10 },
    },
    {
      title: 'durability, and connections that break or are refused',
      stage: durableConnections,
      leaseMs: BROKEN_LEASE_MS,
    },
  ];
  return kinds
    .flatMap((kind) =>
      Array.from({ length: chapters }, (_, index) => ({ ...kind, title: `${kind.title} (${index + 1})` })),
    )
    .map((chapter, index) => ({ ...common, ...chapter, seed: seed + index }));
}

import type { KernelParts } from '../../../kernel/lease/kernel-parts.js';
import type { LeaseFactory } from '../../../kernel/lease/lease-factory.js';
import type { OperatorRequest } from '../../../kernel/store/message-health.js';
import { JobRecords } from './job-records.js';
import type { JobStore } from './job-store.js';
import { MissedTicks } from './missed-ticks.js';
import { SingletonRuns } from './singleton-runs.js';

/** The jobs of one lock client, by the stores that remember them. */
export class ClientJobs {
  readonly #records: JobRecords[] = [];
  readonly #missedTicks: MissedTicks[] = [];

  constructor(
    private readonly deps: KernelParts,
    private readonly leases: LeaseFactory,
    private readonly warn: (line: string) => void,
  ) {}

  runs(store: JobStore): SingletonRuns {
    return new SingletonRuns(this.deps, this.leases, store);
  }

  records(store: JobStore): JobRecords {
    const records = new JobRecords(this.deps, store);
    this.#records.push(records);
    return records;
  }

  missedTicks(store: JobStore): MissedTicks {
    const missedTicks = new MissedTicks(this.deps, store, this.warn);
    this.#missedTicks.push(missedTicks);
    return missedTicks;
  }

  /** The names of the jobs whose ticks this process watches. */
  names(): string[] {
    return this.#missedTicks.flatMap(({ names }) => names);
  }

  /** All jobs, with their newest runs. Undefined if nothing remembers them. @throws LockUnavailableError */
  async seen(runs: number): Promise<Awaited<ReturnType<JobRecords['listWithRuns']>> | undefined> {
    const [records] = this.#records;
    if (!records || records.refusal !== undefined) return undefined;
    return records.listWithRuns(new Set(this.names()), runs);
  }

  async overlapOf(resource: string): ReturnType<JobRecords['overlapOf']> {
    return this.#records[0]?.overlapOf(resource);
  }

  asked(request: OperatorRequest): void {
    for (const { requests } of this.#records) requests.asked(request);
  }
}

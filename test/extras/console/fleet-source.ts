import type { FleetOptions, FleetReport } from '../../../lib/features/fleet/core/roll/lock-fleet.js';
import { locksIn, type FleetHolder } from '../../../lib/features/fleet/core/roll/locks-in.js';
import { fleetReport, type Instance } from '../../features/fleet/fleet-reports.js';
import type { SeenJob } from '../../../lib/features/fleet/core/findings/finding.js';
import type { LockHealth } from '../../../lib/features/fleet/core/health/health-checks.js';
import { JobNotFoundError } from '../../../lib/features/jobs/core/job-info.js';
import type { JobRecords } from '../../../lib/features/jobs/core/job-records.js';
import { explainFromOutside } from '../../../lib/features/fleet/core/explain/explainer.js';
import type { Holder } from '../../../lib/kernel/api/holder.js';
import { LEADER_PREFIX } from '../../../lib/kernel/api/resource.js';
import type { LockClient } from '../../../lib/kernel/lock-client.js';
import type { LockState } from '../../../lib/kernel/store/lock-state.js';
import type { ConsoleSource } from '../../../lib/extras/console/answers/source.js';

/** A lock service whose fleet is what a test says. */
export class FleetSource implements ConsoleSource {
  readonly service = 'default';
  readonly leaseMs = 30_000;
  /** The requests so far. */
  readonly asked: (string | undefined)[] = [];
  at = 1_800_000_000_000;
  instances: readonly Instance[];
  unlisted: FleetReport['unlisted'] = [];
  silent: readonly string[] = [];
  /** If not set, the store keeps no records of jobs. */
  seenJobs: readonly SeenJob[] | undefined;
  /** The number of further inboxes whose instances Redis can't name. */
  unnamed = 0;
  /** If set, Redis is out of memory: only the health check answers. */
  failure: (() => Promise<never>) | undefined;

  constructor(instances: readonly Instance[] = []) {
    this.instances = instances;
  }

  ownJobs(): ReadonlySet<string> {
    return new Set();
  }

  get client(): LockClient {
    const unlessDown = <T>(answer: () => T): Promise<T> => this.failure?.() ?? Promise.resolve(answer());
    return {
      report: (options: FleetOptions) => unlessDown(() => this.#report(options)),
      health: () => Promise.resolve(this.failure ? { ...HEALTH, ...OUT_OF_MEMORY } : HEALTH),
      operators: {
        explain: (resource: string) => unlessDown(() => explainFromOutside(this.#stateOf(resource), this.#fleet())),
        list: ({ prefix = '' }) => unlessDown(() => this.#resources(prefix).map((resource) => this.#stateOf(resource))),
        inspect: (resource: string) => unlessDown(() => this.#stateOf(resource)),
      },
    } as unknown as LockClient;
  }

  get jobs(): JobRecords | null {
    const { seenJobs } = this;
    if (!seenJobs) return null;
    const find = async (name: string): Promise<SeenJob> => {
      const seen = seenJobs.find(({ job }) => job.name === name);
      if (seen) return seen;
      throw JobNotFoundError.unknown(name, 'The fleet', []);
    };
    return {
      listWithRuns: async () => seenJobs,
      get: async (name: string) => (await find(name)).job,
      history: async (name: string) => (await find(name)).runs,
    } as unknown as JobRecords;
  }

  #report({ prefix = '' }: FleetOptions): FleetReport {
    this.asked.push(prefix);
    const { instances } = this;
    const held = (each: Instance) => each.held.filter(({ resource }) => resource.startsWith(prefix));
    return { ...this.#fleet(), instances: instances.map((each) => ({ ...each, held: held(each) })) };
  }

  #fleet(): FleetReport {
    const { at: askedAt, instances, silent, unlisted, unnamed } = this;
    const completeness = silent.length + unnamed > 0 ? 'partial' : 'complete';
    const asked = instances.length + silent.length + unnamed;
    return fleetReport({ askedAt, completeness, asked, instances, silent, unlisted });
  }

  #resources(prefix: string): string[] {
    return [...locksIn(this.#fleet()).keys()].filter((resource) => resource.startsWith(prefix)).sort();
  }

  /** The same in Redis, where each instance waits at most once. */
  #stateOf(resource: string): LockState {
    const { holders = [], waits = [] } = locksIn(this.#fleet()).get(resource) ?? {};
    const mode = holders[0]?.mode ?? null;
    const waiting = new Map(waits.map(({ instanceId, mode: wanted }) => [instanceId, wanted]));
    for (const { instanceId, leaderships } of this.instances) {
      const isCandidate = leaderships.some(({ name, isLeader }) => !isLeader && LEADER_PREFIX + name === resource);
      if (isCandidate) waiting.set(instanceId, 'exclusive');
    }
    return {
      resource,
      mode,
      holders: holders.map((seen) => seen.holder ?? this.#holderOf(seen)),
      ttlMs: Math.max(0, ...holders.map(({ leftMs }) => leftMs)),
      waiters: [...waiting].map(([instanceId, wanted]) => ({ instanceId, mode: wanted })),
      ...(mode === 'semaphore' && { permits: { total: 4, available: 4 - holders.length } }),
    };
  }

  #holderOf({ instanceId, life, mode, fencingToken, heldMs, leftMs: ttlMs }: FleetHolder): Holder {
    const leaseMs = life === 'notRenewed' ? heldMs + ttlMs : this.leaseMs;
    return { instanceId, isThisProcess: false, mode, fencingToken, heldMs, ttlMs, leaseMs, depth: 1 };
  }
}

const OUT_OF_MEMORY: Pick<LockHealth, 'status' | 'problems'> = {
  status: 'down',
  problems: [{ code: 'OOM', message: 'Redis is out of memory and rejects writes.' }],
};
const HEALTH: LockHealth = {
  status: 'up',
  topology: 'standalone',
  roundTripMs: 1,
  servers: { total: 1, needed: 1, up: 1 },
  problems: [],
  held: 0,
  waiting: 0,
  oldestWaitMs: 0,
  lastRenewalFailureMs: null,
  leaderships: [],
};

import type { FleetOptions, FleetReport } from '../../../lib/features/fleet/core/roll/lock-fleet.js';
import { fleetReport, type Instance } from '../../features/fleet/fleet-reports.js';
import type { LockHealth } from '../../../lib/features/fleet/core/health/health-checks.js';
import type { JobRecords } from '../../../lib/features/jobs/core/job-records.js';
import { explainState } from '../../../lib/features/fleet/core/explain/explainer.js';
import type { LockClient } from '../../../lib/kernel/lock-client.js';
import type { LockState } from '../../../lib/kernel/store/lock-state.js';
import type { ConsoleSource } from '../../../lib/extras/console/answers/source.js';

/** A lock service whose fleet is what a test says. */
export class FleetSource implements ConsoleSource {
  readonly service = 'default';
  readonly leaseMs = 30_000;
  readonly jobs: JobRecords | null = null;
  /** The requests so far. */
  readonly asked: (string | undefined)[] = [];
  at = 1_800_000_000_000;
  instances: readonly Instance[];
  unlisted: FleetReport['unlisted'] = [];
  silent: readonly string[] = [];
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
    return {
      report: (options: FleetOptions) => this.failure?.() ?? Promise.resolve(this.#report(options)),
      health: () => Promise.resolve(this.failure ? { ...HEALTH, ...OUT_OF_MEMORY } : HEALTH),
      deps: { store: { instanceId: 'the-console' } },
      operators: {
        explain: (resource: string) =>
          this.failure?.() ??
          Promise.resolve(
            explainState(free(resource), {
              instanceId: 'console',
              holds: [],
              waiting: 0,
              longestWaitMs: 0,
              wanted: undefined,
            }),
          ),
        list: () => Promise.resolve([]),
        inspect: (resource: string) => Promise.resolve(free(resource)),
      },
    } as unknown as LockClient;
  }

  #report({ prefix = '' }: FleetOptions): FleetReport {
    this.asked.push(prefix);
    const { instances, silent, unlisted, unnamed } = this;
    return fleetReport({
      askedAt: this.at,
      completeness: silent.length + unnamed > 0 ? 'partial' : 'complete',
      asked: instances.length + silent.length + unnamed,
      instances: instances.map((each) => ({ ...each, held: each.held.filter((it) => it.resource.startsWith(prefix)) })),
      silent,
      subscribed: [...instances.map(({ instanceId }) => instanceId), ...silent],
      unlisted,
    });
  }
}

function free(resource: string): LockState {
  return { resource, mode: null, holders: [], ttlMs: 0, waiters: [] };
}

const OUT_OF_MEMORY: Pick<LockHealth, 'status' | 'problems'> = {
  status: 'down',
  problems: [{ code: 'OOM', message: 'Redis is out of memory, and refuses to write.' }],
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

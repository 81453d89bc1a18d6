import type { FleetOptions, LockFleet } from '../../../lib/features/fleet/core/roll/lock-fleet.js';
import type { LockHealth } from '../../../lib/features/fleet/core/health/health-checks.js';
import type { JobRecords } from '../../../lib/features/jobs/core/job-records.js';
import { explainState } from '../../../lib/features/fleet/core/explain/explainer.js';
import type { LockClient } from '../../../lib/kernel/lock-client.js';
import type { LockState } from '../../../lib/kernel/store/lock-state.js';
import type { ConsoleSource } from '../../../lib/extras/console/answers/source.js';

type Instance = LockFleet['instances'][number];

export function fleetInstance(instanceId: string, has: Partial<Instance> = {}): Instance {
  return {
    instanceId,
    isThisInstance: false,
    host: 'api',
    pid: 1,
    version: '0.1.0',
    uptimeMs: 60_000,
    loopDelayMs: 1,
    blockedMs: 0,
    hearing: true,
    health: 'up',
    held: [],
    waiting: [],
    leaderships: [],
    jobs: [],
    lastMinute: null,
    blockers: [],
    more: { held: 0, waiting: 0, leaderships: 0, jobs: 0 },
    ...has,
  };
}

export function heldLease(resource: string, fencingToken: number, has: Partial<Instance['held'][number]> = {}) {
  return {
    resource,
    mode: 'exclusive' as const,
    fencingToken,
    heldMs: 5_000,
    leftMs: 25_000,
    group: 'Orders.pay',
    isRenewed: true,
    ...has,
  };
}

export function waitingCall(call: number, resource: string, has: Partial<Instance['waiting'][number]> = {}) {
  return { call, resource, mode: 'exclusive' as const, waitedMs: 2_000, group: 'Orders.pay', holds: [], ...has };
}

/** Many instances, each with leases of its own, and a call that waits in every tenth one. */
export function largeFleet(instances: number, locksEach: number): Instance[] {
  return Array.from({ length: instances }, (_, index) =>
    fleetInstance(`api-${String(index).padStart(4, '0')}:4711:ab12`, {
      held: Array.from({ length: locksEach }, (__, lock) => {
        const number = index * locksEach + lock;
        return heldLease(`order:${number}`, 32 * (number + 1), { heldMs: number, group: `Group${number % 30}.work` });
      }),
      waiting: index % 10 === 0 ? [waitingCall(1, `order:${index * locksEach}`, { waitedMs: index })] : [],
    }),
  );
}

/** A lock service whose fleet is what a test says. */
export class FleetSource implements ConsoleSource {
  readonly service = 'default';
  readonly leaseMs = 30_000;
  readonly jobs: JobRecords | null = null;
  /** What was asked. */
  readonly asked: (string | undefined)[] = [];
  at = 1_800_000_000_000;
  instances: readonly Instance[];
  unlisted: LockFleet['unlisted'] = [];
  silent: readonly string[] = [];
  /** How many have an inbox beside them, where Redis does not say who. */
  unnamed = 0;
  /** Set: nothing is answered but this. */
  failure: (() => Promise<never>) | undefined;

  constructor(instances: readonly Instance[] = []) {
    this.instances = instances;
  }

  ownJobs(): ReadonlySet<string> {
    return new Set();
  }

  get client(): LockClient {
    return {
      fleet: (options: FleetOptions) => this.failure?.() ?? Promise.resolve(this.#fleet(options)),
      connected: () =>
        Promise.resolve([...this.instances.map(({ instanceId }) => instanceId), ...this.silent].map((id) => `${id}/1`)),
      health: () => this.failure?.() ?? Promise.resolve(HEALTH),
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

  #fleet({ prefix = '' }: FleetOptions): LockFleet {
    this.asked.push(prefix);
    const { instances, silent, unlisted, unnamed } = this;
    return {
      service: 'default',
      askedAt: this.at,
      completeness: silent.length + unnamed > 0 ? 'partial' : 'complete',
      asked: instances.length + silent.length + unnamed,
      instances: instances.map((each) => ({ ...each, held: each.held.filter((it) => it.resource.startsWith(prefix)) })),
      silent,
      unreadable: 0,
      unlisted,
      deadlocks: [],
    };
  }
}

function free(resource: string): LockState {
  return { resource, mode: null, holders: [], ttlMs: 0, waiters: [] };
}

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

import type { FleetReport } from '../../../lib/features/fleet/core/roll/lock-fleet.js';

export type Instance = FleetReport['instances'][number];

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
    lostLately: 0,
    timeouts: [],
    lockOrders: [],
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
    isLeaked: false,
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

export function fleetReport(has: Partial<FleetReport> = {}): FleetReport {
  const { instances = [], silent = [] } = has;
  return {
    service: 'default',
    askedAt: 1_800_000_000_000,
    completeness: 'complete',
    asked: instances.length + silent.length,
    instances,
    silent,
    subscribed: [...instances.map(({ instanceId }) => instanceId), ...silent],
    unreadable: 0,
    unlisted: [],
    isScanCut: false,
    deadlocks: [],
    ...has,
  };
}

/** A holder that no instance lists. */
export function unlistedHolder(
  resource: string,
  instanceId: string,
  has: Partial<FleetReport['unlisted'][number]> = {},
): FleetReport['unlisted'][number] {
  return {
    resource,
    instanceId,
    isThisProcess: false,
    mode: 'exclusive',
    fencingToken: 64,
    ttlMs: 9_000,
    leaseMs: 30_000,
    heldMs: 60_000,
    depth: 1,
    hasAnswered: false,
    life: 'unknown',
    ...has,
  };
}

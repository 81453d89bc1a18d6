import { findCycle, type NestedWait, deadlockedCalls } from '../deadlocks/cycles.js';
import type { Hold } from '../holding/hold.js';
import type { Runtime } from '../holding/runtime.js';
import { applicationSiteOf } from '../util/call-site.js';
import type { PendingCall } from './pending-call.js';
import type { DeadlockedCall, LockTimeoutError } from '../api/busy-errors.js';
import { entryOf } from '../util/objects.js';

interface OwnWait extends NestedWait {
  readonly call: PendingCall;
}

/**
 * Returns the locks that a timed-out call holds, and the deadlock if that is why: a call that holds its resource waits
 * for it, directly or behind others. Waits in this process are read now; other processes were asked before.
 */
export function heldByCaller(
  resource: string,
  call: PendingCall,
  queues: ReadonlyMap<string, { readonly calls: readonly PendingCall[] }>,
  deps: Runtime,
): LockTimeoutError['heldByCaller'] {
  if (holdsNothing(call)) return undefined;
  const waits = new Map<PendingCall, OwnWait>();
  const waitOf = (each: PendingCall, wanted: string): OwnWait =>
    entryOf(waits, each, () => ({ ...nestedWaitOf(wanted, each, deps), call: each }));
  const cycle = findCycle(waitOf(call, resource), (wanted) =>
    (queues.get(wanted)?.calls ?? []).filter((each) => !holdsNothing(each)).map((each) => waitOf(each, wanted)),
  );
  // The time of the others may be over in the same moment, when this call does not wait any more.
  for (const [index, wait] of cycle.entries()) wait.call.deadlock = deadlockedCalls(cycle, index);
  const { deadlock } = call;
  // The parts of one call are taken in the same order everywhere, so locks from outside of the call matter first.
  const holds = deadlock === undefined ? outerHolds(call) : liveHolds(call);
  const resources = namesOf(holds).filter((held) => held !== resource);
  if (resources.length === 0) return undefined;
  return deadlock ? { resources, deadlock } : { resources };
}

/** Asks the other processes, once, before the wait of a call that holds locks ends. */
export function watchForDeadlock(resource: string, call: PendingCall, deps: Runtime): void {
  if (call.alarm !== undefined || holdsNothing(call) || !deps.deadlocks || call.options.waitMs === Infinity) return;
  call.alarm = deps.deadlocks.watch({
    startedAt: call.startedAt,
    get giveUpAt() {
      return call.giveUpAt;
    },
    set deadlock(cycle: readonly DeadlockedCall[]) {
      call.deadlock ??= cycle;
    },
    nestedWait: () => nestedWaitOf(resource, call, deps),
  });
}

function nestedWaitOf(resource: string, call: PendingCall, { store, observers }: Runtime): NestedWait {
  const { mode, group } = call.options;
  return {
    instanceId: store.instanceId,
    isThisProcess: true,
    group: observers.groups.of(resource, group),
    resource,
    mode,
    holds: liveHolds(call).map((hold) => ({ resource: hold.owner.resource, mode: hold.mode })),
    callSite: applicationSiteOf(call.nested?.origin),
  };
}

/**
 * Returns the held locks, the innermost first: the parts of a call for several resources, and the locks that its caller
 * held before.
 */
export function liveHolds(call: Pick<PendingCall, 'nested' | 'several'>): readonly Hold[] {
  const parts = call.several?.leases.map(({ hold }) => hold).reverse() ?? [];
  return [...parts.filter((hold) => hold.checkHeld()), ...outerHolds(call)];
}

function outerHolds({ nested }: Pick<PendingCall, 'nested'>): readonly Hold[] {
  return nested?.holds.filter((hold) => hold.checkHeld()) ?? [];
}

function holdsNothing({ nested, several }: Pick<PendingCall, 'nested' | 'several'>): boolean {
  return nested === undefined && (several === undefined || several.leases.length === 0);
}

function namesOf(holds: readonly Hold[]): string[] {
  return [...new Set(holds.map(({ owner }) => owner.resource))];
}

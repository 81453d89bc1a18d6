import type { HeldMeanwhile } from '../api/errors.js';
import type { Hold } from '../holding/hold.js';
import type { PendingCall } from './pending-call.js';

/** How many calls are looked at. Where so many wait for each other, a deadlock is one of many troubles. */
const MOST = 100;

/** The queue of a resource in this process. */
interface Queue {
  readonly calls: readonly PendingCall[];
}

/**
 * What a call holds that has waited in vain, and whether that is why: a call of this process waits for it, directly or
 * behind others, and holds what this call waits for.
 */
export function heldMeanwhile(
  resource: string,
  call: PendingCall,
  queues: ReadonlyMap<string, Queue>,
): HeldMeanwhile | undefined {
  const resources = namesOf(liveHolds(call)).filter((held) => held !== resource);
  if (resources.length === 0) return undefined;
  const found = findCycle(resource, locksOf(call), call, queues);
  // Their own time may be over in the same moment, when this call does not wait any more.
  for (const other of found) other.isInDeadlock = true;
  return { resources, isDeadlock: found.length > 0 || call.isInDeadlock === true };
}

/** @returns the calls that wait in a circle with this one; none where there is no circle */
function findCycle(
  resource: string,
  held: readonly string[],
  call: PendingCall,
  queues: ReadonlyMap<string, Queue>,
): PendingCall[] {
  /** Calls that wait for what this call holds, each with those that wait in between. */
  const paths = held.map((wanted) => ({ wanted, path: [] as PendingCall[] }));
  const seen = new Set(held);
  let looked = 0;
  for (const { wanted, path } of paths) {
    for (const other of queues.get(wanted)?.calls ?? []) {
      if (other === call || other.outer === undefined) continue;
      if (++looked > MOST) return [];
      const holds = locksOf(other);
      if (holds.includes(resource)) return [...path, other];
      for (const next of holds) {
        if (seen.has(next)) continue;
        seen.add(next);
        paths.push({ wanted: next, path: [...path, other] });
      }
    }
  }
  return [];
}

function liveHolds({ outer = [] }: PendingCall): readonly Hold[] {
  return outer.filter((hold) => hold.checkHeld());
}

/** Without semaphores: another holder may give its permits back. */
function locksOf(call: PendingCall): string[] {
  return namesOf(liveHolds(call).filter(({ mode }) => mode !== 'semaphore'));
}

function namesOf(holds: readonly Hold[]): string[] {
  return [...new Set(holds.map(({ owner }) => owner.resource))];
}

import { type Holder, renewedMsAgo } from '../../kernel/api/holder.js';
import { fencingTickOf } from '../../kernel/store/fencing-token.js';
import type { LockState } from '../../kernel/store/lock-state.js';
import { longDuration } from '../../kernel/util/durations.js';
import { plainOrQuoted } from '../../kernel/util/quoted.js';
import { workOf } from './roll.js';
import { lifeOf } from '../../features/fleet/core/roll/life.js';
import type { FleetReport, InstanceLife } from '../../features/fleet/core/roll/lock-fleet.js';

/** A renewal that is due, and may be on its way. */
export const SLACK_MS = 300;
const MAX_NAMED = 3;
/** The times of a look are whole milliseconds. */
const ROUNDED_MS = 5;

/** The conclusions from two looks, and from the answers of the processes, about the first holders. */
export function conclusionsOf(first: LockState, second: LockState, roll: FleetReport | undefined): string[] {
  return second.holders.slice(0, MAX_NAMED).map((holder) => {
    return `${plainOrQuoted(holder.instanceId)}: ${conclusionOn(holder, first, second.resource, roll)}`;
  });
}

/** The conclusion about one holder. @param first the earlier look */
export function conclusionOn(
  holder: Holder,
  first: LockState,
  resource: string,
  roll: FleetReport | undefined,
): string {
  const { instanceId, fencingToken } = holder;
  const before = first.holders.find((each) => fencingTickOf(each.fencingToken) === fencingTickOf(fencingToken));
  const life = roll && lifeOf(holder, roll);
  const work = roll && workIn(roll, instanceId, resource);
  return `${conclusionOf(before, holder, life)}${work ? ` Its work: ${work}.` : ''}`;
}

function conclusionOf(before: Holder | undefined, holder: Holder, life: InstanceLife | undefined): string {
  const left = longDuration(holder.ttlMs);
  if (holder.isKept) return `it has released the lock, which minHoldMs keeps for another ${left}.`;
  if (!before) return 'its lease was granted between two checks: the holder is alive.';
  const betweenMs = holder.heldMs - before.heldMs;
  if (holder.ttlMs > before.ttlMs - betweenMs + ROUNDED_MS)
    return 'its lease was renewed between two checks: the holder is alive.';
  const agoMs = renewedMsAgo(holder);
  const isOverdue = agoMs > holder.leaseMs / 2;
  if (life === 'alive') {
    return isOverdue
      ? `its process answers, but has not renewed this lease for ${longDuration(agoMs)}. The lock is free in ${left}.`
      : `its process answers: the holder is alive. The lease has ${left} left.`;
  }
  if (life === 'silent') {
    return `its process is connected, but does not answer: it is frozen, too busy, cut off from messages, or runs an older version of nestjs-redis-lock. The lock is free in ${left} unless the lease is renewed.`;
  }
  if (life === 'dead')
    return `it has no subscription, and has missed two renewals: the holder is dead. The lock is free in ${left}.`;
  const dueMs = holder.leaseMs / 3 - agoMs;
  const next =
    dueMs > -SLACK_MS
      ? `the next renewal is due in ${longDuration(Math.max(0, dueMs))}`
      : `a renewal is ${longDuration(-dueMs)} late, unless the lease is fixed`;
  return `it is unclear whether the holder is alive: ${next}. The lock is free in ${left}.`;
}

function workIn({ instances }: FleetReport, instanceId: string, resource: string): string | undefined {
  const instance = instances.find((each) => each.instanceId === instanceId);
  const lease = instance?.held.find((each) => each.resource === resource);
  return lease && workOf(lease);
}

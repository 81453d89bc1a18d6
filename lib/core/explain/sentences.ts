import { LEADER_PREFIX } from '../api/resource.js';
import { describeLabel, OTHER_GROUP } from '../api/label.js';
import type { LockState, LockWaiter } from '../store/lock-state.js';
import { formatDuration } from '../util/durations.js';
import { keepPeriodMs } from '../places/place.js';
import { count } from '../util/plurals.js';
import { plainOrQuoted, quote } from '../util/quoted.js';
import type { LockCause } from './explanation.js';
import type { OwnPart } from './own-part.js';
import { overdueKeepMs, type SeenLease, type SilentWaiters } from './seen-lease.js';
import { isSlow, type Wanted } from './likely-cause.js';

/** How many holders and waiters are named. */
const NAMED = 3;

/** Which processes hold it, and how its lease is renewed. */
export function describeHolding(state: LockState, leases: readonly SeenLease[]): string[] {
  const name = quote(state.resource);
  const { mode, permits, waiters } = state;
  if (mode === null) {
    return [waiters.length === 0 ? `${name} is free: no process holds it, and none waits for it.` : `${name} is free.`];
  }
  const named = leases.slice(0, NAMED);
  const left = leases.length - named.length;
  const shared =
    mode === 'semaphore'
      ? `${name} is a semaphore with ${count(permits!.total, 'permit')}, of which ${permits!.available} ${permits!.available === 1 ? 'is' : 'are'} free.`
      : mode === 'read' && leases.length > 1
        ? `${name} has ${leases.length} readers.`
        : undefined;
  const lines = named.flatMap((lease) => describeLease(shared === undefined ? name : 'It', state, lease));
  if (shared !== undefined) lines.unshift(shared);
  if (left > 0) lines.push(`${count(left, 'more holder')} ${left === 1 ? 'is' : 'are'} not named here.`);
  return lines;
}

function describeLease(name: string, { mode }: LockState, lease: SeenLease): string[] {
  const { holder, own } = lease;
  const { fencingToken, permits, depth } = holder;
  const heldMs = own?.heldMs ?? holder.heldMs;
  const who = nameOf(lease);
  const held = heldMs === undefined ? '' : ` for ${formatDuration(heldMs)}`;
  if (holder.isKept) {
    return [
      `${name} was released by ${who}, but stays taken for another ${formatDuration(holder.ttlMs)}: its minHoldMs is not over.`,
    ];
  }
  const how = [`mode ${mode}`, `token ${fencingToken}`];
  if (permits !== undefined) how.splice(1, 0, count(permits, 'permit'));
  if (depth > 1) how.push(`entered ${depth} times`);
  return [`${name} is held by ${who}${held} (${how.join(', ')}).`, describeRenewals(lease)];
}

function nameOf({ holder, own, isThisProcess }: SeenLease): string {
  if (own) return `${own.isOfThisCall ? 'this call' : 'a call of this process'}${describeGroup(own.group)}`;
  if (isThisProcess) return 'this process';
  const name = plainOrQuoted(holder.instanceId);
  return name + (holder.isHandedOn ? ' (handed on inside that process)' : describeLabel(holder.label));
}

function describeRenewals({ holder, own, length, renewedMsAgo, status, isThisProcess, between }: SeenLease): string {
  const left = `the lease has ${formatDuration(holder.ttlMs)} left`;
  if (status === 'fixed') return `Its lease is a fixed one, which is never renewed: ${left}.`;
  if (length === undefined || renewedMsAgo === undefined) {
    if (status === 'renewing') return `It was renewed between the two looks: ${left}.`;
    if (status === 'overdue') {
      return `It was not renewed between the two looks, ${formatDuration(between!.leastMs)} apart: ${left}, which is less.`;
    }
    return `At the moment ${left}. This process does not know how long it is in all.`;
  }
  const assumed = length.isGuess ? `If its lease is ${formatDuration(length.leaseMs)}, as here, it` : 'It';
  const dueMs = length.leaseMs / 3;
  if (status === 'new') {
    const nextMs = Math.max(0, dueMs - renewedMsAgo);
    return nextMs > 0
      ? `${assumed} is renewed for the first time in ${formatDuration(nextMs)}: ${left}.`
      : `${assumed} should be renewed for the first time about now: ${left}.`;
  }
  const ago = `was last renewed ${formatDuration(renewedMsAgo)} ago`;
  if (status === 'renewing') {
    return `${assumed} ${ago}, ${between?.what === 'renewed' ? 'between the two looks' : 'in time'}: ${left}.`;
  }
  const what = (holder.heldMs ?? Infinity) - renewedMsAgo < 100 ? `was never renewed` : ago;
  const process = own || isThisProcess ? 'this process' : 'its process';
  return `${assumed} ${what}, though ${process} should renew it every ${formatDuration(dueMs)}: ${left}.`;
}

/** Which processes wait, and for how long. */
export function describeWaiting(state: LockState, own: OwnPart, silent: SilentWaiters | undefined): string[] {
  const { waiters, mode } = state;
  const lines: string[] = [];
  if (waiters.length > 0) {
    const named = waiters.slice(0, NAMED).map((waiter) => nameWaiter(waiter, own));
    const left = waiters.length - named.length;
    const queue = `${count(waiters.length, 'waiter')} ${waiters.length === 1 ? 'is' : 'are'} in its queue`;
    const more = left > 0 ? `, and ${left} more` : '';
    lines.push(`${queue}${waiters.length > 1 ? ', first' : ':'} ${named.join(', ')}${more}.`);
    if (silent) lines.push(describeSilence(silent, waiters.length));
  }
  if (own.waiting > 0) {
    const calls = own.waiting === 1 ? 'One call' : `${own.waiting} calls`;
    const since = own.waiting === 1 ? 'for' : 'the first of them for';
    lines.push(
      `${calls} of this process ${own.waiting === 1 ? 'waits' : 'wait'} for it, ${since} ${formatDuration(own.longestWaitMs)}.`,
    );
  } else if (waiters.some(({ instanceId }) => instanceId !== own.instanceId)) {
    lines.push('Only the other processes know how long their calls have waited.');
  } else if (waiters.length === 0 && mode !== null) {
    lines.push('No call waits for it.');
  }
  return lines;
}

/** Without its lease, what is left of a place says nothing. So where the lease is a guess, the sentence says "if". */
function describeSilence(
  { count: silent, keptMsAgo, length: { leaseMs, isGuess } }: SilentWaiters,
  all: number,
): string {
  const ago = formatDuration(keptMsAgo);
  const sentence =
    all === 1
      ? `It has not kept its place for ${ago}.`
      : silent === all
        ? `None of them has kept its place for ${ago}.`
        : silent === 1
          ? `One of them has not kept its place for ${ago}.`
          : `${silent} of them have not kept their places for ${ago} or longer.`;
  const assumed = `If ${all === 1 ? 'it asks' : 'they ask'} for a lease of ${formatDuration(leaseMs)}, as here, `;
  const rhythm = `A living waiter does so every ${formatDuration(keepPeriodMs(leaseMs))}, or more often.`;
  return `${isGuess ? assumed + sentence[0]!.toLowerCase() + sentence.slice(1) : sentence} ${rhythm}`;
}

function nameWaiter({ instanceId, mode, permits }: LockWaiter, own: OwnPart): string {
  const name = instanceId === own.instanceId ? 'this process' : plainOrQuoted(instanceId);
  return `${name} (${permits === undefined ? `mode ${mode}` : count(permits, 'permit')})`;
}

/** Why, and what to do. */
export function describeCause(
  cause: LockCause,
  state: LockState,
  leases: readonly SeenLease[],
  wanted: Wanted,
): string[] {
  const { resource, ttlMs, waiters } = state;
  const endMs = Math.max(ttlMs, ...waiters.map(({ placeMs = 0 }) => placeMs));
  switch (cause) {
    case 'free':
      return [];
    case 'inUse':
      if (state.mode === null)
        return [
          'A living waiter takes it: mostly at once, and where the key of the lock was deleted, when it next keeps its place. ' +
            `Nothing is wrong unless it is still free in ${formatDuration(overdueKeepMs(Infinity))}: ` +
            'then the waiters have died, or cannot reach Redis.',
        ];
      return [describeHealth(leases)];
    case 'holderSlow':
      return [
        `${describeSlow(leases)}: ` +
          'it does long work under the lock, or waits for something else. ' +
          'Look at that process, lock less of its work, or set maxHoldMs. ' +
          'forceRelease() ends the lease, but not the work.',
      ];
    case 'unclear':
      return [
        `${leases.some(({ between }) => between) ? 'Look again with a longer lookAgainMs' : 'Pass lookAgainMs, and explain() looks twice'}, ` +
          'or pass the leaseMs that its calls ask for. If what is left of the lease goes up, ' +
          'the holder is alive and slow. If it only falls, the holder has died, or the lease is a fixed one.',
      ];
    case 'holderDead':
      return [
        `The holder has most likely died, stands still, or cannot reach Redis. ` +
          `The lock is free in ${formatDuration(ttlMs)} unless it renews its lease. ` +
          `Look again: if what is left goes up, the holder lives${leases.some(({ length }) => length?.isGuess) ? ', or its lease is another one than assumed here' : ''}. ` +
          `If it is a fixed lease (watchdog: false), this is as it should be.`,
      ];
    case 'fixedLease':
      return [`The lease ends by itself in ${formatDuration(ttlMs)}, or earlier if its holder releases it.`];
    case 'leadership':
      return [
        `${quote(resource.slice(LEADER_PREFIX.length))} is a leadership: its holder leads for as long as it lives, and the waiters are ` +
          `the other candidates. ${describeHealth(leases)}`,
      ];
    case 'deadWaiters':
      return [
        'The processes in the queue have most likely died, or cannot reach Redis. ' +
          'Until its place ends, each of them may be granted the lock before a living waiter. ' +
          `The last place ends in ${formatDuration(endMs)} unless it is kept. ` +
          'Look again: if placeMs of a waiter goes up, it lives. ' +
          'If none does, nothing has to be done; forceRelease() shortens each of these leases.',
      ];
    case 'kept':
      return ['That is what minHoldMs is for. Only forceRelease() ends it earlier.'];
    case 'mismatch':
      return [describeMismatch(state, wanted)];
    case 'transaction':
      return [
        'Its work has ended, and a database transaction of this process keeps the lock until its commit or rollback. ' +
          'Look for what delays that. See docs/guide/with-transactions.md.',
      ];
    case 'heldByThisCall':
      return [
        `The call that asks holds it itself. A second lock of the same resource would wait for itself, ` +
          `so it is refused with LockReentryError, unless both have the mode reentrant.`,
      ];
    case 'heldByThisProcess': {
      const group = leases.find(({ own }) => own)?.own?.group;
      return [
        `The holder is another call of this process${describeGroup(group)}, and calls of this process wait for it. ` +
          'If its work waits for one of them, for example because it calls acquire() for the same resource again, none of them goes on: ' +
          'use using() or a decorator with the mode reentrant.',
      ];
    }
  }
}

/** A holder that holds its lease may have died since. Only this process, and a renewal between two looks, shows that it lives. */
function isKnownAlive({ isThisProcess, between }: SeenLease): boolean {
  return isThisProcess || between?.what === 'renewed';
}

function describeHealth(leases: readonly SeenLease[]): string {
  const unknown = leases.find((lease) => !isKnownAlive(lease));
  if (!unknown) return 'Nothing is wrong.';
  const { between, length } = unknown;
  const who = leases.length === 1 ? 'its holder is' : 'all of its holders are';
  const third = length
    ? `of more than ${formatDuration(length.leaseMs / 3)}, a third of that lease`
    : 'of more than a third of its lease';
  const how = !between
    ? `one look cannot tell. Pass a lookAgainMs ${third}, and explain() looks twice.`
    : `${leases.length === 1 ? 'its lease' : 'the lease of one'} was ${between.what === 'granted' ? 'granted' : 'not renewed'} ` +
      `between the two looks. Look again with a lookAgainMs ${third}.`;
  return `Whether ${who} alive is not known yet: ${how}`;
}

function describeSlow(leases: readonly SeenLease[]): string {
  const slow = leases.filter(isSlow);
  if (slow.some(isKnownAlive)) return 'The holder is alive and slow';
  const renewing = slow.find(({ status }) => status === 'renewing');
  if (!renewing) return 'Whether the holder is alive shows when its first renewal is due. If so, it is slow';
  const shows = `a ${renewing.between ? 'longer ' : ''}lookAgainMs shows whether it still is`;
  return `The holder was alive when it last renewed its lease, and ${shows}. If so, it is slow`;
}

function describeGroup(group: string | undefined): string {
  return group === undefined || group === OTHER_GROUP ? '' : ` (${plainOrQuoted(group)})`;
}

function describeMismatch({ mode, permits, waiters }: LockState, wanted: Wanted): string {
  if (mode !== 'semaphore') {
    return `It is in use as a lock (mode ${mode}), and a call that takes it for a semaphore is refused. Give one of the two another name.`;
  }
  if (wanted.mode !== undefined) {
    return `It is in use as a semaphore, and a call that takes it for a lock (mode ${wanted.mode}) is refused. Give one of the two another name.`;
  }
  const most = Math.max(wanted.permits ?? 0, ...waiters.map((waiter) => waiter.permits ?? 0));
  return (
    `A call that asks for ${count(most, 'permit')} at once can never be granted: there are ${permits!.total} in all. ` +
    'Ask for fewer, or resize the semaphore.'
  );
}

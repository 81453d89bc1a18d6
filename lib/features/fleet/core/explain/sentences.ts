import { describeRemark, namedGroup } from '../../../../kernel/api/holder.js';
import { LEADER_PREFIX } from '../../../../kernel/api/resource.js';
import type { LockState, LockWaiter } from '../../../../kernel/store/lock-state.js';
import { formatDuration } from '../../../../kernel/util/durations.js';
import { count } from '../../../../kernel/util/plurals.js';
import { commandLine, plainOrQuoted, quote } from '../../../../kernel/util/quoted.js';
import type { JobOverlap, LockCause, OwnPart } from './explanation.js';
import {
  type ExplainedHolder,
  isHeldHereOnly,
  isKnownAlive,
  isSlow,
  overdueInMs,
  overdueKeepMs,
  renewalLateMs,
  type SilentWaiters,
  type WantedAccess,
} from './likely-cause.js';
import { type DeadlockedCall, describeDeadlock } from '../../../../kernel/api/busy-errors.js';

/** The number of holders and waiters in a sentence. */
const NAMED = 3;

/** Which processes hold it, and how its lease is renewed. */
export function describeHolding(state: LockState, holders: readonly ExplainedHolder[]): string[] {
  const name = quote(state.resource);
  const { mode, permits, waiters } = state;
  if (mode === null) {
    return [waiters.length === 0 ? `${name} is free: no process holds it, and none waits for it.` : `${name} is free.`];
  }
  const named = holders.slice(0, NAMED);
  const left = holders.length - named.length;
  const shared =
    mode === 'semaphore'
      ? `${name} is a semaphore with ${count(permits!.total, 'permit')}, of which ${permits!.available} ${permits!.available === 1 ? 'is' : 'are'} free.`
      : mode === 'read' && holders.length > 1
        ? `${name} has ${holders.length} readers.`
        : undefined;
  const lines = named.flatMap((holder) => describeHolder(shared === undefined ? name : 'It', state, holder));
  if (shared !== undefined) lines.unshift(shared);
  if (left > 0) lines.push(`${count(left, 'more holder')} ${left === 1 ? 'is' : 'are'} not named here.`);
  return lines;
}

function describeHolder(name: string, { mode }: LockState, holder: ExplainedHolder): string[] {
  const { fencingToken, permits, depth, own } = holder;
  const who = nameOf(holder);
  if (holder.isKept) {
    return [`${name} was released by ${who}, but is kept for another ${formatDuration(holder.ttlMs)} (minHoldMs).`];
  }
  const held = formatDuration(own?.heldMs ?? holder.heldMs);
  const how = [`mode ${mode}`, `token ${fencingToken}`];
  if (permits !== undefined) how.splice(1, 0, count(permits, 'permit'));
  if (depth > 1) how.push(`entered ${depth} times`);
  return [`${name} has been held by ${who} for ${held} (${how.join(', ')}).`, describeRenewals(holder)];
}

function nameOf(holder: ExplainedHolder): string {
  const { own } = holder;
  if (own) return `${own.isOfThisCall ? 'this call' : 'a call of this process'}${describeGroup(own.group)}`;
  if (holder.isThisProcess) return 'this process';
  return plainOrQuoted(holder.instanceId) + (holder.isKept ? '' : describeRemark(holder));
}

function describeRenewals(holder: ExplainedHolder): string {
  const { leaseMs, ttlMs, renewedMsAgo, isFirst, status, isThisProcess } = holder;
  const left = `the lease has ${formatDuration(ttlMs)} left`;
  if (status === 'fixed') return `Its lease is fixed and never renewed: ${left}.`;
  const dueMs = leaseMs / 3;
  const ago = `was last renewed ${formatDuration(renewedMsAgo)} ago`;
  if (status === 'overdue') {
    const process = isThisProcess ? 'this process' : 'its process';
    return `It ${isFirst ? 'was never renewed' : ago}, though ${process} should renew it every ${formatDuration(dueMs)}: ${left}.`;
  }
  if (!isFirst) return renewalLateMs(holder) > 0 ? `It ${ago}: ${left}.` : `It ${ago}, in time: ${left}.`;
  const nextMs = Math.max(0, dueMs - renewedMsAgo);
  return nextMs > 0
    ? `Its first renewal is due in ${formatDuration(nextMs)}: ${left}.`
    : `Its first renewal is due now: ${left}.`;
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
    const since = own.waiting === 1 ? 'has been waiting for it for' : 'are waiting for it, the first of them for';
    lines.push(`${calls} of this process ${since} ${formatDuration(own.longestWaitMs)}.`);
  } else if (own.waitsElsewhereMs && own.waitsElsewhereMs.length > 0) {
    const { length, [0]: oldestMs } = own.waitsElsewhereMs.toSorted((a, b) => b - a);
    lines.push(
      `In all, ${count(length, 'call')} ${length === 1 ? 'waits' : 'wait'}: the oldest has waited for ${formatDuration(oldestMs!)}.`,
    );
  } else if (waiters.some(({ instanceId }) => instanceId !== own.instanceId)) {
    lines.push('Only the other processes know how long their calls have waited.');
  } else if (waiters.length === 0 && mode !== null) {
    lines.push(isHeldHereOnly(state) ? 'No call waits for it.' : 'No other process waits for it.');
  }
  return lines;
}

function describeSilence({ count: silent, keptMsAgo, periodMs }: SilentWaiters, all: number): string {
  const ago = formatDuration(keptMsAgo);
  const sentence =
    all === 1
      ? `It has not renewed its place in the queue for ${ago}.`
      : silent === all
        ? `None of them has renewed its place for ${ago}.`
        : silent === 1
          ? `One of them has not renewed its place in the queue for ${ago}.`
          : `${silent} of them have not renewed their places in the queue for ${ago} or longer.`;
  return `${sentence} A live waiter does so at least every ${formatDuration(periodMs)}.`;
}

function nameWaiter({ instanceId, mode, permits }: LockWaiter, own: OwnPart): string {
  const name = instanceId === own.instanceId ? 'this process' : plainOrQuoted(instanceId);
  return `${name} (${permits === undefined ? `mode ${mode}` : count(permits, 'permit')})`;
}

/** Which calls wait for each other, and what to do. */
export function describeCycle(deadlock: readonly DeadlockedCall[]): string[] {
  const [{ isThisProcess, instanceId, holds }] = deadlock as readonly [DeadlockedCall];
  const first = isThisProcess ? 'A call of this process' : quote(instanceId);
  return [
    `Calls wait for each other, which is a deadlock: ${describeDeadlock(deadlock, first)}.`,
    'The deadlock ends when the waitMs of one of the calls runs out. If all wait forever (waitMs: Infinity), end one lease, by ' +
      `forceRelease() or ${commandLine('release', holds)}. To prevent it, take all of them in one call, or in one order ` +
      'everywhere. See docs/guide/several-resources.md#what-can-still-deadlock.',
  ];
}

/** Why, and what to do. */
export function describeCause(
  cause: LockCause,
  state: LockState,
  holders: readonly ExplainedHolder[],
  wanted: WantedAccess,
): string[] {
  const { resource, ttlMs, waiters } = state;
  // The leases alone suggest that nothing is wrong until a renewal is overdue, and then only guess.
  const isKnown = holders.some(({ life }) => life === 'silent' || life === 'dead');
  if (isKnown && (cause === 'inUse' || cause === 'holderDead')) return [];
  const endMs = Math.max(ttlMs, ...waiters.map(({ placeMs = 0 }) => placeMs));
  switch (cause) {
    case 'free':
    case 'deadlock':
    case 'overlap':
      return [];
    case 'inUse':
      if (state.mode === null)
        return [
          'A live waiter usually takes the lock at once. If the key of the lock was deleted, it does so when it next renews its place. ' +
            `If the lock is still free in ${formatDuration(overdueKeepMs(Infinity))}, the waiters have died, or cannot reach Redis.`,
        ];
      return [describeHealth(holders)];
    case 'holderSlow':
      return [
        `${describeSlow(holders)}: ` +
          `it does long work under the lock, or waits for something else. ${describeDoubt(holders, ttlMs)}` +
          'Look at that process, do less under the lock, or set maxHoldMs. ' +
          'Ending the lease (forceRelease(), or release on the command line) does not end the work.',
      ];
    case 'holderDead':
      return [
        'The holder has most likely died, is blocked, or cannot reach Redis. ' +
          `The lock will be free in ${formatDuration(ttlMs)} unless the holder renews its lease. ` +
          'Check again: if the time left goes up, the holder is alive. ' +
          'If it is a fixed lease (watchdog: false), this is normal.',
      ];
    case 'fixedLease':
      return [`The lease ends by itself in ${formatDuration(ttlMs)}, or earlier if its holder releases it.`];
    case 'leadership':
      return [
        `${quote(resource.slice(LEADER_PREFIX.length))} is a leadership: its holder leads for as long as it lives, and the waiters are ` +
          `the other candidates. ${describeHealth(holders)}`,
      ];
    case 'deadWaiters':
      return [
        'The processes in the queue have most likely died, or cannot reach Redis. ' +
          'Until the place of a dead waiter ends, Redis may grant it the lock before a live waiter. ' +
          `The last place ends in ${formatDuration(endMs)} unless it is renewed. ` +
          'Check again: if placeMs of a waiter goes up, that waiter is alive. ' +
          'If none goes up, wait for the places to end. Or, each time a dead waiter gets a lease, end that lease by forceRelease() or release.',
      ];
    case 'kept':
      return ['Only forceRelease(), or release on the command line, frees the resource before minHoldMs has ended.'];
    case 'mismatch':
      return [describeMismatch(state, wanted)];
    case 'transaction':
      return [
        'The work of the holder has ended, but a database transaction of this process keeps the lock until its commit or rollback. ' +
          'Look for what delays the transaction. See docs/guide/with-transactions.md.',
      ];
    case 'heldByThisCall':
      return [
        `The caller of explain() holds this lock itself. Locking it again would deadlock, so that throws a LockReentryError, ` +
          `unless both calls use mode: 'reentrant'.`,
      ];
    case 'heldByThisProcess': {
      const group = holders.find(({ own }) => own)?.own?.group;
      return [
        `The holder is another call of this process${describeGroup(group)}, and calls of this process wait for it. ` +
          'If its work waits for one of them, for example because it calls acquire() for the same resource again, none of them can continue: ' +
          "use using() or a decorator with mode: 'reentrant'.",
      ];
    }
  }
}

/** Which run keeps the ticks of its job from running, and what to do. */
export function describeOverlap({ ranMs, lastAt }: JobOverlap, holders: readonly ExplainedHolder[]): string[] {
  const others = holders.filter((each) => !isKnownAlive(each));
  const inMs = Math.max(...others.map(overdueInMs));
  return [
    `This run of the job has lasted ${formatDuration(ranMs)}. Later ticks were skipped, or wait for its end: the last one ` +
      `was due at ${new Date(lastAt).toISOString()}. If the run should have ended, look for a promise that never settles ` +
      'in its process, and set maxHoldMs.',
    ...(others.length > 0
      ? [`If its process has died since it last renewed the lease, that shows in ${formatDuration(inMs)}.`]
      : []),
  ];
}

/** A holder that has renewed its lease in time may have died since, unless its process has answered. */
function describeHealth(holders: readonly ExplainedHolder[]): string {
  const others = holders.filter((each) => !isKnownAlive(each));
  if (others.length === 0) return 'Nothing is wrong.';
  const inMs = Math.max(...others.map(overdueInMs));
  return `Nothing is wrong: if a holder has died since it last renewed its lease, that shows in ${formatDuration(inMs)}.`;
}

function describeSlow(holders: readonly ExplainedHolder[]): string {
  const slow = holders.filter(isSlow);
  if (slow.some(isKnownAlive)) return 'The holder is alive and slow';
  const renewed = slow.filter(({ isFirst }) => !isFirst);
  if (renewed.length === 0) return 'It is not known yet whether the holder is alive. If it is, it is slow';
  const latest = renewed.reduce((a, b) => (b.renewedMsAgo < a.renewedMsAgo ? b : a));
  const ago = formatDuration(latest.renewedMsAgo);
  const lateMs = renewalLateMs(latest);
  if (lateMs <= 0) return `The holder was alive ${ago} ago. If it still is, it is slow`;
  return (
    `The holder was alive ${ago} ago, and should have renewed its lease ${formatDuration(lateMs)} ago: ` +
    'it may have died, or be blocked. If it is alive, its work is slow'
  );
}

/** A renewed lease only proves that its holder was alive then. */
function describeDoubt(holders: readonly ExplainedHolder[], ttlMs: number): string {
  const slow = holders.filter(isSlow);
  if (slow.some(isKnownAlive)) return '';
  const inMs = Math.max(...slow.map(overdueInMs));
  return `If it has died, that shows in ${formatDuration(inMs)}, and the lock is free in ${formatDuration(ttlMs)}. `;
}

function describeGroup(group: string | undefined): string {
  const name = namedGroup(group);
  return name === undefined ? '' : ` (${plainOrQuoted(name)})`;
}

function describeMismatch({ mode, permits, waiters }: LockState, wanted: WantedAccess): string {
  if (mode !== 'semaphore') {
    return `It is in use as a lock (mode ${mode}), and a call that uses it as a semaphore is refused. Give one of the two another name.`;
  }
  if (wanted.mode !== undefined) {
    return `It is in use as a semaphore, and a call that uses it as a lock (mode ${wanted.mode}) is refused. Give one of the two another name.`;
  }
  const most = Math.max(wanted.permits ?? 0, ...waiters.map((waiter) => waiter.permits ?? 0));
  return (
    `A call that asks for ${count(most, 'permit')} at once can never be granted: there are ${permits!.total} in all. ` +
    'Ask for fewer, or resize the semaphore.'
  );
}

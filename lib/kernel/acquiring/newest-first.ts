import { LockAbortedError } from '../api/errors.js';
import { type NewestFirst, notNewestFirst, SEVERAL_HOLDERS } from '../api/lock-options.js';
import { Hold } from '../holding/hold.js';
import type { Runtime } from '../holding/runtime.js';
import type { StoreLease } from '../holding/store-lease.js';
import { type CallAge, type LockOwner, type LockStore, SUPERSEDES, YIELDS } from '../store/lock-store.js';
import type { PendingCall } from './pending-call.js';

/** Marks the owner id, so that the store knows that only the newest call counts. */
export function marked(owner: LockOwner, { cancels, yields }: NewestFirst): LockOwner {
  return { ...owner, id: owner.id + (yields ? YIELDS : '') + (cancels ? SUPERSEDES : '') };
}

/** Longer than any command of an older call can take that could still cancel a newer call. */
const MAX_COMPARED_MS = 60_000;

/** Returns the age of a call that cancels older ones. The time that its command takes to the store is unknown. */
export function ageOf({ startedAt, options }: PendingCall, sentAt: number): CallAge {
  const ageMs = Math.max(0, Math.floor(sentAt - startedAt));
  return { ageMs, ttlMs: Math.max(1, Math.min(Math.ceil(options.waitMs), MAX_COMPARED_MS) - ageMs) };
}

/** Returns the reason why a call cannot end older calls, or be ended by a newer one; `undefined` if it can. */
export function refusalOfNewest({ options, several }: PendingCall, { noSuperseding }: LockStore): Error | undefined {
  const why = several === undefined ? noSuperseding : SEVERAL_HOLDERS;
  return why === undefined ? undefined : notNewestFirst(options.newest!, why);
}

export function askToStop(
  resource: string,
  storeLease: StoreLease | undefined,
  by: string,
  { observers, store }: Pick<Runtime, 'observers' | 'store'>,
): void {
  for (const hold of storeLease?.holders ?? []) {
    if (!(hold instanceof Hold) || !hold.options.newest?.yields) continue;
    if (!hold.askToStop(LockAbortedError.superseded(resource, by, true))) continue;
    if (!observers.wants('superseded')) continue;
    observers.emit({ type: 'superseded', ...observers.describe(hold), holder: store.instanceId, by });
  }
}

/** Returns the time at which the local holder was asked to stop, if it was. */
export function askedToStopAt(storeLease: StoreLease | undefined): number | undefined {
  const holder = storeLease?.holders[0];
  return holder instanceof Hold ? holder.stopped?.at : undefined;
}

import type { LockMode } from '../core/api/lock-options.js';
import type { WatchReply } from '../core/store/watch-store.js';
import type {
  AcquireReply,
  LockState,
  LockWaiter,
  LockOwner,
  Queueing,
  RotateReply,
} from '../core/store/lock-store.js';

/** A request as the scripts expect it: the mode, and for a semaphore the permits. */
export function requestOf({ mode, permits }: LockOwner): string {
  if (!permits) return mode;
  return `${mode}:${permits.count}:${permits.total}:${permits.isResized ? 1 : 0}`;
}

/** Rounded down: a stamp may be too early, never too late. */
export function stamp({ sentAt }: Queueing): number {
  return Math.floor(sentAt);
}

/** A fencing token, or why there is none and when the holder's lease ends. */
type ScriptReply =
  | number
  | [Exclude<AcquireReply['status'], 'granted' | 'mismatch'>, ttlMs: number, isOpen?: number]
  | ['mismatch', ttlMs: number, mode: LockMode, total: number];

export function readAcquireReply(reply: unknown): AcquireReply {
  const answer = reply as ScriptReply;
  if (typeof answer === 'number') return { status: 'granted', fencingToken: answer };
  if (answer[0] === 'busy' && answer.length > 2) return { status: 'busy', ttlMs: answer[1], isOpen: true };
  if (answer[0] !== 'mismatch') return { status: answer[0], ttlMs: answer[1] };
  const [status, ttlMs, mode, total] = answer;
  return { status, ttlMs, found: { mode, total } };
}

export function readRotateReply(reply: unknown): RotateReply {
  const [released, next] = reply as [number, unknown];
  return { released: released === 1, next: readAcquireReply(next) };
}

/** The reply of watch.lua: what is left of the holder's lease, or -1. */
export function readWatchReply(reply: unknown): WatchReply {
  const ttlMs = reply as number;
  return { isFree: ttlMs === -1, ttlMs: Math.max(0, ttlMs) };
}

/** Whether a script that passes locks on has done what it was asked to do. */
export function isDone(reply: unknown): boolean {
  return reply === 1 || reply === 3;
}

/** Whether such a script has stopped at its bound and left more to grant. */
export function hasMore(reply: unknown): boolean {
  return reply === 2 || reply === 3;
}

/** The reply of inspect.lua. */
export type InspectReply = [
  mode: LockMode | '',
  ttlMs: number,
  total: number,
  holders: (string | number)[],
  waiters: (string | number)[],
];

export function readState(resource: string, reply: InspectReply): LockState {
  const [mode, ttlMs, total, holderFields, waiterFields] = reply;
  const isSemaphore = mode === 'semaphore';
  const holders = records(holderFields, 5).map(([instanceId, token, ttl, depth, permits]) => ({
    instanceId: instanceId as string,
    fencingToken: Number(token),
    ttlMs: ttl as number,
    depth: depth as number,
    ...(isSemaphore && { permits: permits as number }),
  }));
  holders.sort((a, b) => a.fencingToken - b.fencingToken);
  const used = holders.reduce((sum, { permits = 0 }) => sum + permits, 0);
  const waiters = records(waiterFields, 3).map(([instanceId, waiterMode, permits]): LockWaiter => {
    const waiter = { instanceId: instanceId as string, mode: waiterMode as LockMode };
    return waiter.mode === 'semaphore' ? { ...waiter, permits: permits as number } : waiter;
  });
  return {
    resource,
    mode: mode || null,
    holders,
    ttlMs,
    ...(isSemaphore && { permits: { total, available: Math.max(0, total - used) } }),
    waiters,
  };
}

function records<T>(fields: readonly T[], length: number): T[][] {
  return Array.from({ length: fields.length / length }, (_, index) =>
    fields.slice(index * length, (index + 1) * length),
  );
}

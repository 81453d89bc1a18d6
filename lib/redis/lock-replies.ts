import { readLabel } from '../core/api/label.js';
import { LOCK_MODES, type LockMode } from '../core/api/lock-options.js';
import { MAX_SEEN_HOLDERS, type SeenHolder, type SeenHolders } from '../core/api/seen-holders.js';
import { mintedAt } from '../core/store/fencing-token.js';
import { instanceOf } from '../core/store/owner-id.js';
import type { WatchReply } from '../core/store/watch-store.js';
import type {
  AcquireReply,
  KeepReply,
  LockOwner,
  QueuedPlace,
  Queueing,
  RotateReply,
  SeveralReply,
} from '../core/store/lock-store.js';
import type { LockState, LockWaiter } from '../core/store/lock-state.js';
import { toStoreError } from './script/failures.js';

/** A request as the scripts expect it: the mode, and for a semaphore the permits. */
export function requestOf({ mode, permits }: LockOwner): string {
  if (!permits) return mode;
  return `${mode}:${permits.count}:${permits.total}:${permits.isResized ? 1 : 0}`;
}

/** Rounded down: a stamp may be too early, never too late. */
export function stamp({ sentAt }: Pick<Queueing, 'sentAt'>): number {
  return Math.floor(sentAt);
}

/** A place in the queue. */
type PlaceReply = [ttlMs: number, holders: string, place: number, soonestMs: number];

/** A fencing token, or why there is none, when the holder's lease ends, and the holders. */
type ScriptReply =
  | number
  | ['busy', ttlMs: number, holders: string, isOpen?: number]
  | ['queued', ...PlaceReply]
  | ['full', ttlMs: number, holders: string]
  | ['mismatch', ttlMs: number, mode: LockMode, total: number];

/** @param clientId the client that has asked */
export function readAcquireReply(reply: unknown, clientId: string): AcquireReply {
  const answer = reply as ScriptReply;
  if (typeof answer === 'number') return { status: 'granted', fencingToken: answer };
  if (answer[0] === 'mismatch') {
    const [status, ttlMs, mode, total] = answer;
    return { status, ttlMs, found: { mode, total } };
  }
  if (answer[0] === 'queued') {
    const [status, ...place] = answer;
    return new PlaceAnswer(status, place, clientId);
  }
  const [status, ttlMs, text, more] = answer;
  const seen = readHolders(text, clientId);
  if (!seen) return more ? { status: 'busy', ttlMs, isOpen: true } : { status, ttlMs };
  return more ? { status: 'busy', ttlMs, seen, isOpen: true } : { status, ttlMs, seen };
}

/** Reads the text of the holders only for the callers that ask for them: most places are kept unseen. */
class PlaceAnswer<Status extends string> implements QueuedPlace {
  readonly ttlMs: number;
  readonly place: number;
  readonly soonestMs: number;
  readonly #text: string;
  readonly #clientId: string;

  constructor(
    readonly status: Status,
    [ttlMs, text, place, soonestMs]: PlaceReply,
    clientId: string,
  ) {
    this.ttlMs = ttlMs;
    this.place = place;
    this.soonestMs = soonestMs;
    this.#text = text;
    this.#clientId = clientId;
  }

  get seen(): SeenHolders | undefined {
    return readHolders(this.#text, this.#clientId);
  }
}

/** @param clientId the client whose places they are */
export function readKeepReplies(reply: unknown, clientId: string): KeepReply[] {
  return (reply as (PlaceReply | 0 | string)[]).map((answer) => {
    if (answer === 0) return { status: 'ask' };
    if (typeof answer === 'string') return toStoreError({ name: 'ReplyError', message: answer });
    return new PlaceAnswer('kept', answer, clientId);
  });
}

/** @param clientId the client that has asked */
export function readSeveralReply(reply: unknown, clientId: string): SeveralReply {
  const [first, ...laterTokens] = reply as [unknown, ...number[]];
  if (typeof first !== 'number') return { first: readAcquireReply(reply, clientId), laterTokens: [] };
  return { first: { status: 'granted', fencingToken: first }, laterTokens };
}

export function readRotateReply(reply: unknown, clientId: string): RotateReply {
  const [released, next] = reply as [number, unknown];
  return { released: released === 1, next: readAcquireReply(next, clientId) };
}

/** Reads what seen-holders.lua writes. Another program may have written the lock, so nothing is trusted. */
function readHolders(text: string, clientId: string): SeenHolders | undefined {
  const [head, ...lines] = text.split('\n');
  const [, mode, count, now] = /^(\w{1,9}) (\d{1,15}) (\d{13})$/.exec(head!) ?? [];
  if (!isLockMode(mode)) return undefined;
  const list = lines.flatMap((line) => readHolder(line, mode, Number(now), clientId));
  if (list.length === 0) return undefined;
  list.sort((a, b) => a.fencingToken - b.fencingToken);
  // Where there are not more than were named, those whose lease is over do not count.
  return { list: list.slice(0, MAX_SEEN_HOLDERS), count: Number(count) > lines.length ? Number(count) : list.length };
}

/** @returns nothing for a line that is wrong, or for a lease that is over */
function readHolder(line: string, mode: LockMode, now: number, clientId: string): SeenHolder[] {
  const labelAt = line.indexOf(' {');
  const lease = labelAt === -1 ? line : line.slice(0, labelAt);
  const [, client, ...numbers] = /^(\S{1,200}) (\d{1,7}) (\d{1,16}) (\d{13,16})$/.exec(lease) ?? [];
  if (client === undefined) return [];
  const [permits, fencingToken, end] = numbers.map(Number) as [number, number, number];
  if (end <= now || fencingToken === 0 || !Number.isSafeInteger(fencingToken)) return [];
  const heldMs = Math.max(0, Math.ceil(now - mintedAt(fencingToken)));
  const instanceId = instanceOf(`${client}/`);
  const isThisProcess = client === clientId;
  const unlabelled = { instanceId, isThisProcess, mode, fencingToken, ttlMs: end - now, heldMs };
  const holder = labelAt === -1 ? unlabelled : { ...unlabelled, ...readLabel(line.slice(labelAt + 1)) };
  return [mode === 'semaphore' ? { ...holder, permits } : holder];
}

function isLockMode(text: string | undefined): text is LockMode {
  return LOCK_MODES.includes(text as LockMode);
}

/** @param clientId the client that has asked */
export function readWatchReply(reply: unknown, clientId: string): WatchReply {
  if (reply === -1) return { isFree: true, ttlMs: 0 };
  const [ttlMs, text] = reply as [ttlMs: number, holders: string];
  const seen = readHolders(text, clientId);
  return seen ? { isFree: false, ttlMs, seen } : { isFree: false, ttlMs };
}

/** Whether a script has done what it was asked to do, or has found what it was asked for. */
export function isOne(reply: unknown): boolean {
  return reply === 1;
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
  now: number,
];

export function readState(resource: string, reply: InspectReply): LockState {
  const [mode, ttlMs, total, holderFields, waiterFields, now] = reply;
  const isSemaphore = mode === 'semaphore';
  const holders = records(holderFields, 7).map(([instanceId, token, ttl, depth, permits, label, kept]) => ({
    instanceId: instanceId as string,
    fencingToken: Number(token),
    ttlMs: ttl as number,
    depth: depth as number,
    ...(isSemaphore && { permits: permits as number }),
    heldMs: Math.max(0, Math.ceil(now - mintedAt(Number(token)))),
    ...(kept === 1 && { isKept: true as const }),
    ...readLabel(label as string),
  }));
  holders.sort((a, b) => a.fencingToken - b.fencingToken);
  const used = holders.reduce((sum, { permits = 0 }) => sum + permits, 0);
  const waiters = records(waiterFields, 5).map(([instanceId, waiterMode, permits, text, left]): LockWaiter => {
    const placeMs = left as number;
    const { label } = readLabel(text as string);
    const waiter = { instanceId: instanceId as string, mode: waiterMode as LockMode, ...(label && { label }), placeMs };
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

import { type Holder, type Holders, MAX_NAMED_HOLDERS, NO_HOLDERS, readLabel } from '../kernel/api/holder.js';
import { LOCK_MODES, type LockMode } from '../kernel/api/lock-options.js';
import { mintedAt } from '../kernel/store/fencing-token.js';
import { instanceOf } from '../kernel/store/ask.js';
import type { LockStoreError } from '../kernel/store/store-error.js';
import type { WatchReply } from '../kernel/store/watch-store.js';
import type {
  AcquireReply,
  KeepReply,
  LockOwner,
  QueuedPlace,
  Queueing,
  RotateReply,
} from '../kernel/store/lock-store.js';
import type { LockState, LockWaiter } from '../kernel/store/lock-state.js';
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

type PlaceReply = [ttlMs: number, holders: string, place: number, soonestMs: number, told?: number];

/** A fencing token, or why there is none, when the holder's lease ends, and the holders. */
type ScriptReply =
  | number
  | ['busy', ttlMs: number, holders: string, inconclusive?: number]
  | ['queued', ...PlaceReply]
  | ['full', ttlMs: number, holders: string, newer?: string]
  | ['mismatch', ttlMs: number, mode: LockMode, total: number];

/** @param clientId the id of this client, by which it finds itself among the holders */
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
  if (answer[0] === 'full' && answer[3] !== undefined) return { status: 'full', ttlMs: answer[1], newer: answer[3] };
  const [status, ttlMs, text, more] = answer;
  const seen = readSeen(text, clientId);
  if (!seen) return more ? { status: 'busy', ttlMs, inconclusive: true } : { status, ttlMs };
  return more ? { status: 'busy', ttlMs, seen, inconclusive: true } : { status, ttlMs, seen };
}

/** Reads the text of the holders only for the callers that ask for them: most places are kept unseen. */
class PlaceAnswer<Status extends string> implements QueuedPlace {
  readonly ttlMs: number;
  readonly place: number;
  readonly soonestMs: number;
  declare readonly told?: number;
  readonly #text: string;
  readonly #clientId: string;

  constructor(
    readonly status: Status,
    [ttlMs, text, place, soonestMs, told]: PlaceReply,
    clientId: string,
  ) {
    if (told) this.told = told;
    this.ttlMs = ttlMs;
    this.place = place;
    this.soonestMs = soonestMs;
    this.#text = text;
    this.#clientId = clientId;
  }

  get seen(): Holders | undefined {
    return readSeen(this.#text, this.#clientId);
  }
}

export function readKeepReplies(reply: unknown, clientId: string): KeepReply[] {
  return (reply as (PlaceReply | 0 | string)[]).map((answer) => {
    if (answer === 0) return { status: 'ask' };
    if (typeof answer === 'string') return ownError(answer);
    return new PlaceAnswer('kept', answer, clientId);
  });
}

/** Returns `false` for a lease that its owner does not have any more. */
export function readRenewReplies(reply: unknown): (boolean | LockStoreError)[] {
  return (reply as (number | string)[]).map((answer) =>
    typeof answer === 'string' ? ownError(answer) : isOne(answer),
  );
}

/** The error of one entry of several. */
function ownError(message: string): LockStoreError {
  return toStoreError({ name: 'ReplyError', message });
}

export function readRotateReply(reply: unknown, clientId: string): RotateReply {
  const [released, next] = reply as [number, unknown];
  return { released: released === 1, next: readAcquireReply(next, clientId) };
}

/** Reads what seen-holders.lua writes. Another program may have written the lock, so nothing is trusted. */
function readHolders(text: string, clientId: string): Holders {
  const [head, ...lines] = text.split('\n');
  const [, mode, count, now] = HEAD.exec(head!) ?? [];
  if (!isLockMode(mode)) return NO_HOLDERS;
  const holders = lines.flatMap((line) => readHolder(line, mode, Number(now), clientId));
  holders.sort((a, b) => a.fencingToken - b.fencingToken);
  // If all holders were named, expired ones do not count.
  return { holders, holderCount: Number(count) > lines.length ? Number(count) : holders.length };
}

const HEAD = /^(\w{1,9}) (\d{1,15}) (\d{13})$/;

function readSeen(text: string, clientId: string): Holders | undefined {
  const { holders, holderCount } = readHolders(text, clientId);
  return holders.length === 0 ? undefined : { holders: holders.slice(0, MAX_NAMED_HOLDERS), holderCount };
}

/** @returns nothing for an invalid line, or for a lease that has ended */
function readHolder(line: string, mode: LockMode, now: number, clientId: string): Holder[] {
  const labelAt = line.indexOf(' {');
  const lease = labelAt === -1 ? line : line.slice(0, labelAt);
  const [, client, ...numbers] = /^(\S{1,200}) (\d{1,7}) (\d{1,16}) (\d{13,16}) (\d{1,16})$/.exec(lease) ?? [];
  if (client === undefined) return [];
  const [share, fencingToken, end, leaseMs] = numbers.map(Number) as [number, number, number, number];
  if (end <= now || fencingToken === 0 || !Number.isSafeInteger(fencingToken)) return [];
  const holder = {
    instanceId: instanceOf(`${client}/`),
    isThisProcess: client === clientId,
    mode,
    fencingToken,
    ttlMs: end - now,
    leaseMs,
    heldMs: Math.max(0, Math.ceil(now - mintedAt(fencingToken))),
    depth: mode === 'reentrant' || mode === 'write' ? share : 1,
    ...(mode === 'semaphore' && { permits: share }),
    ...(leaseMs === 0 && { isKept: true as const }),
  };
  return [labelAt === -1 ? holder : { ...holder, ...readLabel(line.slice(labelAt + 1)) }];
}

function isLockMode(text: string | undefined): text is LockMode {
  return LOCK_MODES.includes(text as LockMode);
}

export function readWatchReply(reply: unknown, clientId: string): WatchReply {
  if (reply === -1) return { isFree: true, ttlMs: 0 };
  const [ttlMs, text] = reply as [ttlMs: number, holders: string];
  const seen = readSeen(text, clientId);
  return seen ? { isFree: false, ttlMs, seen } : { isFree: false, ttlMs };
}

/** Returns true if a script has done or found what it was asked for. */
export function isOne(reply: unknown): boolean {
  return reply === 1;
}

/** Returns true if a script that passes locks on has succeeded. */
export function isDone(reply: unknown): boolean {
  return reply === 1 || reply === 3;
}

/** Returns true if such a script has stopped at its bound and left more to grant. */
export function hasMore(reply: unknown): boolean {
  return reply === 2 || reply === 3;
}

export type InspectReply = [ttlMs: number, total: number, holders: string, waiters: string];

export function readState(resource: string, reply: InspectReply, clientId: string): LockState {
  const [ttlMs, total, text, waiters] = reply;
  const [, inUse = '', now] = /^(\w*) \d+ (\d+)\n/.exec(text) ?? [];
  // Whatever another program calls its mode, no call gets the resource.
  const mode = inUse === '' ? null : isLockMode(inUse) ? inUse : 'exclusive';
  const { holders } = readHolders(text, clientId);
  const used = holders.reduce((sum, { permits = 0 }) => sum + permits, 0);
  return {
    resource,
    mode,
    holders,
    ttlMs,
    ...(mode === 'semaphore' && { permits: { total, available: Math.max(0, total - used) } }),
    waiters: waiters.split('\n').flatMap((line) => readWaiter(line, Number(now))),
  };
}

/** @returns nothing for a line that is wrong */
function readWaiter(line: string, now: number): LockWaiter[] {
  const [, client, request, expiry, leaseMs, label] =
    /^(\S{1,200}) \d+ (\S+) (\d{13,16}) \d+ (\d{1,16})(?: (\{.*))?$/s.exec(line) ?? [];
  const [mode, permits] = request?.split(':') ?? [];
  if (!isLockMode(mode)) return [];
  const waiter = {
    instanceId: instanceOf(`${client}/`),
    mode,
    ...(mode === 'semaphore' && { permits: Number(permits) }),
    placeMs: Number(expiry) - now,
    leaseMs: Number(leaseMs),
  };
  const said = readLabel(label);
  return [said.label ? { ...waiter, label: said.label } : waiter];
}

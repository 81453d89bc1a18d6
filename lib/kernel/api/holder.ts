import { plainOrQuoted, quote } from '../util/quoted.js';
import type { LockMode } from './lock-mode.js';
import { formatDuration } from '../util/durations.js';

/** A holder of a resource, as last reported by Redis. Never contains a secret. */
export interface Holder {
  /** The process that holds it: host, process id and a few random characters, unless `instanceId` was set. */
  readonly instanceId: string;
  /** `true` if the holder is another call in this process. */
  readonly isThisProcess: boolean;
  readonly mode: LockMode;
  /**
   * The fencing token of its lease. If its process has passed the lock on among its own calls, the current token may be
   * larger, by up to 63.
   */
  readonly fencingToken: number;
  /** Milliseconds until its lease ends unless it is renewed, by Redis's clock. */
  readonly ttlMs: number;
  /** The length of its lease in milliseconds: it was last renewed `leaseMs - ttlMs` ago. 0 if `isKept` is set. */
  readonly leaseMs: number;
  /** Milliseconds since Redis granted the resource to that process. */
  readonly heldMs: number;
  /** The number of times that a reentrant holder or a writer has entered the lock; otherwise 1. */
  readonly depth: number;
  /** The number of semaphore permits that the holder has; `undefined` in other modes. */
  readonly permits?: number;
  /** The holder's own description (option `label`). Any client of your Redis can write it. */
  readonly label?: LockLabel;
  /** `true` if that process has passed the lease on to another of its calls, whose label is not known yet. */
  readonly isHandedOn?: true;
  /** Set if the resource was released but is kept until `minHoldMs` has passed. */
  readonly isKept?: true;
}

/** The holders that block a call. */
export interface Holders {
  /** At most eight of them. */
  readonly holders: readonly Holder[];
  /** The number of holders; 0 if unknown. */
  readonly holderCount: number;
}

/** The number of holders that a reply names. More would only make replies long. */
export const MAX_NAMED_HOLDERS = 8;
/** The number of processes that a message names. */
const NAMED = 2;

/** An answer that names no holder. */
export const NO_HOLDERS: Holders = { holders: [], holderCount: 0 };

/** Returns the milliseconds since the lease of a holder was last renewed or granted. */
export function renewedMsAgo({ leaseMs, ttlMs }: Pick<Holder, 'leaseMs' | 'ttlMs'>): number {
  return Math.max(0, leaseMs - ttlMs);
}

/** Returns an older snapshot, updated to the current time. */
export function aged(seen: Holders, ageMs: number): Holders {
  if (ageMs <= 0 || seen.holders.length === 0) return seen;
  const holders = seen.holders.map((holder) => ({
    ...holder,
    ttlMs: Math.max(0, Math.round(holder.ttlMs - ageMs)),
    heldMs: Math.round(holder.heldMs + ageMs),
  }));
  return { ...seen, holders };
}

/** Returns the remark that follows a holder's name in a message. */
export function describeRemark({ isKept, isHandedOn, label }: Holder): string {
  if (isKept) return ' (released; its minHoldMs has not ended)';
  return isHandedOn ? ' (passed on inside that process)' : describeLabel(label);
}

/**
 * For a message: `api-3:4711 (Orders.pay)`, `another call of this process`, or `3 holders: a (2) and b`. Needs at least
 * one.
 */
export function nameHolders({ holders, holderCount }: Holders): string {
  if (holderCount <= 1) {
    const [holder] = holders as [Holder];
    const name = holder.isThisProcess ? 'another call of this process' : plainOrQuoted(holder.instanceId);
    return name + describeRemark(holder);
  }
  const byName = new Map<string, number>();
  for (const holder of holders) {
    const name = holder.isThisProcess ? 'this process' : plainOrQuoted(holder.instanceId);
    byName.set(name, (byName.get(name) ?? 0) + 1);
  }
  const named = [...byName].slice(0, NAMED);
  const names = named.map(([name, times]) => (times === 1 ? name : `${name} (${times})`));
  const left = holderCount - named.reduce((sum, [, times]) => sum + times, 0);
  if (left > 0) names.push(`${left} more`);
  const joined = names.length > 1 ? `${names.slice(0, -1).join(', ')} and ${names.at(-1)}` : names[0]!;
  return `${holderCount} ${holders[0]!.mode === 'read' ? 'readers' : 'holders'}: ${joined}`;
}

/** The same with the time it has been held, if that is one value: `api-3:4711 for 42 s`. */
export function describeHolders(seen: Holders): string {
  return seen.holderCount > 1
    ? nameHolders(seen)
    : `${nameHolders(seen)} for ${formatDuration(seen.holders[0]!.heldMs)}`;
}

/** The verb and the holders: `has been held by api-3:4711 for 42 s`, or `is held by 2 readers: a and b`. */
export function heldBy(seen: Holders): string {
  return `${seen.holderCount > 1 ? 'is' : 'has been'} held by ${describeHolders(seen)}`;
}

/** A value of a label: plain JSON. */
export type LabelValue =
  | string
  | number
  | boolean
  | null
  | readonly LabelValue[]
  | { readonly [name: string]: LabelValue };

/**
 * A call's description of itself for other processes, while it holds a lock or waits for it. It is stored in Redis as
 * plain JSON of at most 256 bytes, so put no secrets into it.
 */
export interface LockLabel {
  /** The kind of work, such as `Orders.pay`. */
  readonly group?: string;
  /** The call site that acquired the lock. */
  readonly site?: string;
  /** The W3C trace context of the call, if a telemetry records traces. */
  readonly traceparent?: string;
  /** Any other field that helps you, such as a request id. */
  readonly [name: string]: LabelValue | undefined;
}

/** The maximum size of a label's JSON. */
export const LABEL_BYTES = 256;

/** The text in place of a label after the process has handed the lease on in memory without naming the next holder. */
export const HANDED_ON = '{}';

/** The group of everything without a separate group. It is a value for metrics, and never appears in a sentence. */
export const OTHER_GROUP = '_other';

/** Returns the group if it names something. */
export function namedGroup(group: string | undefined): string | undefined {
  return group === OTHER_GROUP ? undefined : group;
}

/** Limits on the values of a label in a message: their number, and the length of each. */
const NAMED_VALUES = 4;
const NAMED_LENGTH = 48;
/** A text that needs no quotes in a message. */
const PLAIN = /^[\w.:@#/-]{1,48}$/;
const TRACEPARENT = /^[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}/;

/** A label as Redis has it, and whether the process has handed the lease on since. */
export interface StoredLabel {
  readonly label?: LockLabel;
  /** Set if the process has passed the lock on to another call, which Redis cannot name. */
  readonly isHandedOn?: true;
}

const NONE: StoredLabel = {};
const OF_ANOTHER_CALL: StoredLabel = { isHandedOn: true };

/** Reads a label from Redis. Another program may have written it, so anything invalid counts as none. */
export function readLabel(text: string | undefined): StoredLabel {
  // Most have none.
  if (text === undefined || text === '') return NONE;
  if (text === HANDED_ON) return OF_ANOTHER_CALL;
  const label = decodeLabel(text);
  return label ? { label } : NONE;
}

/** @returns nothing for a text that no version of `encodeLabel` returns */
function decodeLabel(text: string): LockLabel | undefined {
  if (text.length > LABEL_BYTES || Buffer.byteLength(text) > LABEL_BYTES) return undefined;
  try {
    const label: unknown = JSON.parse(text, (name, value: unknown) => (name === '__proto__' ? undefined : value));
    if (!isPlainObject(label)) return undefined;
    for (const name of ['group', 'site', 'traceparent'] as const) {
      if (label[name] !== undefined && typeof label[name] !== 'string') delete label[name];
    }
    return label as LockLabel;
  } catch {
    return undefined;
  }
}

/**
 * Returns the label of a traced call. The caller's own part stays: if space is short, the group is left out, and then
 * the trace.
 */
export function labelWithTrace(given: string | undefined, group: string, traceparent: string): string | undefined {
  const label = given === undefined ? {} : (JSON.parse(given) as LockLabel);
  for (const traced of [
    { group, ...label, traceparent },
    { ...label, traceparent },
  ]) {
    const text = JSON.stringify(traced);
    if (Buffer.byteLength(text) <= LABEL_BYTES) return text;
  }
  const { traceparent: _, ...rest } = label;
  const text = JSON.stringify(rest);
  return text === HANDED_ON ? undefined : text;
}

/** The label of a call that carries its group. What the caller has given stays; without room, the group is left out. */
export function labelWithGroup(given: string | undefined, group: string): string | undefined {
  const text = JSON.stringify({ group, ...(given !== undefined && (JSON.parse(given) as LockLabel)) });
  return Buffer.byteLength(text) <= LABEL_BYTES ? text : given;
}

/** For a message: ` (Orders.pay, request 7f3a)`; an empty text for no label. */
export function describeLabel(label: LockLabel | undefined): string {
  if (!label) return '';
  const { group, site, traceparent, ...others } = label;
  const named: string[] = [];
  const work = namedGroup(group) ?? site;
  if (work !== undefined) named.push(plain(work));
  for (const [name, value] of Object.entries(others)) {
    if (typeof value === 'object' && value !== null) continue;
    if (named.length < NAMED_VALUES) named.push(`${plain(name)} ${plain(String(value))}`);
  }
  const [, trace] = TRACEPARENT.exec(traceparent ?? '') ?? [];
  if (trace !== undefined) named.push(`trace ${trace}`);
  return named.length > 0 ? ` (${named.join(', ')})` : '';
}

function plain(text: string): string {
  return PLAIN.test(text) ? text : quote(text, NAMED_LENGTH);
}

/** Returns true for an object without a class. It may come from another realm. */
export function isPlainObject(value: unknown): value is Record<string, unknown> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}

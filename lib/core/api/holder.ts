import { describeLabel, type LockLabel } from './label.js';
import type { LockMode } from './lock-mode.js';
import { formatDuration } from '../util/durations.js';
import { plainOrQuoted } from '../util/quoted.js';

/** One holder of a resource, as the last answer of Redis showed it. It never carries a secret. */
export interface Holder {
  /** Which process holds it: host, process id, and a few random characters, unless `instanceId` was set. */
  readonly instanceId: string;
  /** Whether that is the process that has asked: another of its calls has the lease. */
  readonly isThisProcess: boolean;
  readonly mode: LockMode;
  /**
   * The token of its lease. Leases that one process passes on in memory count up from it, so the present one may be
   * larger by up to 31.
   */
  readonly fencingToken: number;
  /** What is left of its lease unless it is renewed, in milliseconds, by the clock of Redis. */
  readonly ttlMs: number;
  /**
   * How long its lease was when it was last granted or renewed, in milliseconds: `leaseMs - ttlMs` ago. A waiter that is
   * granted the resource has renewed its lease when it last kept its place. 0 where `isKept` is set.
   */
  readonly leaseMs: number;
  /** For how long that process has held it since Redis granted it, in milliseconds. An adopted lease counts on. */
  readonly heldMs: number;
  /** How often a reentrant holder, or a writer, has entered; 1 otherwise. */
  readonly depth: number;
  /** How many permits of a semaphore it holds; not set in other modes. */
  readonly permits?: number;
  /** What the holder says of itself (option `label`). Any client of your Redis can write it. */
  readonly label?: LockLabel;
  /** The lease was handed on inside that process, to a call that has not named itself yet. */
  readonly isHandedOn?: true;
  /** Set where it was released, and stays taken until its `minHoldMs` is over. */
  readonly isKept?: true;
}

/** The holders in the way of a call. */
export interface Holders {
  /** At most eight of them. */
  readonly holders: readonly Holder[];
  /** How many there are; 0 if that is not known. */
  readonly holderCount: number;
}

/** How many holders an answer names. More would make the answers long, and say no more to a reader. */
export const MAX_NAMED_HOLDERS = 8;
/** How many processes a message names. */
const NAMED = 2;

/** An answer that names no holder. */
export const NO_HOLDERS: Holders = { holders: [], holderCount: 0 };

/** How long ago the lease of a holder was last renewed, or granted. */
export function renewedMsAgo({ leaseMs, ttlMs }: Holder): number {
  return Math.max(0, leaseMs - ttlMs);
}

/** What was seen some time ago, as it should be now. */
export function aged(seen: Holders, ageMs: number): Holders {
  if (ageMs <= 0 || seen.holders.length === 0) return seen;
  const holders = seen.holders.map((holder) => ({
    ...holder,
    ttlMs: Math.max(0, Math.round(holder.ttlMs - ageMs)),
    heldMs: Math.round(holder.heldMs + ageMs),
  }));
  return { ...seen, holders };
}

/** What a message says of a holder behind its name. */
export function describeRemark({ isKept, isHandedOn, label }: Holder): string {
  if (isKept) return ' (released; its minHoldMs is not over)';
  return isHandedOn ? ' (handed on inside that process)' : describeLabel(label);
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

/** The same, with how long it has been held where that is one time: `api-3:4711 for 42 s`. */
export function describeHolders(seen: Holders): string {
  return seen.holderCount > 1
    ? nameHolders(seen)
    : `${nameHolders(seen)} for ${formatDuration(seen.holders[0]!.heldMs)}`;
}

import { describeLabel, type LockLabel } from './label.js';
import type { LockMode } from './lock-mode.js';
import { formatDuration } from '../util/durations.js';
import { plainOrQuoted } from '../util/quoted.js';

/** A holder that was in the way of a call, as the last answer of Redis showed it. It never carries a secret. */
export interface SeenHolder {
  /** Which process holds it: host, process id, and a few random characters, unless `instanceId` was set. */
  readonly instanceId: string;
  /** Whether that is the process that has waited: another of its calls has the lease. */
  readonly isThisProcess: boolean;
  readonly mode: LockMode;
  /**
   * The token of its lease. Leases that one process passes on in memory count up from it, so the present one may be
   * larger by up to 31.
   */
  readonly fencingToken: number;
  /** What is left of its lease unless it is renewed, in milliseconds. */
  readonly ttlMs: number;
  /** For how long that process has held it since Redis granted it, in milliseconds. An adopted lease counts on. */
  readonly heldMs: number;
  /** How many permits of a semaphore it holds; not set in other modes. */
  readonly permits?: number;
  /** What the holder says of itself (option `label`). Any client of your Redis can write it. */
  readonly label?: LockLabel;
  /** The lease was handed on inside that process, to a call that has not named itself yet. */
  readonly isHandedOn?: true;
}

/** The holders that an answer names, and how many there are. */
export interface SeenHolders {
  /** At most eight of them. */
  readonly list: readonly SeenHolder[];
  readonly count: number;
}

/** How many holders an answer names. More would make the answers long, and say no more to a reader. */
export const MAX_SEEN_HOLDERS = 8;
/** How many processes a message names. */
const NAMED = 2;

/** An answer that names no holder. */
export const NO_HOLDERS: SeenHolders = { list: [], count: 0 };

/** What was seen some time ago, as it should be now. */
export function aged(seen: SeenHolders, ageMs: number): SeenHolders {
  if (ageMs <= 0 || seen.list.length === 0) return seen;
  const list = seen.list.map((holder) => ({
    ...holder,
    ttlMs: Math.max(0, Math.round(holder.ttlMs - ageMs)),
    heldMs: Math.round(holder.heldMs + ageMs),
  }));
  return { ...seen, list };
}

/**
 * For a message: `api-3:4711 (Orders.pay)`, `another call of this process`, or `3 holders: a (2) and b`. Needs at least
 * one.
 */
export function nameHolders({ list, count }: SeenHolders): string {
  if (count <= 1) {
    const [holder] = list as [SeenHolder];
    const name = holder.isThisProcess ? 'another call of this process' : plainOrQuoted(holder.instanceId);
    return name + (holder.isHandedOn ? ' (handed on inside that process)' : describeLabel(holder.label));
  }
  const byName = new Map<string, number>();
  for (const holder of list) {
    const name = holder.isThisProcess ? 'this process' : plainOrQuoted(holder.instanceId);
    byName.set(name, (byName.get(name) ?? 0) + 1);
  }
  const named = [...byName].slice(0, NAMED);
  const names = named.map(([name, times]) => (times === 1 ? name : `${name} (${times})`));
  const left = count - named.reduce((sum, [, times]) => sum + times, 0);
  if (left > 0) names.push(`${left} more`);
  const joined = names.length > 1 ? `${names.slice(0, -1).join(', ')} and ${names.at(-1)}` : names[0]!;
  return `${count} ${list[0]!.mode === 'read' ? 'readers' : 'holders'}: ${joined}`;
}

/** The same, with how long it has been held where that is one time: `api-3:4711 for 42 s`. */
export function describeHolders(seen: SeenHolders): string {
  return seen.count > 1 ? nameHolders(seen) : `${nameHolders(seen)} for ${formatDuration(seen.list[0]!.heldMs)}`;
}

import { LOCK_MODES, type LockMode } from '../../../../kernel/api/lock-mode.js';
import type { FleetAnswer, FleetLease, FleetWait } from './lock-fleet.js';

/** An answer has at most so many bytes. */
const MAX_ANSWER_BYTES = 4_096;
/** The layout of an answer. A reader refuses a larger one. */
const LAYOUT = 1;
/** So much of an answer may be names of jobs and leaderships. Leases and waits have the rest. */
const NAMES_BYTES = 1_024;
const MAX_SITE = 200;

const HEALTH = ['up', 'renewalsFail', 'shuttingDown'] as const;

/** Writes entries as long as there is room. @returns the written ones */
class Room {
  constructor(public left: number) {}

  fill(entries: readonly unknown[], share: number): string[] {
    const written: string[] = [];
    const until = this.left - share;
    for (const entry of entries) {
      const text = JSON.stringify(entry);
      const bytes = Buffer.byteLength(text) + 1;
      if (this.left - bytes < until) break;
      this.left -= bytes;
      written.push(text);
    }
    return written;
  }
}

/**
 * Writes an answer: JSON with short names and rows, see docs/internals/protocol.md. What has no room is counted, and
 * neither the leases nor the waits take more than half of it unless the others leave it.
 */
export function writeAnswer(answer: FleetAnswer): string {
  const { held, waiting, leaderships, jobs, lastMinute, lostLately, timeouts, lockOrders, blockers, more } = answer;
  const head = {
    v: LAYOUT,
    i: answer.instanceId,
    h: answer.host,
    p: answer.pid,
    s: answer.version,
    u: Math.round(answer.uptimeMs),
    d: Math.round(answer.loopDelayMs),
    z: Math.round(answer.blockedMs),
    e: answer.hearing ? 1 : 0,
    q: HEALTH.indexOf(answer.health),
    c: lastMinute && [
      Math.round(lastMinute.forMs),
      lastMinute.acquired,
      lastMinute.notAcquired,
      lastMinute.lost,
      lastMinute.timedOut,
    ],
    x: lostLately,
  };
  const begin = JSON.stringify(head).slice(0, -1);
  // The names of the lists and the counts, with room to spare.
  const room = new Room(MAX_ANSWER_BYTES - Buffer.byteLength(begin) - 120);
  const before = room.left;
  const blocked = room.fill(
    blockers.map(({ waiter, holder, waitedMs, calls }) => [waiter, holder, Math.round(waitedMs), calls]),
    NAMES_BYTES,
  );
  const leading = room.fill(
    leaderships.map(({ name, isLeader, elections }) => [name, isLeader ? 1 : 0, elections]),
    NAMES_BYTES,
  );
  const timedOut = room.fill(
    timeouts.map(({ resource, calls }) => [resource, calls]),
    NAMES_BYTES,
  );
  const ordered = room.fill(
    lockOrders.map((cycle) =>
      cycle.map(({ holds, wants, callSite = '' }) => [holds, wants, callSite.slice(0, MAX_SITE)]),
    ),
    NAMES_BYTES,
  );
  const named = room.fill(jobs, Math.max(0, NAMES_BYTES - (before - room.left)));
  const waits = waiting.map(rowOfWait);
  const leases = held.map(rowOfLease);
  const half = Math.floor(room.left / 2);
  const someWaits = room.fill(waits, half);
  const someLeases = room.fill(leases, room.left);
  someWaits.push(...room.fill(waits.slice(someWaits.length), room.left));
  const counts = [
    more.held + leases.length - someLeases.length,
    more.waiting + waits.length - someWaits.length,
    more.leaderships + leaderships.length - leading.length,
    more.jobs + jobs.length - named.length,
  ];
  return (
    `${begin},"b":[${blocked.join()}],"l":[${leading.join()}],"t":[${timedOut.join()}],"o":[${ordered.join()}],"j":[${named.join()}],` +
    `"w":[${someWaits.join()}],"k":[${someLeases.join()}],"m":[${counts.join()}]}`
  );
}

function rowOfLease(lease: FleetLease): unknown[] {
  const { resource, mode, fencingToken, heldMs, leftMs, group, isRenewed, callSite, isLeaked } = lease;
  const times = [Math.round(heldMs), Math.round(leftMs)];
  const row = [resource, LOCK_MODES.indexOf(mode), fencingToken, ...times, group, isRenewed ? 1 : 0];
  if (isLeaked) return [...row, callSite?.slice(0, MAX_SITE) ?? '', 1];
  return callSite === undefined ? row : [...row, callSite.slice(0, MAX_SITE)];
}

function rowOfWait({ call, resource, mode, waitedMs, place, group, callSite = '', holds }: FleetWait): unknown[] {
  const site = callSite.slice(0, MAX_SITE);
  const held = holds.flatMap(({ resource: name, fencingToken }) => [name, fencingToken]);
  return [call, resource, LOCK_MODES.indexOf(mode), Math.round(waitedMs), place ?? 0, group, site, ...held];
}

/**
 * Reads an answer. Any program that may write the keys can have written it, so each value is checked.
 *
 * @param clientId its key: the instance id has to fit
 * @returns `undefined` for text that this version does not write, or cannot read
 */
export function readAnswer(text: string, clientId: string): FleetAnswer | undefined {
  if (text.length > MAX_ANSWER_BYTES || Buffer.byteLength(text) > MAX_ANSWER_BYTES) return undefined;
  try {
    const answer = JSON.parse(text) as Record<string, unknown>;
    if (answer['v'] !== LAYOUT) return undefined;
    const read = readFields(answer);
    return clientId.startsWith(`${read.instanceId}/`) ? read : undefined;
  } catch {
    // No JSON, or a value of another type.
    return undefined;
  }
}

function readFields(answer: Record<string, unknown>): FleetAnswer {
  const [held, waiting, leaderships, jobs] = list(answer['m']).map(toCount) as [number, number, number, number];
  return {
    instanceId: string(answer['i']),
    host: string(answer['h']),
    pid: toCount(answer['p']),
    version: string(answer['s']),
    uptimeMs: toCount(answer['u']),
    loopDelayMs: toCount(answer['d']),
    blockedMs: toCount(answer['z']),
    hearing: answer['e'] === 1,
    health: HEALTH[toCount(answer['q'])] ?? wrong(),
    held: list(answer['k']).map(readLease),
    waiting: list(answer['w']).map(readWait),
    leaderships: list(answer['l']).map((row) => {
      const [name, isLeader, elections = 0] = list(row);
      return { name: string(name), isLeader: isLeader === 1, elections: toCount(elections) };
    }),
    jobs: list(answer['j']).map(string),
    lastMinute: answer['c'] === null ? null : readCounts(list(answer['c'])),
    lostLately: toCount(answer['x'] ?? 0),
    timeouts: list(answer['t'] ?? []).map((row) => {
      const [resource, calls] = list(row);
      return { resource: string(resource), calls: toCount(calls) };
    }),
    lockOrders: list(answer['o'] ?? []).map((cycle) =>
      list(cycle).map((side) => {
        const [holds, wants, callSite] = list(side);
        return { holds: string(holds), wants: string(wants), ...siteOf(callSite) };
      }),
    ),
    blockers: list(answer['b']).map((row) => {
      const [waiter, holder, waitedMs, calls] = list(row);
      return { waiter: string(waiter), holder: string(holder), waitedMs: toCount(waitedMs), calls: toCount(calls) };
    }),
    more: { held: toCount(held), waiting: toCount(waiting), leaderships: toCount(leaderships), jobs: toCount(jobs) },
  };
}

function readCounts([forMs, acquired, notAcquired, lost, timedOut = 0]: unknown[]): NonNullable<
  FleetAnswer['lastMinute']
> {
  return {
    forMs: toCount(forMs),
    acquired: toCount(acquired),
    notAcquired: toCount(notAcquired),
    lost: toCount(lost),
    timedOut: toCount(timedOut),
  };
}

function readLease(row: unknown): FleetLease {
  const [resource, mode, fencingToken, heldMs, leftMs, group, isRenewed, callSite = '', isLeaked] = list(row);
  return {
    resource: string(resource),
    mode: readMode(mode),
    fencingToken: toCount(fencingToken),
    heldMs: toCount(heldMs),
    leftMs: toCount(leftMs),
    group: string(group),
    isRenewed: isRenewed === 1,
    ...siteOf(callSite),
    isLeaked: isLeaked === 1,
  };
}

function readWait(row: unknown): FleetWait {
  const [call, resource, mode, waitedMs, place, group, callSite, ...held] = list(row);
  const holds: { resource: string; fencingToken: number }[] = [];
  for (let index = 0; index < held.length; index += 2) {
    holds.push({ resource: string(held[index]), fencingToken: toCount(held[index + 1]) });
  }
  return {
    call: toCount(call),
    resource: string(resource),
    mode: readMode(mode),
    waitedMs: toCount(waitedMs),
    ...(place !== 0 && { place: toCount(place) }),
    group: string(group),
    ...siteOf(callSite),
    holds,
  };
}

function siteOf(callSite: unknown): { callSite?: string } {
  return callSite === '' ? {} : { callSite: string(callSite) };
}

function readMode(value: unknown): LockMode {
  return LOCK_MODES[toCount(value)] ?? wrong();
}

function string(value: unknown): string {
  return typeof value === 'string' ? value : wrong();
}

function toCount(value: unknown): number {
  return Number.isSafeInteger(value) && (value as number) >= 0 ? (value as number) : wrong();
}

function list(value: unknown): unknown[] {
  return Array.isArray(value) ? value : wrong();
}

function wrong(): never {
  throw new TypeError('not an answer to a roll call');
}

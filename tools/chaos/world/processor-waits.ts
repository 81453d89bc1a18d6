import { readFileSync, writeFileSync } from 'node:fs';
import { constants, setPriority } from 'node:os';

const NS_PER_MS = 1_000_000;
/** What Linux counts in /proc/stat: hundredths of a second. */
const MS_PER_TICK = 10;

/** How long a server had no processor. */
export interface ProcessorWaits {
  readonly pid: number;
  /** It was ready to run and another process did, since it was started. */
  readonly queuedMs: number;
  /** The host has taken processors away from this machine, since that was started. */
  readonly stolenMs: number;
}

/** Zeros where the system does not say so: not Linux, or a server in a container. */
export function processorWaits(pid: number): ProcessorWaits {
  return { pid, queuedMs: queuedMs(pid), stolenMs: stolenMs() };
}

function queuedMs(pid: number): number {
  try {
    return isServer(pid) ? Number(readFileSync(`/proc/${pid}/schedstat`, 'utf8').split(' ')[1]) / NS_PER_MS : 0;
  } catch {
    return 0;
  }
}

function stolenMs(): number {
  try {
    return Number(readFileSync('/proc/stat', 'utf8').split('\n')[0]!.split(/\s+/)[8] ?? 0) * MS_PER_TICK;
  } catch {
    return 0;
  }
}

/** How long at most, between two looks. A process that was started in between has waited since its beginning. */
export function waitedBetween(before: ProcessorWaits, after: ProcessorWaits): number {
  const queuedMs = after.queuedMs - (before.pid === after.pid ? before.queuedMs : 0);
  // One that has ended since says nothing.
  return Math.max(0, queuedMs) + after.stolenMs - before.stolenMs;
}

/** Lets a server run before all else, where this process has the right to: as if it had a processor of its own. */
export function preferServer(pid: number): void {
  try {
    if (!isServer(pid)) return;
    setPriority(pid, constants.priority.PRIORITY_HIGHEST);
    // Linux shares processors among sessions first, and what is above counts within one of them.
    writeFileSync(`/proc/${pid}/autogroup`, String(constants.priority.PRIORITY_HIGHEST));
  } catch {
    // How long it had no processor is known all the same.
  }
}

function isServer(pid: number): boolean {
  return readFileSync(`/proc/${pid}/comm`, 'utf8').trim() === 'redis-server';
}

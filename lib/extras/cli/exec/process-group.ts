import { readdirSync, readFileSync } from 'node:fs';

/** Sends a signal to all processes of a group. A group that has ended is left alone. */
export function signalGroup(group: number, signal: NodeJS.Signals): void {
  try {
    process.kill(-group, signal);
  } catch {
    // It has ended, or all of it runs as another user.
  }
}

/**
 * Whether a process of the group still runs. A zombie does not: where the first process of a container reaps none, it
 * stays for good.
 */
export function isGroupAlive(group: number): boolean {
  try {
    process.kill(-group, 0);
  } catch (error) {
    // EPERM: there is one, of another user.
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
  // Only Linux has /proc. Elsewhere the first process of the machine reaps zombies.
  return process.platform !== 'linux' || hasRunning(group);
}

function hasRunning(group: number): boolean {
  let processes: string[];
  try {
    processes = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  } catch {
    return true;
  }
  return processes.some((pid) => {
    try {
      // "pid (name) state ppid pgrp ...", and the name may have anything in it.
      const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
      const [state, , pgrp] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
      return Number(pgrp) === group && state !== 'Z' && state !== 'X';
    } catch {
      return false;
    }
  });
}

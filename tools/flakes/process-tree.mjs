// All processes that come from one process, however deep.
import { execFileSync } from 'node:child_process';

/**
 * @param {number} [generations] how many come after the first process; all where it is left out
 * @returns {number[]} the process and all that come from it, parents first; those that are stopped already are left out
 */
export function runningTree(root, generations) {
  return runningIn(execFileSync('ps', ['-A', '-o', 'pid=,ppid=,stat='], { encoding: 'utf8' }), root, generations);
}

/** @param {string} table a line for each process: its number, that of its parent, and its state */
export function runningIn(table, root, generations = Infinity) {
  const childrenOf = new Map();
  const stopped = new Set();
  for (const line of table.trim().split('\n')) {
    const [pid, parent, state] = line.trim().split(/\s+/);
    childrenOf.set(Number(parent), [...(childrenOf.get(Number(parent)) ?? []), Number(pid)]);
    if (state.startsWith('T')) stopped.add(Number(pid));
  }
  const tree = [];
  let generation = [root];
  for (let age = 0; generation.length > 0 && age <= generations; age++) {
    tree.push(...generation);
    generation = generation.flatMap((pid) => childrenOf.get(pid) ?? []);
  }
  return tree.filter((pid) => !stopped.has(pid));
}

export function signalAll(pids, signal) {
  for (const pid of pids) {
    try {
      process.kill(pid, signal);
    } catch (error) {
      if (error.code !== 'ESRCH') throw error; // it has ended since
    }
  }
}

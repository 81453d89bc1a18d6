// A machine that stands still now and then, as one does beside busy neighbours: all processes of the tests stop at once.
import { setTimeout as sleep } from 'node:timers/promises';
import { runningTree, signalAll } from './process-tree.mjs';

const STOP_MS = [50, 1_000];
const RUN_MS = [200, 4_000];
/** How long a stop may take until it can be seen. */
const SEEN_MS = 20;

/**
 * Stops the process and all that come from it, and lets them go on, until the signal is aborted. A process that a test has stopped
 * is left alone: it must not go on because of this.
 *
 * @param {number} root
 * @param {() => number} chance from 0 to 1
 * @param {AbortSignal} signal
 * @returns {Promise<number>} how many stops there were
 */
export async function standStill(root, chance, signal) {
  const between = ([least, most]) => Math.round(least + chance() * (most - least));
  for (let stops = 0; ; stops++) {
    if (!(await rest(between(RUN_MS), signal))) return stops;
    // Jest and its workers first: a test that still ran could stop a process of its own, which would be taken for one of ours.
    const pids = runningTree(root, 1);
    signalAll(pids, 'SIGSTOP');
    try {
      await rest(SEEN_MS, signal);
      const others = runningTree(root).filter((pid) => !pids.includes(pid));
      signalAll(others, 'SIGSTOP');
      pids.push(...others);
      await rest(between(STOP_MS), signal);
    } finally {
      signalAll(pids, 'SIGCONT');
    }
  }
}

/** @returns {Promise<boolean>} false once the signal is aborted */
function rest(ms, signal) {
  return sleep(ms, true, { signal }).catch(() => false);
}

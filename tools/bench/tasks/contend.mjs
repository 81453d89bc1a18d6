// Callers of one process that all want one resource, over and over.
import { nowNs, untilNs } from '../measure/clock.mjs';
import { lockedBy } from './locked.mjs';

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/**
 * @param {object} args
 * @param {string} args.resource
 * @param {number} args.callers
 * @param {number} args.startNs when all processes begin
 * @param {number} args.ms time in which callers start new calls
 * @param {number} args.drainMs extra time for calls that are pending by then
 * @param {number} args.sectionMs 0 for an empty section
 * @param {object} [args.tuning]
 * @returns {Promise<{ entered: Float64Array, left: Float64Array, waitsMs: Float64Array, cpuMs: number, stuck: number }>}
 *   when each section began and ended, how long each call waited for it, the processor time, and the number of calls
 *   that never returned
 */
export async function run(world, { resource, callers, startNs, ms, drainMs, sectionMs, tuning }) {
  const locked = lockedBy(await world.client(tuning));
  const entered = [];
  const left = [];
  const waits = [];
  const waitingSince = new Map();
  const endNs = startNs + ms * 1e6;

  const call = async (caller) => {
    for (let asked = nowNs(); asked < endNs; asked = nowNs()) {
      waitingSince.set(caller, asked);
      await locked(resource, () => {
        const begin = nowNs();
        waitingSince.delete(caller);
        waits.push((begin - asked) / 1e6);
        entered.push(begin);
        if (sectionMs > 0) return sleep(sectionMs).then(() => void left.push(nowNs()));
        left.push(nowNs());
      });
    }
  };

  await untilNs(startNs);
  const cpu = process.cpuUsage();
  const all = Promise.all(Array.from({ length: callers }, (_, caller) => call(caller)));
  await Promise.race([all, untilNs(endNs + drainMs * 1e6)]);
  const { user, system } = process.cpuUsage(cpu);
  const now = nowNs();
  for (const asked of waitingSince.values()) waits.push((now - asked) / 1e6);
  return {
    entered: Float64Array.from(entered),
    left: Float64Array.from(left),
    waitsMs: Float64Array.from(waits),
    cpuMs: (user + system) / 1000,
    stuck: waitingSince.size,
  };
}

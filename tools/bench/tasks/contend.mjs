// Callers of one process that all want one resource, over and over.
import { nowNs, untilNs } from '../measure/clock.mjs';

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
 * @returns {Promise<{ entered: Float64Array, left: Float64Array, waitsMs: Float64Array, stuck: number }>} when each
 * section
 *   began and ended, the duration of each call to acquire, and the number of calls that never returned
 */
export async function run(world, { resource, callers, startNs, ms, drainMs, sectionMs, tuning }) {
  const { acquire, release } = await world.client(tuning);
  const entered = [];
  const left = [];
  const waits = [];
  const waitingSince = new Map();
  const endNs = startNs + ms * 1e6;

  const call = async (caller) => {
    for (let asked = nowNs(); asked < endNs; asked = nowNs()) {
      waitingSince.set(caller, asked);
      const lease = await acquire(resource);
      const begin = nowNs();
      waitingSince.delete(caller);
      if (sectionMs > 0) await sleep(sectionMs);
      const end = nowNs();
      const released = release(lease);
      waits.push((begin - asked) / 1e6);
      entered.push(begin);
      left.push(end);
      await released;
    }
  };

  await untilNs(startNs);
  const all = Promise.all(Array.from({ length: callers }, (_, caller) => call(caller)));
  await Promise.race([all, untilNs(endNs + drainMs * 1e6)]);
  const now = nowNs();
  for (const asked of waitingSince.values()) waits.push((now - asked) / 1e6);
  return {
    entered: Float64Array.from(entered),
    left: Float64Array.from(left),
    waitsMs: Float64Array.from(waits),
    stuck: waitingSince.size,
  };
}

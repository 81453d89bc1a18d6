// Callers of one process that all want one resource, over and over.
import { nowNs, untilNs } from '../measure/clock.mjs';

/** How many of the calls that read or write do write. */
const WRITERS = 0.05;

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/**
 * @param {object} args
 * @param {string} args.resource
 * @param {number} args.callers
 * @param {number} args.startNs when all processes begin
 * @param {number} args.ms after this nobody begins anew
 * @param {number} args.drainMs who waits then is waited for so long
 * @param {number} args.sectionMs 0 for an empty section
 * @param {number} [args.permits] of a semaphore, in place of a lock
 * @param {boolean} [args.readMostly] most calls are by readers, the others by writers
 * @param {object} [args.tuning]
 * @returns {Promise<{ entered: Float64Array, left: Float64Array, writes?: Uint8Array, waitsMs: Float64Array, stuck: number }>}
 *   when each section began and ended, and how long each call to acquire took; of those that are stuck, so far, at the end.
 *   `writes` says of each wait, and so of each section, whether it was a writer's
 */
export async function run(world, { resource, callers, startNs, ms, drainMs, sectionMs, permits, readMostly, tuning }) {
  const client = await world.client(tuning);
  const { acquire, release } = permits === undefined ? client : client.semaphore(permits);
  // Who has no lock for readers must lock everybody out.
  const acquireToRead = client.acquireToRead ?? acquire;
  const acquireToWrite = client.acquireToWrite ?? acquire;
  const entered = [];
  const left = [];
  const waits = [];
  const writes = [];
  const waitingSince = new Map();
  const endNs = startNs + ms * 1e6;

  const call = async (caller) => {
    for (let asked = nowNs(); asked < endNs; asked = nowNs()) {
      const isWriter = readMostly && Math.random() < WRITERS;
      waitingSince.set(caller, { asked, isWriter });
      const lease = await (readMostly ? (isWriter ? acquireToWrite : acquireToRead) : acquire)(resource);
      const begin = nowNs();
      waitingSince.delete(caller);
      if (sectionMs > 0) await sleep(sectionMs);
      const end = nowNs();
      const released = release(lease);
      waits.push((begin - asked) / 1e6);
      writes.push(isWriter);
      entered.push(begin);
      left.push(end);
      await released;
    }
  };

  await untilNs(startNs);
  const all = Promise.all(Array.from({ length: callers }, (_, caller) => call(caller)));
  await Promise.race([all, untilNs(endNs + drainMs * 1e6)]);
  const now = nowNs();
  for (const { asked, isWriter } of waitingSince.values()) {
    waits.push((now - asked) / 1e6);
    writes.push(isWriter);
  }
  return {
    entered: Float64Array.from(entered),
    left: Float64Array.from(left),
    ...(readMostly && { writes: Uint8Array.from(writes) }),
    waitsMs: Float64Array.from(waits),
    stuck: waitingSince.size,
  };
}

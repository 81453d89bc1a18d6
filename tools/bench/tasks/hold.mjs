// Holds many leases for a while. Needs --expose-gc.
import { setTimeout as sleep } from 'node:timers/promises';
import { heapUsed } from '../measure/heap.mjs';

const AT_ONCE = 100;
const WARM_UP = 200;

/** @param {{ leases: number, holdMs: number }} args */
export async function run(world, { leases: count, holdMs }) {
  const { acquire, release } = await world.client({ leaseMs: 30_000 });
  const acquireAll = (prefix, howMany) =>
    inBatches(
      Array.from({ length: howMany }, (_, index) => `${prefix}:${index}`),
      acquire,
    );
  await inBatches(await acquireAll('warm-up', WARM_UP), release);

  const before = await heapUsed();
  const leases = await acquireAll('held', count);
  const heapPerLeaseBytes = ((await heapUsed()) - before) / count;

  const [startedAt, usedBefore] = [performance.now(), process.cpuUsage()];
  await sleep(holdMs);
  const used = process.cpuUsage(usedBefore);
  const cpuPercent = ((used.user + used.system) / 1000 / (performance.now() - startedAt)) * 100;

  const shortestLeftMs = leases.reduce((least, lease) => Math.min(least, lease.remainingMs()), Infinity);
  const currentHolds = leases.filter((lease) => lease.isHeld());
  const heldThere = await inBatches(currentHolds, (lease) => lease.verify());
  const lost = count - heldThere.filter(Boolean).length;
  await inBatches(leases, release);
  return { cpuPercent, heapPerLeaseBytes, lost, shortestLeftMs };
}

async function inBatches(items, work) {
  const results = [];
  for (let index = 0; index < items.length; index += AT_ONCE) {
    results.push(...(await Promise.all(items.slice(index, index + AT_ONCE).map(work))));
  }
  return results;
}

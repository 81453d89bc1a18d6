// One load at one size, on a Redis that has nothing else to do.
import { Redis } from 'ioredis';
import { setTimeout as sleep } from 'node:timers/promises';
import { OURS } from '../contestants/index.mjs';
import { redisUsage, settledUsage, usageBetween } from '../measure/redis-usage.mjs';
import { WorkerProcess } from '../processes/worker-process.mjs';

const PATIENCE = { timeoutMs: 120_000 };
const PROCESSES = 2;
/** Until Redis has counted the memory of its connections: it looks at each of them once a second. */
const SETTLE_MS = 2_500;

/**
 * @typedef {object} Load what the instances have and do. Numbers are for each instance
 * @property {number} instances
 * @property {number} leaseMs
 * @property {number} [locks] held
 * @property {number} [permits] held, of one semaphore
 * @property {number} [waits] calls that wait, each for a resource of its own
 * @property {number} [leaderships] the same for all instances
 * @property {number} [jobs] the same for all instances, each due every `everyMs`
 * @property {number} [everyMs]
 * @property {number} [pairs] free locks that are acquired and released in a second
 * @property {number} [probes] of an inbox in a second, without instances
 */

/**
 * @param {{ urls: string[], connection?: object }} servers `connection`: how instances reach a cluster of these
 * @param {Load} load
 * @param {object} options
 * @param {number} options.forMs how long to measure
 * @param {number} [options.settleMs] how long to wait before it
 * @returns what was used in this time, and what has come since there were no instances
 */
export async function measureLoad({ urls, connection }, load, { forMs, settleMs = SETTLE_MS }) {
  const clients = urls.map((url) => new Redis(url));
  const workers = Array.from({ length: PROCESSES }, () => new WorkerProcess({ contestant: OURS, url: urls[0] }));
  const holder = load.waits ? new WorkerProcess({ contestant: OURS, url: urls[0] }) : undefined;
  const everyone = holder ? [...workers, holder] : workers;
  const ask = (step, args) => Promise.all(workers.map((worker, index) => tell(worker, step, args(index))));
  try {
    await Promise.all(clients.map((client) => client.flushall()));
    const { leaseMs, locks, permits, waits, leaderships, jobs, everyMs, pairs, probes } = load;
    const each = Array.from({ length: PROCESSES }, (_, index) => Math.floor((load.instances + index) / PROCESSES));
    if (holder) {
      // What is waited for is no part of the load: it is held before anything is counted.
      await tell(holder, 'start', { instances: 1, leaseMs, connection });
      for (const [index, count] of each.entries()) {
        for (let instance = 0; instance < count; instance++) {
          await tell(holder, 'own', { resources: waits, prefix: `waited-${index}-${instance}` });
        }
      }
      await sleep(SETTLE_MS);
    }
    const empty = await Promise.all(clients.map(settledUsage));
    const begun = { leaseMs, connection, waits, leaderships };
    await ask('start', (index) => ({ instances: probes ? 0 : each[index], ...begun, prefix: `waited-${index}` }));
    if (probes) await ask('openInboxes', (index) => ({ inboxes: each[index], prefix: `used-${index}` }));
    if (locks) await ask('hold', (index) => ({ locks, prefix: `held-${index}`, withinMs: leaseMs / 3 }));
    if (permits) {
      const total = permits * load.instances;
      await ask('permits', () => ({ permits, total, prefix: 'pool', withinMs: leaseMs / 3 }));
    }
    await sleep(settleMs);
    const from = Date.now() + 200;
    const work = { forMs, from, jobs, everyMs, pairs, probes };
    const measured = ask('measure', (index) => ({ ...work, prefix: jobs ? 'job' : `used-${index}` }));
    await sleep(from - Date.now());
    const before = await Promise.all(clients.map(redisUsage));
    await sleep(from + forMs - Date.now());
    const after = await Promise.all(clients.map(redisUsage));
    const settled = await Promise.all(clients.map(settledUsage));
    const counts = totalOf(await measured);
    const used = totalOf(after.map((usage, index) => usageBetween(before[index], usage)));
    const come = totalOf(settled.map((usage, index) => usageBetween(empty[index], usage)));
    const { connections, clientBytes, dataBytes } = come;
    return {
      ...used,
      seconds: used.seconds / clients.length,
      connections,
      clientBytes,
      dataBytes,
      counts,
    };
  } finally {
    for (const client of clients) client.disconnect();
    for (const worker of everyone) worker.kill();
    await Promise.all(everyone.map(({ exited }) => exited));
  }
}

function tell(worker, step, args) {
  return worker.ask('capacity', { step, ...args }, PATIENCE);
}

/** @param {Record<string, number>[]} parts */
function totalOf(parts) {
  const total = {};
  for (const [name, value] of parts.flatMap((part) => Object.entries(part))) total[name] = (total[name] ?? 0) + value;
  return total;
}

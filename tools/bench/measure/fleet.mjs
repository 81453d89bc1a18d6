// Measures the load of a fleet on an otherwise idle Redis.
import { Redis } from 'ioredis';
import { setTimeout as sleep } from 'node:timers/promises';
import { OURS } from '../contestants/index.mjs';
import { WorkerProcess } from '../processes/worker-process.mjs';
import { redisUsage, settledUsage, usageBetween } from './redis-usage.mjs';

const PATIENCE = { timeoutMs: 300_000 };
/** Until Redis has counted the memory of its connections: it looks at each of them once a second. */
const COUNTED_MS = 2_500;

/**
 * @typedef {object} Load what the instances have and do. Numbers are for each instance
 * @property {number} instances
 * @property {number} [processes] that they share
 * @property {number} [leaseMs]
 * @property {number} [locks] held
 * @property {number} [permits] held, of one semaphore
 * @property {number} [waits] calls that wait, each for a resource of its own
 * @property {number} [leaderships] the same for all instances
 * @property {number} [jobs] the same for all instances, each due every `everyMs`
 * @property {number} [everyMs]
 * @property {number} [pairs] free locks that are acquired and released in a second
 */

/**
 * @param {string} url of a Redis that nothing else uses
 * @param {Load} load
 * @param {object} options
 * @param {number} options.forMs how long to measure
 * @param {number} options.settleMs how long to wait before it
 */
export async function measureFleet(url, load, { forMs, settleMs }) {
  const { instances, processes = 1, leaseMs = 30_000, locks, permits, waits, leaderships, jobs, everyMs, pairs } = load;
  const redis = new Redis(url);
  const started = [];
  const startProcess = () => started[started.push(new WorkerProcess({ contestant: OURS, url })) - 1];
  const tell = (worker, step, args) => worker.ask('fleet', { step, ...args }, PATIENCE);
  try {
    await redis.flushall();
    const each = Array.from({ length: processes }, (_, index) => Math.floor((instances + index) / processes));
    if (waits) {
      // The awaited locks are no part of the load: they are held before the count starts.
      const holder = startProcess();
      await tell(holder, 'start', { instances: 1, leaseMs });
      for (const [index, count] of each.entries()) {
        for (let instance = 0; instance < count; instance++) {
          await tell(holder, 'own', { resources: waits, prefix: `waited-${index}-${instance}` });
        }
      }
      await sleep(COUNTED_MS);
    }
    const workers = each.map(startProcess);
    const ask = (step, args) => Promise.all(workers.map((worker, index) => tell(worker, step, args(index))));
    const empty = await settledUsage(redis);
    await ask('start', (index) => ({ instances: each[index], leaseMs, waits, leaderships, prefix: `waited-${index}` }));
    if (jobs) await tell(workers[0], 'registerJobs', { jobs });
    if (locks || permits) {
      const held = { locks, permits, total: permits * instances, withinMs: leaseMs / 3 };
      await ask('hold', (index) => ({ ...held, prefix: `held-${index}` }));
    }
    await sleep(settleMs);
    const from = Date.now() + 500;
    const measured = ask('measure', (index) => ({ forMs, from, jobs, everyMs, pairs, prefix: `used-${index}` }));
    await sleep(from - Date.now());
    const before = await redisUsage(redis);
    await sleep(from + forMs - Date.now());
    const used = usageBetween(before, await redisUsage(redis));
    const has = usageBetween(empty, await settledUsage(redis));
    const ownMs = (await measured).reduce((sum, ms) => sum + ms, 0);
    return {
      connections: has.connections,
      clientKb: has.clientBytes / 1000,
      dataKb: has.dataBytes / 1000,
      scripts: used.scripts / used.seconds,
      published: used.published / used.seconds,
      receivedKb: used.received / used.seconds / 1000,
      sentKb: used.sent / used.seconds / 1000,
      redisPercent: used.cpuMs / used.seconds / 10,
      ownPercent: ownMs / forMs / 0.01,
    };
  } finally {
    redis.disconnect();
    for (const worker of started) worker.kill();
    await Promise.all(started.map(({ exited }) => exited));
  }
}

// What instances cost while they wait: the scripts that they send, the processor time of Redis, and their own.
import { Redis } from 'ioredis';
import { setTimeout as sleep } from 'node:timers/promises';
import { OURS } from '../../contestants/index.mjs';
import { redisCpuMs } from '../../measure/redis-cpu.mjs';
import { WorkerProcess } from '../../processes/worker-process.mjs';

const PATIENCE = { timeoutMs: 300_000 };

export const METRICS = [
  { id: 'scripts', label: 'scripts/s', digits: 1 },
  { id: 'probes', label: 'probes/s', digits: 1 },
  { id: 'redisPercent', label: 'CPU of Redis, %', digits: 2 },
  { id: 'ownPercent', label: 'of the clients, %', digits: 2 },
];

/**
 * @param {object} fleet
 * @param {number} fleet.processes
 * @param {number} [fleet.holders] how many of them, the first, hold what the others wait for: their own time does not count
 * @param {(workers: WorkerProcess[], ask: (args: object) => Promise<any[]>) => Promise<void>} fleet.prepare
 * @param {object} [fleet.work] what the instances do beside waiting
 */
export async function costOfWaiting({ url }, { processes, holders = 0, prepare, settleMs, forMs, work = {} }) {
  const workers = Array.from({ length: processes }, () => new WorkerProcess({ contestant: OURS, url }));
  const ask = (args) => Promise.all(workers.map((worker) => worker.ask('waits', args, PATIENCE)));
  const redis = new Redis(url);
  try {
    await prepare(workers, ask);
    await sleep(settleMs);
    const from = Date.now() + 500;
    const measured = ask({ step: 'measure', forMs, from, ...work });
    await sleep(from - Date.now());
    const [startedAt, before] = [performance.now(), await redisCpuMs(redis)];
    const results = await measured;
    const redisPercent = ((await redisCpuMs(redis)) - before) / ((performance.now() - startedAt) / 100);
    const counts = {};
    for (const [name, count] of results.flatMap((result) => Object.entries(result.counts))) {
      counts[name] = (counts[name] ?? 0) + count;
    }
    const { probeInbox: probes = 0, ...others } = counts;
    const of = (...names) => names.reduce((sum, name) => sum + (others[name] ?? 0), 0);
    return {
      scripts: Object.values(others).reduce((sum, count) => sum + count, 0),
      probes,
      claims: of('claimTick', 'endRun', 'finishTick'),
      keeps: of('keep'),
      redisPercent,
      ownPercent: results.slice(holders).reduce((sum, { cpuPercent }) => sum + cpuPercent, 0),
    };
  } finally {
    redis.disconnect();
    for (const worker of workers) worker.kill();
    await Promise.all(workers.map(({ exited }) => exited));
  }
}

// What Redis keeps of jobs, and what their runs cost: one instance gets every tick.
import { Redis } from 'ioredis';
import { OURS } from '../contestants/index.mjs';
import { redisUsage, usageBetween } from '../measure/redis-usage.mjs';
import { WorkerProcess } from '../processes/worker-process.mjs';

/** @param {{ few: number, many: number, ticks: number, moreTicks: number }} size */
export async function measureJobs({ url }, { few, many, ticks, moreTicks }) {
  const [small, large, longer] = [
    await runsOf(url, few, ticks),
    await runsOf(url, many, ticks),
    await runsOf(url, many, moreTicks),
  ];
  const runs = many * (moreTicks - ticks);
  const each = (field) => Math.max(0, (longer[field] - large[field]) / runs);
  const run = (longer.keptBytes - large.keptBytes) / runs;
  return {
    job: (large.keptBytes - small.keptBytes) / (many - few) - ticks * run,
    run,
    claim: longer.claimBytes / (many * moreTicks),
    runCpuUs: each('cpuMs') * 1000,
    runReceived: each('received'),
    runSent: each('sent'),
  };
}

/** Runs so many ticks of so many jobs. @returns what was used, and the bytes that stay of claims and of all else */
async function runsOf(url, jobs, ticks) {
  const client = new Redis(url);
  const worker = new WorkerProcess({ contestant: OURS, url });
  const ask = (step, args) => worker.ask('capacity', { step, ...args }, { timeoutMs: 60_000 });
  try {
    await client.flushall();
    await ask('start', { instances: 1, leaseMs: 30_000 });
    const before = await redisUsage(client);
    await ask('run', { jobs, ticks, prefix: 'job' });
    const used = usageBetween(before, await redisUsage(client));
    const claims = await client.keys('*:tick:*');
    for (let from = 0; from < claims.length; from += 500) await client.unlink(...claims.slice(from, from + 500));
    const kept = usageBetween(before, await redisUsage(client));
    return { ...used, keptBytes: kept.dataBytes, claimBytes: used.dataBytes - kept.dataBytes };
  } finally {
    client.disconnect();
    worker.kill();
    await worker.exited;
  }
}

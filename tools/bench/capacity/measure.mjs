// All that docs/operations/capacity.md says is measured: constants at two sizes, and a fleet of a third one.
import { Redis } from 'ioredis';
import { startRedisServer } from '../../../scripts/redis-server.mjs';
import { redisUsage } from '../measure/redis-usage.mjs';
import { compare } from './check.mjs';
import { measureClusters } from './cluster.mjs';
import { fit } from './fit.mjs';
import { measureJobs } from './jobs.mjs';
import { CLUSTER_FLEET, FLEET, LOADS, QUICK_SIZES, SIZES } from './loads.mjs';
import { measureLoad } from './stage.mjs';

/** Some ticks of jobs are claimed in it: the last one 5 s before its end at the latest. */
const FOR_MS = 6_000;
const CHECK_MS = 40_000;
/** A call that waits for 5 s asks once more. */
const WAITING_MS = 7_000;
/** Until Redis has made the buffers of its connections as small as they need to be: by a half each 5 s. */
const SETTLED_MS = 42_000;
/** Goes through everything, and measures nothing that means something. */
const SMOKE = { forMs: 5_500, settleMs: 300 };
const JOBS = { few: 50, many: 200, ticks: 4, moreTicks: 12 };
/** Each kind of script once: the first one is sent with its text. */
const ONCE = { locks: 1, permits: 1, waits: 1, leaderships: 1, jobs: 1, everyMs: 2_000, pairs: 1 };

/** @param {{ url: string, quick: boolean, say: (line: string) => void }} bench */
export async function measureCapacity({ url, quick, say }) {
  const sizes = quick ? QUICK_SIZES : SIZES;
  const servers = { urls: [url] };
  await measureLoad(servers, { instances: 2, leaseMs: 6_000, ...ONCE }, { forMs: 7_000 });
  const serverBytes = await emptyBytes(url);
  const stages = {};
  for (const [name, load] of Object.entries(LOADS)) {
    const options = quick ? SMOKE : { forMs: FOR_MS, settleMs: load.waits ? WAITING_MS : undefined };
    const at = (instances) => measureLoad(servers, { instances, ...load }, options);
    stages[name] = { load, small: await at(sizes.small), large: await at(sizes.large) };
    for (const size of ['small', 'large']) stages[name][size].instances = sizes[size];
    say(`  ${name}`);
  }
  Object.assign(stages, await settledStages(sizes, quick));
  const jobs = await measureJobs({ url }, quick ? { few: 5, many: 20, ticks: 2, moreTicks: 4 } : JOBS);
  const constants = fit(stages, jobs, serverBytes);
  say('  the constants');
  const clusters = await measureClusters(quick ? [3] : [3, 9], {
    messages: quick ? 2_000 : 20_000,
    instances: quick ? 6 : 30,
    load: CLUSTER_FLEET,
    ...(quick ? SMOKE : { forMs: 15_000, settleMs: 15_000 }),
  });
  constants.cluster = busOf(clusters);
  say('  clusters');
  const load = { instances: sizes.check, ...FLEET };
  const used = await measureLoad(servers, load, {
    forMs: CHECK_MS,
    settleMs: 12_000,
    ...(quick && { forMs: 6_000, settleMs: 500 }),
  });
  return {
    sizes,
    constants,
    check: { load, compared: compare(constants, load, used) },
    clusters: clusters.map(({ used: usedThere, ...cluster }) => ({
      ...cluster,
      compared: compare(
        constants,
        { instances: cluster.instances, primaries: cluster.primaries, ...cluster.load },
        usedThere,
      ),
    })),
  };
}

async function emptyBytes(url) {
  const redis = new Redis(url);
  await redis.flushall();
  const { dataBytes } = await redisUsage(redis);
  redis.disconnect();
  return dataBytes;
}

/** What connections keep for as long as they are used. Memory is no matter of speed: all at the same time. */
export async function settledStages(sizes, quick) {
  const stages = { settledUsed: { leaseMs: LOADS.used.leaseMs, pairs: 1 }, settledWaiting: LOADS.waitingFew };
  const measured = Object.entries(stages).map(async ([name, load]) => {
    const [small, large] = await Promise.all([settled(sizes.small), settled(sizes.large)]);
    return [name, { load, small, large }];

    async function settled(instances) {
      const server = await startRedisServer({ args: ['--save', '', '--appendonly', 'no'] });
      try {
        const [longMs, shortMs] = [quick ? 1_000 : SETTLED_MS, 1_000];
        const options = load.pairs ? { forMs: longMs, settleMs: shortMs } : { forMs: shortMs, settleMs: longMs };
        return { instances, ...(await measureLoad({ urls: [server.url] }, { instances, ...load }, options)) };
      } finally {
        await server.stop();
      }
    }
  });
  return Object.fromEntries(await Promise.all(measured));
}

/** What a message costs each node but the one that publishes it, and what a node needs that has nothing to do. */
function busOf(clusters) {
  const each = (field) => {
    const more = clusters.map(({ primaries, published, sharded }) => {
      return ((published[field] ?? 0) - (sharded[field] ?? 0)) / (primaries - 1);
    });
    return Math.max(0, more.reduce((sum, value) => sum + value, 0) / more.length);
  };
  const serverCpuUs = clusters.reduce((sum, { published }) => sum + published.idleCpuUs, 0) / clusters.length;
  const busCpuUs = each('cpuUs');
  return { busCpuUs, busWakeUs: Math.max(0, each('aloneCpuUs') - busCpuUs), busBytes: each('busBytes'), serverCpuUs };
}

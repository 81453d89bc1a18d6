// Callers that lock and unlock, each a resource of its own, for some time.
import { lockedBy } from './locked.mjs';

const nothing = () => {};

/**
 * @param {{ callers: number, ms: number, prefix: string }} args
 * @returns {Promise<{ elapsedMs: number, cpuMs: number, latenciesMs: Float64Array }>} one latency for each acquire and release
 */
export async function run(world, { callers, ms, prefix }) {
  const locked = lockedBy(await world.client());
  const latencies = [];
  const cpu = process.cpuUsage();
  const startedAt = performance.now();
  const endsAt = startedAt + ms;
  const call = async (resource) => {
    for (let now = performance.now(); now < endsAt;) {
      await locked(resource, nothing);
      const after = performance.now();
      latencies.push(after - now);
      now = after;
    }
  };
  await Promise.all(Array.from({ length: callers }, (_, caller) => call(`${prefix}:${caller}`)));
  const elapsedMs = performance.now() - startedAt;
  const { user, system } = process.cpuUsage(cpu);
  return { elapsedMs, cpuMs: (user + system) / 1000, latenciesMs: Float64Array.from(latencies) };
}

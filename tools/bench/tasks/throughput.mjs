// Callers that lock and unlock, each a resource of its own, for some time.

/**
 * @param {{ callers: number, ms: number, prefix: string }} args
 * @returns {Promise<{ elapsedMs: number, latenciesMs: Float64Array }>} one latency for each acquire and release
 */
export async function run(world, { callers, ms, prefix }) {
  const { acquire, release } = await world.client();
  const latencies = [];
  const startedAt = performance.now();
  const endsAt = startedAt + ms;
  const call = async (resource) => {
    for (let now = performance.now(); now < endsAt;) {
      const lease = await acquire(resource);
      if (release !== undefined) await release(lease);
      const after = performance.now();
      latencies.push(after - now);
      now = after;
    }
  };
  await Promise.all(Array.from({ length: callers }, (_, caller) => call(`${prefix}:${caller}`)));
  return { elapsedMs: performance.now() - startedAt, latenciesMs: Float64Array.from(latencies) };
}

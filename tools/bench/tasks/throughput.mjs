// Callers that lock and unlock, each a resource of its own, for some time.

/**
 * @param {{ callers: number, ms: number, prefix: string, permits?: number, resources?: number, tuning?: object }} args
 *   `permits` of a semaphore, in place of a lock; `resources` at once, in place of one
 * @returns {Promise<{ elapsedMs: number, latenciesMs: Float64Array }>} one latency for each acquire and release
 */
export async function run(world, { callers, ms, prefix, permits, resources, tuning }) {
  const client = await world.client(tuning);
  const { acquire, release } = callsOf(client, { permits, resources });
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

function callsOf(client, { permits, resources }) {
  if (permits !== undefined) return client.semaphore(permits);
  if (resources === undefined) return client;
  const namesOf = (prefix) => Array.from({ length: resources }, (_, index) => `${prefix}:${index}`);
  return {
    acquire: (prefix) => client.acquireAll(namesOf(prefix)),
    release: client.releaseAll ?? client.release,
  };
}

// One step of a hand-over, so that the parent decides when it happens.
import { Redis } from 'ioredis';
import { nowNs } from '../measure/clock.mjs';

/** @param {{ step: 'acquire' | 'release' | 'ping', resource: string, tuning?: object }} args */
export async function run(world, { step, resource, tuning }) {
  return steps[step](world, await world.client(tuning), resource);
}

const steps = {
  async acquire(world, client, resource) {
    const lease = await client.acquire(resource);
    const at = nowNs();
    world.kept.set(resource, lease);
    return at;
  },
  async release(world, client, resource) {
    const at = nowNs();
    await client.release(world.kept.get(resource));
    return at;
  },
  /** Nanoseconds of a round trip from this process. */
  async ping(world) {
    world.kept.set('ping', world.kept.get('ping') ?? new Redis(world.url));
    const startedAt = nowNs();
    await world.kept.get('ping').ping();
    return nowNs() - startedAt;
  },
};

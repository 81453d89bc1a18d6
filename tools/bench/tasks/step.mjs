// One step of a hand-over, so that the parent decides when it happens.
import { Redis } from 'ioredis';
import { nowNs } from '../measure/clock.mjs';

/** @param {{ step: 'acquire' | 'release' | 'ping' | 'subscribe' | 'hear' | 'publish', resource: string, tuning?: object, mark?: string }} args */
export async function run(world, { step, resource, tuning, mark }) {
  return steps[step](world, await world.client(tuning), resource, mark);
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
  /** Once: whatever is published on the channel of the resource counts from now on. */
  async subscribe(world, client, resource) {
    const subscriber = new Redis(world.url);
    const heard = { at: new Map(), tell: undefined };
    world.kept.get('subscriber')?.disconnect();
    world.kept.set('subscriber', subscriber).set('heard', heard);
    subscriber.on('message', (_channel, mark) => {
      heard.at.set(mark, nowNs());
      heard.tell?.();
    });
    await subscriber.subscribe(`bench:${resource}`);
  },
  /** When the message with this mark comes, or came. */
  async hear(world, client, resource, mark) {
    const heard = world.kept.get('heard');
    while (!heard.at.has(mark)) await new Promise((resolve) => (heard.tell = resolve));
    return heard.at.get(mark);
  },
  async publish(world, client, resource, mark) {
    const at = nowNs();
    await world.kept.get('ping').publish(`bench:${resource}`, mark);
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

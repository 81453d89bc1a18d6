import { Fleet, type InstanceSpec } from '../demo/fleet.mjs';
import type { ShopProcess } from '../demo/shop-process.mjs';
import type { RedisServer } from '../../test/support/redis/redis-server.js';

export const THREE: InstanceSpec[] = [{ name: 'shop-1' }, { name: 'shop-2' }, { name: 'shop-3' }];

/** Real processes of the shop for all tests of the enclosing file or `describe`. */
export function useFleet(
  redis: () => RedisServer,
  specs: InstanceSpec[] = THREE,
  env: Record<string, string> | (() => Record<string, string>) = {},
): () => Fleet {
  let fleet: Fleet | undefined;
  beforeAll(async () => {
    fleet = new Fleet(specs, { REDIS_URL: redis().url, ...(typeof env === 'function' ? env() : env) });
    await fleet.start();
  }, 120_000);
  afterAll(async () => {
    await fleet?.kill();
  });
  return () => {
    if (fleet === undefined) throw new Error('The fleet of useFleet() runs only inside tests and hooks');
    return fleet;
  };
}

/** Sends requests all at once, by turns to each instance, and gives how often each status came back. */
export async function rush(
  fleet: Fleet,
  times: number,
  send: (shop: ShopProcess, index: number) => ReturnType<ShopProcess['request']>,
): Promise<Record<number, number>> {
  const answers = await Promise.all(Array.from({ length: times }, (_, i) => send(fleet.byTurns(i), i)));
  const counts: Record<number, number> = {};
  for (const { status } of answers) counts[status] = (counts[status] ?? 0) + 1;
  return counts;
}

import { Redisson } from 'node-redisson';

export async function connect(url, { leaseMs = 30_000, asShipped = false } = {}) {
  const { hostname, port } = new URL(url);
  const redisson = new Redisson({ redis: { options: { host: hostname, port: Number(port) } } });
  return {
    async acquire(resource) {
      const lock = redisson.getLock(resource);
      await lock.lock(asShipped ? undefined : leaseMs);
      return lock;
    },
    release: (lock) => lock.unlock(),
    close: () => redisson.quit(),
  };
}

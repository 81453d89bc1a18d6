import { Redis } from 'ioredis';

/** How the libraries of the old pods are called here. */
export const LIBRARIES = ['redlock4', 'redlock5', 'redisSemaphore', 'murlock', 'setNx'] as const;
export type Library = (typeof LIBRARIES)[number];

/** How long the old locks last, and our leases. */
export const LEASE_MS = 2_000;
/** The databases of the old locks: `redlock5` votes on three of them. */
export const OLD_DATABASES = [1, 2, 3];
export const OLD_PREFIX = 'old:';

/** What the test tells a pod: to die or to stand still in the middle of its next work, or to end. */
export type Order = 'kill' | 'stop' | 'end';

export const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** Waits for each lock in turn, does the work under it, and so on until the pod ends. */
type Locked = (library: Library, work: (checkHeld: () => void) => Promise<void>) => Promise<void>;

/**
 * One pod: for each library, it reads a counter under the lock, waits, and writes it. It does so again and again, for all
 * libraries side by side.
 */
export async function runPod(kind: 'old' | 'new', url: string, locked: Locked): Promise<void> {
  const redis = new Redis(url);
  let order: Order | undefined;
  process.on('message', (message: Order) => (order = message));

  const obey = async (): Promise<void> => {
    if (order !== 'kill' && order !== 'stop') return;
    const signal = order === 'kill' ? 'SIGKILL' : 'SIGSTOP';
    order = undefined;
    await redis.incr(`${kind}:${signal}`);
    process.kill(process.pid, signal);
  };

  const count = async (library: Library, checkHeld: () => void): Promise<void> => {
    const value = Number(await redis.get(`count:${library}`));
    await sleep(1 + Math.random() * 3);
    await obey();
    checkHeld();
    // The second one is the book that the first is compared with, and not an increment of the counter.
    await redis
      .multi()
      .set(`count:${library}`, value + 1)
      .incr(`done:${library}:${kind}`)
      .exec();
  };

  const loop = async (library: Library): Promise<void> => {
    while (order !== 'end') {
      await locked(library, (checkHeld) => count(library, checkHeld));
      await sleep(Math.random() * 10);
    }
  };

  await redis.ping();
  process.send!('ready');
  await Promise.all(LIBRARIES.map(loop));
  redis.disconnect();
  process.disconnect();
}

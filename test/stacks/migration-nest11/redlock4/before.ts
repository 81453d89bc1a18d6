import { Redis } from 'ioredis';
import Redlock from 'redlock';

const redlock = new Redlock([new Redis(process.env.REDIS_URL!)], {
  retryCount: 20,
  retryDelay: 100,
});
redlock.on('clientError', (error) => console.error(error));

export async function transfer(
  from: string,
  to: string,
  work: () => Promise<void>,
) {
  const lock = await redlock.lock(
    [`account:${from}`, `account:${to}`],
    1_000,
  );
  try {
    await lock.extend(1_000); // once: the work has to end within a second
    await work();
  } finally {
    await lock.unlock();
  }
}

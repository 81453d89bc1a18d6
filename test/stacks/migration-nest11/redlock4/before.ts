import { Redis } from 'ioredis';
import Redlock from 'redlock';

const redlock = new Redlock([new Redis(process.env.REDIS_URL!)], {
  retryCount: 40,
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
    2_000,
  );
  try {
    await lock.extend(2_000); // once: the work has to end within that time
    await work();
  } finally {
    await lock.unlock();
  }
}

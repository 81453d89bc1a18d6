import { Redis } from 'ioredis';
import Redlock from 'redlock';
import { crowd, type Locked } from '../../migration-guides/stories.js';
import { transfer } from './before.js';

export async function tellRedlock4() {
  const calls: Locked[] = [(work) => transfer('c', 'd', work), (work) => transfer('d', 'c', work)];
  const redlock = new Redlock([new Redis(process.env.REDIS_URL!)], { retryCount: 2, retryDelay: 10 });
  await redlock.lock('e', 60_000);
  return {
    transfers: await crowd(100, calls),
    longTransfers: await crowd(3_500, calls),
    withoutRetry: await redlock.lockWithOptions('e', 1_000, { retryCount: 0 }).catch((error: Error) => error.message),
  };
}

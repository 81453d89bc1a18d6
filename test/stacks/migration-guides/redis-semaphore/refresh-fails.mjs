// Holds a mutex while Redis becomes a replica, as after a fail-over, and so refuses to write.
import { Redis } from 'ioredis';
import { Mutex } from 'redis-semaphore';

const redis = new Redis(process.env.REDIS_URL);
const options = { lockTimeout: 10_000, refreshInterval: 400 };
const mutex = new Mutex(redis, 'a', { ...options, onLockLost: () => console.log('lost') });
await mutex.acquire();
await redis.replicaof('127.0.0.1', 1);
setTimeout(() => {
  console.log('alive');
  redis.disconnect();
}, 1_500);

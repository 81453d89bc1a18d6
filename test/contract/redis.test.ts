import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { RedisLockStore } from '../../lib/redis/redis-lock-store.js';
import { RedisTickLedger } from '../../lib/redis/redis-tick-ledger.js';
import { useRedis } from '../support/redis-server.js';
import { describeLockStore } from './lock-store.contract.js';
import { contender, LONG_MS, type Subject, take } from './subject.js';
import { describeTickLedger } from './tick-ledger.contract.js';
import { describeWakeUps } from './wake-ups.contract.js';

let admin: Redis;
let subjects = 0;

// Before the server stops: hooks run in the order they are written.
afterAll(() => admin.disconnect());
const redis = useRedis();
beforeAll(() => {
  admin = new Redis(redis().url);
});

async function onRedis(): Promise<Subject> {
  const keyPrefix = `contract-${++subjects}`;
  const stores: RedisLockStore[] = [];
  return {
    async open(instanceId) {
      const store = new RedisLockStore({ connection: redis().url, keyPrefix, instanceId, leaseMs: LONG_MS });
      stores.push(store);
      if (!(await store.start(10_000))) throw new Error(store.describeTrouble());
      return { store, ledger: new RedisTickLedger(store) };
    },
    async kill(instanceId) {
      await stores.find((store) => store.instanceId === instanceId)?.close();
      const channel = `${keyPrefix}:inbox:${instanceId}`;
      while ((await admin.pubsub('NUMSUB', channel))[1] !== 0) await sleep(5);
    },
    pass: (ms) => sleep(ms),
    async close() {
      for (const store of stores) await store.close();
    },
  };
}

describe('the Redis lock store', () => {
  describeLockStore(onRedis);
  describe('wake-ups', () => describeWakeUps(onRedis));

  it('keeps nothing of a resource after its last release, but the one fence key', async () => {
    const subject = await onRedis();
    const { store } = await subject.open('one');
    const owner = contender(store, 'stock');
    await take(store, owner);
    await store.acquire(contender(store, 'stock'), LONG_MS, true);
    await store.release(owner, true);
    expect(await admin.keys(`contract-${subjects}:*`)).toEqual([`contract-${subjects}:fence`]);
    await subject.close();
  });
});

describe('the Redis tick ledger', () => describeTickLedger(onRedis));

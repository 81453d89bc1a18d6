import { setTimeout as sleep } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import type { RedisConnectionOption } from '../../../lib/redis/connection/connection-options.js';
import type { Durability } from '../../../lib/redis/durability/durability.js';
import { RedisJobStore } from '../../../lib/redis/redis-job-store.js';
import { RedisLatchStore } from '../../../lib/redis/redis-latch-store.js';
import { RedisLockStore } from '../../../lib/redis/redis-lock-store.js';
import { RedisTickStore } from '../../../lib/redis/redis-tick-store.js';
import { describeDeadHolder } from '../contract/dead-holder.contract.js';
import { describeDowngrade } from '../contract/downgrade.contract.js';
import { describeGrants, describeGrantTerms } from '../contract/grants.contract.js';
import { describeLatchHistories } from '../other-ports/latch-histories.contract.js';
import { describeLatchStore } from '../other-ports/latch-store.contract.js';
import { describeLockStore } from '../contract/lock-store.contract.js';
import { describeOperators } from '../contract/operators.contract.js';
import { describeQueue } from '../contract/queue.contract.js';
import { describeReadWrite } from '../contract/read-write.contract.js';
import { describeRetention } from '../contract/retention.contract.js';
import { describeRotation } from '../contract/rotation.contract.js';
import { describeLabels } from '../contract/label.contract.js';
import { describeSeenHolders } from '../contract/seen-holders.contract.js';
import { describeSemaphore } from '../contract/semaphore.contract.js';
import { describeSemaphoreSize } from '../contract/semaphore-size.contract.js';
import { describeStoreModel } from '../histories/store-model.contract.js';
import { LONG_MS, type Subject } from './subject.js';
import { describeJobStore } from '../other-ports/job-store.contract.js';
import { describeTickStore } from '../other-ports/tick-store.contract.js';
import { describeTransfer } from '../contract/transfer.contract.js';
import { describeWatch } from '../other-ports/watch.contract.js';
import { describeWriter } from '../contract/writer.contract.js';
import { runs } from '../../support/simulation/runs.js';

/** A Redis that the contract is tried on, or several that stand for one. */
export interface RedisSite extends AsyncDisposable {
  /** How a store finds it. */
  readonly connection: RedisConnectionOption;
  /** What replicas have to have. */
  readonly durability?: Durability;
  /** Clients with all rights, one for each primary. */
  readonly admins: readonly Redis[];
  /** How the server is brought to notice that an instance is dead. @default by the end of its subscription */
  notice?(dead: RedisLockStore): Promise<void>;
}

/**
 * Lets so long pass by the clock of a server. A timer may fire up to a millisecond early, and the server rounds both of the times
 * down that it compares.
 */
export const passOnServer = (ms: number): Promise<void> => sleep(ms + 2);

/** The time of a server, in milliseconds since the Unix epoch. */
export async function timeOf(admin: Redis): Promise<number> {
  const [seconds, microseconds] = await admin.time();
  return Number(seconds) * 1_000 + Math.floor(Number(microseconds) / 1_000);
}

/** Stores on a site, for the contract. */
export function useSubjectsOn(openSite: () => Promise<RedisSite>): () => Promise<Subject> {
  let site: RedisSite;
  let subjects = 0;
  beforeAll(async () => void (site = await openSite()), 60_000);
  afterAll(() => site?.[Symbol.asyncDispose]());

  return async () => {
    const keyPrefix = `lock:contract-${++subjects}`;
    const stores: RedisLockStore[] = [];
    return {
      async open(instanceId) {
        const { connection, durability } = site;
        const store = new RedisLockStore({ connection, keyPrefix, instanceId, leaseMs: LONG_MS, durability });
        stores.push(store);
        if (!(await store.start(10_000))) throw new Error(store.describeTrouble());
        return {
          store,
          tickStore: new RedisTickStore(store),
          latches: new RedisLatchStore(store),
          jobs: new RedisJobStore(store),
        };
      },
      async kill(instanceId) {
        const victim = stores.find((store) => store.instanceId === instanceId)!;
        await victim.close();
        if (site.notice) return site.notice(victim);
        const channel = victim.keys.inbox(victim.clientId);
        const countListeners = async (admin: Redis) => Number((await admin.pubsub('NUMSUB', channel))[1]);
        while ((await Promise.all(site.admins.map(countListeners))).some((count) => count > 0)) await sleep(5);
      },
      now: () => timeOf(site.admins[0]!),
      pass: passOnServer,
      async expireLatch(name) {
        const { keys } = stores[0]!;
        for (const admin of site.admins) {
          // On a cluster, those that do not have the slot refuse.
          await admin.del(keys.latch(name), keys.latchWaiters(name)).catch(() => undefined);
        }
      },
      async isEmpty() {
        const keys = await Promise.all(site.admins.map((admin) => admin.keys(`${keyPrefix}:*`)));
        // The last fencing tick stays: one key for all resources, or for those of one slot.
        return keys.flat().every((key) => /^[^{}]*:(\{[^{}]*\}:)?fence$/.test(key));
      },
      async close() {
        for (const store of stores) await store.close();
      },
    };
  };
}

/**
 * The contract on a Redis.
 *
 * @param part `locks` and cron ticks alone, without random histories: for a site that differs only in how it is found
 * @param histories how many random ones are tried; of locks none where tokens do not grow over all resources, as those of the model
 */
export function describeOnRedis(
  openSite: () => Promise<RedisSite>,
  part: 'all' | 'locks' = 'all',
  histories = { locks: runs(25), latches: runs(60) },
): void {
  const onRedis = useSubjectsOn(openSite);

  describe('the Redis lock store', () => {
    describeLockStore(onRedis);
    describe('the queue', () => describeQueue(onRedis));
    describe('grants', () => describeGrants(onRedis));
    describe('grants', () => describeGrantTerms(onRedis));
    describe('a dead holder', () => describeDeadHolder(onRedis));
    describe('rotate', () => describeRotation(onRedis));
    describe('what is seen of the holders', () => describeSeenHolders(onRedis));
    describe('the label', () => describeLabels(onRedis));
    describe('a read/write lock', () => describeReadWrite(onRedis));
    describe('a writer', () => describeWriter(onRedis));
    describe('downgrade', () => describeDowngrade(onRedis));
    describe('a semaphore', () => describeSemaphore(onRedis));
    describe('a semaphore', () => describeSemaphoreSize(onRedis));
    describe('retain', () => describeRetention(onRedis));
    describe('transfer', () => describeTransfer(onRedis));
    describe('an operator', () => describeOperators(onRedis));
    describe('a watcher', () => describeWatch(onRedis));
    if (part === 'locks') return;
    if (histories.locks === 0) return;
    describe('in any history', () => {
      const pace = { unitMs: LONG_MS, slackMs: LONG_MS / 2, hasRoughReplies: true };
      describeStoreModel(onRedis, { ...pace, numRuns: histories.locks, withTime: false });
    });
  });

  describe('the Redis tick store', () => describeTickStore(onRedis));
  describe('the Redis job store', () => describeJobStore(onRedis));

  if (part === 'locks') return;
  describe('the Redis latch store', () => {
    describeLatchStore(onRedis);
    describeLatchHistories(onRedis, histories.latches);
  });
}

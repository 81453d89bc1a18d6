import { setTimeout as sleep } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import type { RedisConnectionOption } from '../../../lib/redis/connection/connection-options.js';
import type { Durability } from '../../../lib/redis/durability/durable-connection.js';
import { RedisResultStore } from '../../../lib/features/once/redis/redis-result-store.js';
import { RedisJobStore } from '../../../lib/features/jobs/redis/redis-job-store.js';
import { RedisLockStore } from '../../../lib/redis/redis-lock-store.js';
import * as scripts from '../../../lib/redis/script/scripts.js';
import { describeStoreModel } from '../histories/store-model.contract.js';
import type { ContractRunner, StoreSubject } from '../../contract/subject.js';
import { LONG_MS } from '../../contract/requests.js';
import { describeJobStore, describeLockStore, describeResultStore } from '../../contract/describe-stores.js';
import { runs } from '../../support/simulation/runs.js';

/** A Redis that the contract is tried on, or several that stand for one. */
export interface RedisSite extends AsyncDisposable {
  /** The store's connection. */
  readonly connection: RedisConnectionOption;
  /** The durability of replicas. */
  readonly durability?: Durability;
  /** Clients with all rights, one for each primary. */
  readonly admins: readonly Redis[];
  /** Makes the server notice that an instance is dead. @default ends its subscription */
  notice?(dead: RedisLockStore): Promise<void>;
}

/**
 * Waits for this time on the clock of a server. A timer may fire up to a millisecond early, and the server rounds down
 * both of the times that it compares.
 */
export const passOnServer = (ms: number): Promise<void> => sleep(ms + 2);

/** The time of a server, in milliseconds since the Unix epoch. */
export async function timeOf(admin: Redis): Promise<number> {
  const [seconds, microseconds] = await admin.time();
  return Number(seconds) * 1_000 + Math.floor(Number(microseconds) / 1_000);
}

/** Scripts of fences, checks, nodes of a quorum, and `exec`. */
const OF_NO_STORE = ['guard', 'probe', 'probeInbox', 'quarantine', 'exchangeClaim', 'markDone'];

/**
 * Stores on a site, for the contract.
 *
 * @param ran the names of the scripts that were run
 */
export function useSubjectsOn(
  openSite: () => Promise<RedisSite>,
  ran = new Set<string>(),
): () => Promise<StoreSubject> {
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
        const run = store.run.bind(store);
        store.run = (script, ...call) => {
          ran.add(script.name);
          return run(script, ...call);
        };
        if (!(await store.start(10_000))) throw new Error(store.connection.describeTrouble());
        return {
          locks: store,
          jobs: new RedisJobStore(store),
          results: new RedisResultStore(store),
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
      async isEmpty() {
        const keys = await Promise.all(site.admins.map((admin) => admin.keys(`${keyPrefix}:*`)));
        // The last fencing tick stays: one key for all resources, or one per slot.
        return keys.flat().every((key) => /^[^{}]*:(\{[^{}]*\}:)?fence$/.test(key));
      },
      async close() {
        for (const store of stores) await store.close();
      },
    };
  };
}

/** Which tests a site runs, and how many random histories it tries. */
interface SiteTests {
  /** @default all tests */
  readonly runner?: ContractRunner;
  /** 0 if tokens, unlike the model's, don't grow over all resources. @default as for one Redis */
  readonly histories?: number;
}

/** The contract on a Redis, whose tests run every script of the stores at least once. */
export function describeOnRedis(
  openSite: () => Promise<RedisSite>,
  { runner = { describe, it }, histories = runs(25, 15) }: SiteTests = {},
): void {
  const ran = new Set<string>();
  const onRedis = useSubjectsOn(openSite, ran);

  describe('the Redis lock store', () => {
    describeLockStore(runner, onRedis);
    if (histories === 0) return;
    describe('in any history', () => {
      const pace = { unitMs: LONG_MS, slackMs: LONG_MS / 2, hasRoughReplies: true };
      describeStoreModel(onRedis, { ...pace, numRuns: histories, withTime: false });
    });
  });

  describe('the Redis job store', () => describeJobStore(runner, onRedis));

  describe('the Redis store of results', () => describeResultStore(runner, onRedis));

  it('has run every script of these stores: another way to a server may refuse the keys of any', () => {
    const all = Object.values(scripts).map(({ name }) => name);
    expect(all.filter((name) => !ran.has(name)).sort()).toEqual([...OF_NO_STORE].sort());
  });
}

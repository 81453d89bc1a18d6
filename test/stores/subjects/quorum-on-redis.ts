import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { SystemClock, SystemRandom } from '../../../lib/kernel/util/clock.js';
import { QuorumLockStore } from '../../../lib/quorum/quorum-lock-store.js';
import { QuorumClaims } from '../../../lib/quorum/quorum-claims.js';
import { createClientId, RedisLockStore } from '../../../lib/redis/redis-lock-store.js';
import { RedisJobStore } from '../../../lib/features/jobs/redis/redis-job-store.js';
import { forgetful } from '../../support/world/forgetful.js';
import { lockConnection } from '../../support/redis/lock-user.js';
import { useServers } from '../../support/redis/quorum-servers.js';
import { passOnServer, timeOf } from './on-redis.js';
import { LONG_MS } from '../../contract/requests.js';
import type { StoreSubject } from '../../contract/subject.js';

/** A quorum of so many servers, fresh for every test. */
export function useQuorumOnRedis(nodes: number): () => Promise<StoreSubject> {
  let admins: Redis[] = [];
  let subjects = 0;
  afterAll(() => admins.forEach((admin) => admin.disconnect()));
  const servers = useServers(nodes);
  beforeAll(() => {
    admins = servers().map(({ url }) => new Redis(url));
  });
  return async () => {
    const keyPrefix = `lock:contract-${++subjects}`;
    const opened: { readonly quorum: QuorumLockStore; readonly stores: readonly RedisLockStore[] }[] = [];
    return {
      async open(instanceId) {
        const clientId = createClientId(instanceId);
        const stores = servers().map(({ url }) => {
          const connection = lockConnection(url);
          return new RedisLockStore({ connection, keyPrefix, instanceId, leaseMs: LONG_MS, clientId });
        });
        const started = await Promise.all(stores.map((store) => store.start(10_000)));
        if (started.includes(false)) throw new Error('not all nodes are there');
        // The contract counts from 0, but a stamp of long ago would belong to an expired vote.
        const from = performance.now();
        const clock = Object.assign(new SystemClock(), { now: () => performance.now() - from });
        const deps = { clock, random: new SystemRandom() };
        const members = stores.map((store, index) => ({ name: 'abcdefghi'[index]!, store }));
        // A busy machine must not exclude a node.
        const quorum = new QuorumLockStore({ ...deps, nodes: members, nodeTimeoutMs: 2_000, fencing: true });
        opened.push({ quorum, stores });
        const claims = stores.map((store) => new RedisJobStore(store));
        const jobs = forgetful(new QuorumClaims(quorum, claims, deps.clock, deps.random));
        return { locks: quorum, jobs };
      },
      async kill(instanceId) {
        const { quorum, stores } = opened.find(({ quorum: { instanceId: id } }) => id === instanceId)!;
        await quorum.close();
        for (const [index, { keys, clientId }] of stores.entries()) {
          while ((await admins[index]!.pubsub('NUMSUB', keys.inbox(clientId)))[1] !== 0) await sleep(5);
        }
      },
      now: () => timeOf(admins[0]!),
      pass: passOnServer,
      async isEmpty() {
        // A majority has answered; the others are still executing earlier commands.
        for (let tries = 0; tries < 200; tries++) {
          const keys = await Promise.all(admins.map((admin) => admin.keys(`${keyPrefix}:*`)));
          if (keys.flat().every((key) => key === `${keyPrefix}:fence`)) return true;
          await sleep(5);
        }
        return false;
      },
      async close() {
        for (const { quorum } of opened) await quorum.close();
      },
    };
  };
}

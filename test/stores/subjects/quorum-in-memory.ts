import { type Clock, SystemClock, SystemRandom } from '../../../lib/kernel/util/clock.js';
import { MemoryLockStore } from '../../../lib/memory/memory-lock-store.js';
import { MemoryServer } from '../../../lib/memory/memory-server.js';
import { QuorumLockStore } from '../../../lib/quorum/quorum-lock-store.js';
import { QuorumClaims } from '../../../lib/quorum/quorum-claims.js';
import type { StoreSubject } from '../../contract/subject.js';
import { forgetful, jobsOn } from '../../support/world/forgetful.js';

let clients = 0;

/** A quorum of so many servers in this process. */
export function quorumInMemory(nodes: number, clock: Clock, pass: (ms: number) => Promise<void>): StoreSubject {
  const servers = Array.from({ length: nodes }, () => new MemoryServer(clock));
  const stores: QuorumLockStore[] = [];
  const from = clock.now();
  // The contract counts from 0, but a stamp of long ago would belong to an expired vote.
  const fromZero: Clock = {
    now: () => clock.now() - from,
    wallNow: () => clock.wallNow(),
    setTimer: (callback, delayMs, options) => clock.setTimer(callback, delayMs, options),
  };
  return {
    async open(instanceId) {
      const clientId = `${instanceId}/${++clients}`;
      const members = servers.map((server, index) => ({
        name: 'abcdefghi'[index]!,
        store: new MemoryLockStore({ instanceId, server, clientId }),
      }));
      const random = new SystemRandom();
      const store = new QuorumLockStore({ nodes: members, clock: fromZero, random, nodeTimeoutMs: 100, fencing: true });
      stores.push(store);
      const claims = servers.map((server) => jobsOn(server));
      const jobs = forgetful(new QuorumClaims(store, claims, new SystemClock(), random));
      return { locks: store, jobs };
    },
    async kill(instanceId) {
      await stores.find((store) => store.instanceId === instanceId)?.close();
    },
    now: async () => clock.wallNow(),
    pass,
    isEmpty: async () => servers.every((server) => server.isEmpty),
    async close() {
      for (const store of stores) await store.close();
    },
  };
}

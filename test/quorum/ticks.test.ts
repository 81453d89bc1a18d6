import { SystemClock, SystemRandom } from '../../lib/kernel/util/clock.js';
import { MemoryLockStore } from '../../lib/memory/memory-lock-store.js';
import { MemoryServer } from '../../lib/memory/memory-server.js';
import { RedisJobStore } from '../../lib/features/jobs/redis/redis-job-store.js';
import { QuorumLockStore } from '../../lib/quorum/quorum-lock-store.js';
import { QuorumClaims } from '../../lib/quorum/quorum-claims.js';
import type { ClaimChange, ClaimNode, TickClaim } from '../../lib/features/jobs/core/job-claims.js';
import { jobsOn } from '../support/world/forgetful.js';

const LEASE_MS = 30_000;
const KEEP_MS = 120_000;

describe('ticks that are times, on a quorum', () => {
  let stores: QuorumLockStore[];
  let nodes: RedisJobStore[];
  let servers: MemoryServer[];
  let now: number;
  let wallNow: number;

  beforeEach(() => {
    now = Date.now();
    wallNow = now;
    const clock = new SystemClock();
    const ofServers = { ...withMethods(clock), wallNow: () => wallNow };
    servers = Array.from({ length: 3 }, () => new MemoryServer(ofServers));
    nodes = servers.map((server) => jobsOn(server));
    stores = [];
  });
  afterEach(async () => {
    for (const store of stores) await store.close();
  });

  function open(instanceId: string, claims: readonly ClaimNode[] = nodes) {
    const clock = new SystemClock();
    const random = new SystemRandom();
    const members = servers.map((server, index) => ({
      name: 'abc'[index]!,
      store: new MemoryLockStore({ instanceId, server, clientId: `${instanceId}/1` }),
    }));
    const store = new QuorumLockStore({ nodes: members, clock, random, nodeTimeoutMs: 1_000 });
    stores.push(store);
    return {
      store,
      jobs: new QuorumClaims(store, claims, clock, random),
      owner: `${instanceId}/1/${random.id()}`,
    };
  }

  const resource = 'cron:report';
  const due = () => ({ at: now, earlyMs: 20_000, lateMs: 30_000 });
  const target = () => ({ resource, tick: new Date(now).toISOString() });

  function wish(owner: string): TickClaim {
    const lockOwner = { resource, id: owner, mode: 'exclusive' as const };
    return {
      owner: lockOwner,
      leaseMs: LEASE_MS,
      claimTtlMs: KEEP_MS,
      overlap: 'wait',
      takeOver: 'nothing',
      due: due(),
    };
  }

  it('claims a tick that waits after its claims were split, and all of them given up', async () => {
    // While an earlier run holds the lock, two others write their claims a moment before this one, and give them up
    // with it.
    const rivals = ['one/1/x first', 'two/1/x second'];
    let splits = 0;
    const claims = nodes.map((node, index): ClaimNode => {
      const rival = rivals[index];
      return {
        async exchange(tick, change: ClaimChange) {
          if (rival && change.to !== undefined && splits++ < rivals.length) {
            await node.exchange(tick, { owner: rival, to: rival, claimTtlMs: KEEP_MS, due: due(), isJudged: true });
          }
          if (rival && change.drop !== undefined) await node.exchange(tick, { owner: rival, drop: rival });
          return node.exchange(tick, change);
        },
      };
    });
    const busy = open('busy');
    await busy.store.acquire({ resource, id: busy.owner, mode: 'exclusive' }, LEASE_MS);
    const { jobs, owner } = open('three', claims);
    expect(await jobs.claim(target(), wish(owner))).toMatchObject({ status: 'claimed' });
  });

  it('refuses a tick that is too late at a majority, though it was given back at one node', async () => {
    const once = open('once');
    expect(await once.jobs.claim(target(), wish(once.owner))).toMatchObject({ status: 'granted' });
    await once.store.release({ resource, id: once.owner, mode: 'exclusive' });
    // Longer than two nodes remember it; at the third, a claim of another process was given back late.
    for (const [index, { redis, keys }] of servers.entries()) {
      const claim = keys.tick(resource, target().tick);
      redis.del(claim);
      if (index === 0) redis.set(claim, 'returned', 'PX', KEEP_MS);
    }
    wallNow += 60_000;
    const stopped = open('stopped');
    expect(await stopped.jobs.claim(target(), wish(stopped.owner))).toMatchObject({ status: 'late' });
  });
});

function withMethods(clock: SystemClock) {
  return {
    now: () => clock.now(),
    setTimer: (...args: Parameters<SystemClock['setTimer']>) => clock.setTimer(...args),
  };
}

import { SystemClock } from '../../lib/core/util/clock.js';
import { InMemoryLockStore } from '../../lib/memory/memory-lock-store.js';
import { InMemoryServer } from '../../lib/memory/memory-server.js';
import { InMemoryTickLedger } from '../../lib/memory/memory-tick-store.js';
import { QuorumLockStore } from '../../lib/quorum/quorum-lock-store.js';
import { QuorumTickLedger } from '../../lib/quorum/quorum-tick-store.js';
import { SystemRandom } from '../../lib/core/util/random.js';
import type { ClaimChange, TickClaims } from '../../lib/core/store/tick-claims.js';
import type { TickClaim } from '../../lib/core/store/tick-store.js';

const LEASE_MS = 30_000;
const KEEP_MS = 120_000;

describe('ticks that are times, on a quorum', () => {
  let stores: QuorumLockStore[];
  let nodes: InMemoryTickLedger[];
  let servers: InMemoryServer[];
  let now: number;
  let wallNow: number;

  beforeEach(() => {
    now = Date.now();
    wallNow = now;
    const clock = new SystemClock();
    const ofServers = { ...withMethods(clock), wallNow: () => wallNow };
    servers = Array.from({ length: 3 }, () => new InMemoryServer(ofServers));
    nodes = servers.map((server) => new InMemoryTickLedger(server));
    stores = [];
  });
  afterEach(async () => {
    for (const store of stores) await store.close();
  });

  function open(instanceId: string, claims: readonly TickClaims[] = nodes) {
    const clock = new SystemClock();
    const random = new SystemRandom();
    const members = servers.map((server, index) => ({
      name: 'abc'[index]!,
      store: new InMemoryLockStore({ instanceId, server, clientId: `${instanceId}/1` }),
    }));
    const store = new QuorumLockStore({ nodes: members, clock, random, nodeTimeoutMs: 1_000 });
    stores.push(store);
    return {
      store,
      ledger: new QuorumTickLedger(store, claims, clock, random),
      owner: `${instanceId}/1/${random.id()}`,
    };
  }

  const resource = 'cron:report';
  const due = () => ({ at: now, earlyMs: 20_000, lateMs: 30_000 });
  const target = () => ({ resource, tick: new Date(now).toISOString() });

  function wish(owner: string): TickClaim {
    const ownership = { resource, owner, mode: 'exclusive' as const };
    return { ownership, leaseMs: LEASE_MS, keepMs: KEEP_MS, overlap: 'wait', takeOver: 'nothing', due: due() };
  }

  it('claims a tick that waits after its claims were split, and all of them given up', async () => {
    // While an earlier run holds the lock, two others write their claims a moment before this one, and give them up with it.
    const rivals = ['one/1/x first', 'two/1/x second'];
    let splits = 0;
    const claims = nodes.map((node, index): TickClaims => {
      const rival = rivals[index];
      return {
        async exchange(tick, change: ClaimChange) {
          if (rival && change.to !== undefined && splits++ < rivals.length) {
            await node.exchange(tick, { owner: rival, to: rival, keepMs: KEEP_MS, due: due(), isJudged: true });
          }
          if (rival && change.drop !== undefined) await node.exchange(tick, { owner: rival, drop: rival });
          return node.exchange(tick, change);
        },
      };
    });
    const busy = open('busy');
    await busy.store.acquire({ resource, owner: busy.owner, mode: 'exclusive' }, LEASE_MS);
    const { ledger, owner } = open('three', claims);
    expect(await ledger.claim(target(), wish(owner))).toMatchObject({ status: 'claimed' });
  });

  it('refuses a tick that is too late at a majority, though it was given back at one node', async () => {
    const once = open('once');
    expect(await once.ledger.claim(target(), wish(once.owner))).toMatchObject({ status: 'granted' });
    await once.store.release({ resource, owner: once.owner, mode: 'exclusive' });
    // Longer than two nodes remember it; at the third, a claim of another process was given back late.
    for (const [index, { claims }] of servers.entries()) {
      claims.delete(JSON.stringify([resource, target().tick]));
      if (index === 0) claims.set(JSON.stringify([resource, target().tick]), 'returned', KEEP_MS);
    }
    wallNow += 60_000;
    const stopped = open('stopped');
    expect(await stopped.ledger.claim(target(), wish(stopped.owner))).toMatchObject({ status: 'late' });
  });
});

function withMethods(clock: SystemClock) {
  return {
    now: () => clock.now(),
    setTimer: (...args: Parameters<SystemClock['setTimer']>) => clock.setTimer(...args),
  };
}

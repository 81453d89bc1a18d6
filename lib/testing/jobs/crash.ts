import { createOwnerId } from '../../core/store/owner-id.js';
import type { LockOwner } from '../../core/store/lock-store.js';
import type { Tick } from '../../core/store/job-claims.js';
import { SystemRandom } from '../../core/util/random.js';
import { memoryStores } from '../../memory/memory-lock-store.js';
import type { MemoryServer } from '../../memory/memory-server.js';

const LEASE_MS = 30_000;
const KEEP_MS = 366 * 24 * 60 * 60 * 1_000;

/**
 * Instances that no longer live began this tick: the next one that claims it reruns it. No lease has to end
 * first.
 *
 * @returns the status of the claim that was refused, if one was
 */
export async function crash(server: MemoryServer, tick: Tick): Promise<string | undefined> {
  const { locks, jobs } = memoryStores({ instanceId: 'crashed', server });
  const returned = { claim: { tick: tick.tick, to: 'returned', keepMs: KEEP_MS } } as const;
  const random = new SystemRandom();
  try {
    let owner: LockOwner | undefined;
    // The first one begins the run, and the second one reruns it: so the claim says that it is a rerun.
    for (const takeOver of ['nothing', 'unfinished'] as const) {
      owner = { resource: tick.resource, id: createOwnerId(locks.clientId, random), mode: 'exclusive' };
      const reply = await jobs.claim(tick, { owner, leaseMs: LEASE_MS, keepMs: KEEP_MS, overlap: 'wait', takeOver });
      if (reply.status !== 'granted') {
        if (reply.status === 'claimed') await jobs.end(owner, returned);
        return reply.status;
      }
      await locks.release(owner);
    }
    await jobs.end(owner!, returned);
    return undefined;
  } finally {
    await locks.close();
  }
}

import { type JobClaims, type JobStore, withoutRecords } from '../../../lib/features/jobs/core/job-store.js';
import { RedisJobStore } from '../../../lib/features/jobs/redis/redis-job-store.js';
import { MemoryLockStore } from '../../../lib/memory/memory-lock-store.js';
import { MemoryServer } from '../../../lib/memory/memory-server.js';

/** The claims of ticks, and no records: what a quorum has. */
export function forgetful(claims: JobClaims): JobStore {
  return withoutRecords('this test keeps no records of jobs', claims);
}

/** The jobs of a server in memory, without an instance of their own. */
export function jobsOn(server = new MemoryServer()): RedisJobStore {
  return new RedisJobStore(new MemoryLockStore({ instanceId: 'jobs', server }));
}

/** The claims on an in-memory server, and no records. */
export function claimsOn(server: MemoryServer): JobStore {
  return forgetful(jobsOn(server));
}

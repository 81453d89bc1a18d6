import { type JobClaims, type JobStore, withoutRecords } from '../../../lib/core/store/job-store.js';
import { MemoryClaims } from '../../../lib/memory/memory-claims.js';
import type { MemoryServer } from '../../../lib/memory/memory-server.js';

/** The claims of ticks, and no records: what a quorum has. */
export function forgetful(claims: JobClaims): JobStore {
  return withoutRecords('this test keeps no records of jobs', claims);
}

/** The claims on an in-memory server, and no records. */
export function claimsOn(server: MemoryServer): JobStore {
  return forgetful(new MemoryClaims(server));
}

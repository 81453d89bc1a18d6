import type { Runtime } from './runtime.js';
import type { StoreLease } from './store-lease.js';

/**
 * Releases a store lease in the store. Where its minimum is not over, the resource stays taken until then.
 *
 * @param lazily no caller waits for the answer
 * @returns whether it was still held
 */
export function releaseInStore(
  storeLease: StoreLease,
  { store, orphanReleases }: Pick<Runtime, 'store' | 'orphanReleases'>,
  lazily?: boolean,
): Promise<boolean> {
  const { owner, releasedBy } = storeLease;
  const retention = storeLease.retention();
  if (!retention && !releasedBy) return store.release(owner, lazily);
  orphanReleases.retain(owner, storeLease);
  return releasedBy ? releasedBy.release(lazily) : store.retain(owner, retention!, lazily);
}

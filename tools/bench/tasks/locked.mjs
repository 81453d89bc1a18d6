/**
 * How a contestant runs a section under a lock: by its own call for that, or acquire and release. A section that is not
 * async returns nothing, and then nothing waits for it.
 */
export function lockedBy({ acquire, release, using }) {
  if (using) return using;
  return async (resource, section) => {
    const lease = await acquire(resource);
    const running = section?.();
    if (running !== undefined) await running;
    if (release !== undefined) await release(lease);
  };
}

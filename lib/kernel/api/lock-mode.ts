/**
 * The modes in which a lock can be acquired.
 *
 * - `exclusive`: one holder. Locking it again in the same async context throws a `LockReentryError`.
 * - `reentrant`: one async context, which may re-enter any number of times; the last release frees it.
 * - `read`: any number of readers, and no other holder. A reader may re-enter.
 * - `write`: one writer, and no other holder. A writer may re-enter, to write or to read, and may become a reader.
 *
 * On one resource, all of them exclude each other, except that readers share it.
 */
export type AcquireMode = 'exclusive' | 'reentrant' | 'read' | 'write';

/** The mode in which a resource is held. */
export type LockMode = AcquireMode | 'semaphore';

/** Returns true if several holders may share a resource in this mode. */
export function isSharedMode(mode: LockMode): boolean {
  return mode === 'read' || mode === 'semaphore';
}

export const ACQUIRE_MODES: readonly AcquireMode[] = ['exclusive', 'reentrant', 'read', 'write'];
export const LOCK_MODES: readonly LockMode[] = [...ACQUIRE_MODES, 'semaphore'];

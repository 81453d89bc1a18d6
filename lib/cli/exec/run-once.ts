import type { CountdownLatch, Latches } from '../../core/latch/latches.js';

/** What `exec --once` remembers: that a command has ended well, under one key. */
export interface OnceMark {
  /** @throws LockError */
  isSet(): Promise<boolean>;
  /** @throws LockError */
  set(): Promise<void>;
}

/**
 * A latch that one count-down opens. Only a command that has ended well counts it down, so Redis keeps nothing of one
 * that failed, or whose runner was killed.
 *
 * @param key which version of the work, such as the tag of a release
 * @throws InvalidLockOptionsError
 */
export function onceMark(latches: Latches, resource: string, key: string, keepMs: number): OnceMark {
  // The key is encoded, so no other resource and key have the same name.
  const latch: CountdownLatch = latches.latch(`exec:${encodeURIComponent(key)}:${resource}`, 1, { ttlMs: keepMs });
  return {
    isSet: async () => (await latch.remaining()) === 0,
    set: async () => void (await latch.countDown({ id: 'done' })),
  };
}

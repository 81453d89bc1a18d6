import type { LockStores } from '../../core/store/lock-stores.js';

/** A store without which the test cannot run. @throws if `open` did not return it */
export function openedPart<T>(part: T | undefined, name: keyof LockStores): T {
  if (part !== undefined) return part;
  throw new Error(
    `open() returned no \`${name}\`, which this test needs. Return one, or leave these tests out: ` +
      (name === 'jobs' ? 'do not call describeJobStore, and set jobs: false.' : `do not test ${name}.`),
  );
}

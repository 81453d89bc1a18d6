// How the commands start Jest, and which files they leave out.
import { join } from 'node:path';
import { root } from './setup.mjs';

/** Files that `npm test` leaves to `npm run test:all`. */
export const SLOW = '\\.slow\\.test\\.ts$';
/** Files that only `npm run test:long` runs. */
export const LONG = '\\.long\\.test\\.ts$';

/** Arguments for Node. */
export function jest(...args) {
  return [
    '--experimental-vm-modules', // Nest 12 is ESM only
    '--disable-warning=ExperimentalWarning',
    join(root, 'node_modules/jest/bin/jest.js'),
    ...args,
  ];
}

import { isOnEveryServer } from '../../contract/suite.js';
import type { ContractRunner } from '../../contract/subject.js';

/**
 * Runs the tests that are marked `onEveryServer`: for another way to scripts that are tried in full on one Redis, or for
 * a quorum of servers, which is tried in full in memory. `npm run test:long` runs all tests.
 */
export const onEveryServer: ContractRunner = {
  describe,
  it(name, test) {
    if (process.env['TEST_SPEED'] === 'long' || isOnEveryServer(test)) it(name, test);
  },
};

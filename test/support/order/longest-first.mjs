// The order of the test files: the longest first, so that no worker waits for one that another began last.
import { relative } from 'node:path';
import TestSequencer from '@jest/test-sequencer';
import { readTimings } from '../../../scripts/timings/kept.mjs';
import { root } from '../../../scripts/setup.mjs';

/** A file that was never measured is taken for one of these seconds: behind the long ones, before the many that take none. */
const OF_A_NEW_FILE = 2;
const { files } = readTimings();

/** @param {string} path of a test file */
export function secondsOf(path) {
  return files[relative(root, path)] ?? OF_A_NEW_FILE;
}

export default class LongestFirst extends TestSequencer {
  /** Files that failed in the run before stay in front. */
  sort(tests) {
    const rank = (test) => (this.hasFailed(test) ? Infinity : secondsOf(test.path));
    const ranked = super.sort(tests).map((test) => ({ test, rank: rank(test) }));
    return ranked.sort((one, other) => compare(other.rank, one.rank)).map(({ test }) => test);
  }
}

/** Infinity minus Infinity is no number. */
function compare(one, other) {
  return one === other ? 0 : one - other;
}

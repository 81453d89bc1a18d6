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

/** The tests, as Jest has them, of files that failed in the run before. They stay in front. */
const failed = new WeakSet();

/** Of tests that run together: how far in front they are. */
export function rankOf(tests) {
  return tests.some((test) => failed.has(test)) ? Infinity : tests.reduce((sum, { path }) => sum + secondsOf(path), 0);
}

/** @param rank the larger it is, the further in front. Those of one rank stay in their order. */
export function inFront(all, rank) {
  const ranked = all.map((one) => ({ one, rank: rank(one) }));
  // Infinity minus Infinity is no number.
  return ranked.sort((a, b) => (a.rank === b.rank ? 0 : b.rank - a.rank)).map(({ one }) => one);
}

export default class LongestFirst extends TestSequencer {
  sort(tests) {
    for (const test of tests) if (this.hasFailed(test)) failed.add(test);
    return inFront(super.sort(tests), (test) => rankOf([test]));
  }
}

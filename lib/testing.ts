/**
 * Tests of code that uses locks, without Redis and without sleeping. Needs no test runner.
 *
 * @module nestjs-redis-lock/testing
 */

// The locks of an application under the control of a test
export { RedisLockTestingModule, withTestLocks } from './testing/redis-lock-testing.module.js';
export { testLocks } from './testing/test-locks-of.js';
export type { TestLocks } from './testing/test-locks.js';
export type { TestLocksOptions } from './testing/redis-lock-testing.module.js';
export type { HeldElsewhere } from './testing/hold-elsewhere.js';
export type { LockLogEntry } from './testing/fleet/lock-log.js';
export { TestKitError } from './testing/fleet/test-kit-error.js';
export type { FiredJob } from './testing/jobs/firing.js';

// Find the race
export { exploreRaces } from './testing/races/explore-races.js';
export type { ExploreRacesResult } from './testing/races/exploration.js';
export type { ExploreRacesOptions } from './testing/races/explore-options.js';
export { RaceFoundError, RaceToolError } from './testing/races/schedule/race-errors.js';
export type { RaceKit } from './testing/races/locks/race-kit.js';
export { raced, racePoint } from './testing/races/raced.js';

// Unit tests
export { passThroughLocks } from './testing/pass-through/pass-through-locks.js';
export { bindLocks } from './testing/pass-through/bind-locks.js';

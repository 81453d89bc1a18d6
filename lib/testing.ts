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
export type { FiredJob } from './features/jobs/testing/firing.js';

// Unit tests
export { passThroughLocks } from './testing/pass-through/pass-through-locks.js';
export { bindLocks } from './testing/pass-through/bind-locks.js';

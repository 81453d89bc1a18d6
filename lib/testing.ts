/**
 * Tests of code that uses locks, without Redis and without sleeping. Needs no test runner.
 *
 * @module nestjs-redis-lock/testing
 */

// The locks of an application under the control of a test
export { RedisLockTestingModule, type RedisLockTestingModuleOptions } from './testing/redis-lock-testing.module.js';
export { withTestLocks, type TestingBuilder } from './testing/with-test-locks.js';
export { testLocks } from './testing/test-locks-of.js';
export type { TestLocks } from './testing/test-locks.js';
export type { TestLocksOptions } from './testing/test-locks-options.js';
export type { HeldElsewhere, HoldElsewhereOptions } from './testing/hold-elsewhere.js';
export type { FailingVerb, TestFailure } from './testing/fleet/failures.js';
export type { LockLog, LockLogEntry } from './testing/fleet/lock-log.js';
export type { TestLossReason } from './testing/lose.js';
export type { TestClock, TestFleet } from './testing/fleet/test-fleet.js';
export { TestKitError, type TestKitErrorCode } from './testing/fleet/test-kit-error.js';

// Jobs
export type { TestJobs } from './testing/jobs/test-jobs.js';
export type { RunJobOptions } from './testing/jobs/run-job-options.js';
export type { FiredJob, NotRunReason, SkippedJob } from './testing/jobs/firing.js';

// Find the race
export { exploreRaces, type ExploreRacesResult } from './testing/races/explore-races.js';
export type { ActorOutcome, ActorOutcomes, ExploreRacesOptions, RaceActor } from './testing/races/explore-options.js';
export {
  type FoundRace,
  RaceFoundError,
  RaceToolError,
  type RaceToolProblem,
} from './testing/races/schedule/race-errors.js';
export type { AppWithLocks, FaultKind, RaceKit } from './testing/races/locks/race-kit.js';
export { racePoint, type RacePointOptions } from './testing/races/race-point.js';
export { raced, type RacedOptions } from './testing/races/raced.js';
export type { StoryStep } from './testing/races/schedule/story.js';

// Unit tests
export { passThroughLocks, type PassThroughOptions } from './testing/pass-through/pass-through-locks.js';
export { bindLocks } from './testing/pass-through/bind-locks.js';

// The contract of a store
export {
  describeJobStore,
  describeLatchStore,
  describeLockStore,
  describeTickStore,
} from './testing/contract/stores/describe-stores.js';
export type { LockStoreFeatures, LockStorePart } from './testing/contract/stores/features.js';
export type { ContractRunner, StoreFeatures, StoreSubject, StoreSubjectFactory } from './testing/contract/subject.js';

// What a test expects
export type { LockAssertions } from './testing/assertions/lock-assertions.js';
export type { HeldDuringOptions } from './testing/assertions/held-during.js';
export type { ExclusiveOptions, Section } from './testing/assertions/exclusive.js';

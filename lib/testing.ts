/**
 * Tests of code that uses locks, without Redis and without sleeping. Needs no test runner.
 *
 * @module nestjs-redis-lock/testing
 */

// The contract of a store
export {
  describeJobStore,
  describeLatchStore,
  describeLockStore,
  describeTickStore,
} from './testing/contract/stores/describe-stores.js';
export type { LockStoreFeatures, LockStorePart } from './testing/contract/stores/features.js';
export type { ContractRunner, StoreFeatures, StoreSubject, StoreSubjectFactory } from './testing/contract/subject.js';

import { describeDowngrade } from '../locks/downgrade.js';
import { describeLabels } from '../locks/label.js';
import { describeLeaseLengths } from '../locks/lease-lengths.js';
import { describeLeases } from '../locks/leases.js';
import { describeOperators } from '../locks/operators.js';
import { describeReadWrite } from '../locks/read-write.js';
import { describeRetention } from '../locks/retention.js';
import { describeSemaphoreSize } from '../locks/semaphore-size.js';
import { describeSemaphore } from '../locks/semaphore.js';
import { describeTransfer } from '../locks/transfer.js';
import { describeWriter } from '../locks/writer.js';
import { describeDueTicks } from '../others/due-ticks.js';
import { describeJobCrashes } from '../others/job-crashes.js';
import { describeJobHistory } from '../others/job-history.js';
import { describeJobPauses } from '../others/job-pauses.js';
import { describeKnownJobs } from '../others/known-jobs.js';
import { describeMissedTicks } from '../others/missed-ticks.js';
import { describeRollCalls } from '../others/roll-calls.js';
import { describeOperatorRequests } from '../others/operator-requests.js';
import { describeTicks } from '../others/ticks.js';
import { describeDeadHolder } from '../queue/dead-holder.js';
import { describeGrants, describeGrantMessages } from '../queue/grants.js';
import { describeKeeping } from '../queue/keep.js';
import { describeQueue } from '../queue/queue.js';
import { describeRotation } from '../queue/rotation.js';
import { describeSeenHolders } from '../queue/holders.js';
import { describeSeveral } from '../queue/several.js';
import { describeWatch } from '../queue/watch.js';
import { openQueueWorld, type QueueSuite } from '../queue-world.js';
import { type AllFeatures, type ContractRunner, type StoreFeatures, type StoreSubjectFactory } from '../subject.js';
import { type Base, type Suite, suiteOf } from '../suite.js';
import { type LockStoreFeatures, type LockStorePart, readFeatures, readParts } from './features.js';

type Part = readonly [title: string, describePart: (suite: Suite<Base>, features: AllFeatures) => void];

/** A part whose tests have three instances each that want the same things. */
const inQueueWorld =
  (describePart: (suite: QueueSuite, features: AllFeatures) => void): Part[1] =>
  (suite, features) =>
    describePart(suite.with(openQueueWorld), features);

const LOCK_PARTS: Readonly<Record<LockStorePart, Part>> = {
  leases: ['a lease', describeLeases],
  readWrite: ['a read/write lock', inQueueWorld(describeReadWrite)],
  writer: ['a writer', inQueueWorld(describeWriter)],
  downgrade: ['downgrade', inQueueWorld(describeDowngrade)],
  queue: ['the queue', inQueueWorld(describeQueue)],
  grants: ['grants', inQueueWorld(describeGrants)],
  grantMessages: ['messages about grants', inQueueWorld(describeGrantMessages)],
  keep: ['kept places', inQueueWorld(describeKeeping)],
  deadHolder: ['a dead holder', inQueueWorld(describeDeadHolder)],
  rotate: ['rotate', inQueueWorld(describeRotation)],
  several: ['several resources at once', inQueueWorld(describeSeveral)],
  holders: ['what is seen of the holders', inQueueWorld(describeSeenHolders)],
  label: ['the label', inQueueWorld(describeLabels)],
  semaphore: ['a semaphore', inQueueWorld(describeSemaphore)],
  semaphoreSize: ['the size of a semaphore', inQueueWorld(describeSemaphoreSize)],
  retain: ['retain', inQueueWorld(describeRetention)],
  transfer: ['transfer', inQueueWorld(describeTransfer)],
  operators: ['an operator', inQueueWorld(describeOperators)],
  watch: ['a watcher', inQueueWorld(describeWatch)],
  rollCalls: ['a roll call', describeRollCalls],
  leaseLengths: ['the length of a lease', inQueueWorld(describeLeaseLengths)],
};

/** The parts that only a store with semaphores has. */
const OF_SEMAPHORES: readonly LockStorePart[] = ['semaphore', 'semaphoreSize'];

/**
 * Describes what each lock store has to do, as tests of your runner. An application can rely on a store that passes
 * all of them as on Redis.
 *
 * @param runner `describe` and `it` of Jest, Vitest or `node:test`
 * @param create creates an empty place for locks; called once for each test
 * @param features what the store can do. @default all, one queue, 60 seconds a test
 * @throws InvalidLockOptionsError if a feature or a part is not known
 */
export function describeLockStore(
  runner: ContractRunner,
  create: StoreSubjectFactory,
  features: LockStoreFeatures = {},
): void {
  const [suite, all] = contractOf('describeLockStore', runner, create, features);
  for (const part of readParts(features.parts, Object.keys(LOCK_PARTS) as LockStorePart[])) {
    if (OF_SEMAPHORES.includes(part) && !all.semaphores) continue;
    const [title, describePart] = LOCK_PARTS[part];
    suite.describe(title, () => describePart(suite, all));
  }
}

/**
 * Describes what each job store has to do: a tick starts once in the whole fleet, and there are a history, pauses and
 * missed ticks. See {@link describeLockStore}.
 */
export function describeJobStore(
  runner: ContractRunner,
  create: StoreSubjectFactory,
  features: StoreFeatures = {},
): void {
  const [suite, { records }] = contractOf('describeJobStore', runner, create, features);
  describeTicks(suite);
  describeDueTicks(suite);
  if (!records) return;
  describeJobHistory(suite);
  describeJobCrashes(suite);
  describeJobPauses(suite);
  describeMissedTicks(suite);
  describeKnownJobs(suite);
  describeOperatorRequests(suite);
}

function contractOf(
  where: string,
  runner: ContractRunner,
  create: StoreSubjectFactory,
  features: StoreFeatures,
): [suite: Suite<Base>, features: AllFeatures] {
  const all = readFeatures(where, runner, create, features);
  return [suiteOf(runner, create, all.timeoutMs), all];
}

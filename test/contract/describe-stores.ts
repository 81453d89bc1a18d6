import { describeDowngrade } from './locks/downgrade.js';
import { describeLabels } from './locks/label.js';
import { describeLeaseLengths } from './locks/lease-lengths.js';
import { describeLeases } from './locks/leases.js';
import { describeOperators } from './locks/operators.js';
import { describeReadWrite } from './locks/read-write.js';
import { describeRetention } from './locks/retention.js';
import { describeSemaphoreSize } from './locks/semaphore-size.js';
import { describeSemaphore } from './locks/semaphore.js';
import { describeWriter } from './locks/writer.js';
import { describeDueTicks } from './others/due-ticks.js';
import { describeJobCrashes } from './others/job-crashes.js';
import { describeJobHistory } from './others/job-history.js';
import { describeJobPauses } from './others/job-pauses.js';
import { describeKnownJobs } from './others/known-jobs.js';
import { describeMissedTicks } from './others/missed-ticks.js';
import { describeRollCalls } from './others/roll-calls.js';
import { describeResults } from './others/results.js';
import { describeOperatorRequests } from './others/operator-requests.js';
import { describeTicks } from './others/ticks.js';
import { describeDeadHolder } from './queue/dead-holder.js';
import { describeGrants, describeGrantMessages } from './queue/grants.js';
import { describeKeeping } from './queue/keep.js';
import { describeQueue } from './queue/queue.js';
import { describeRotation } from './queue/rotation.js';
import { describeSeenHolders } from './queue/holders.js';
import { describeWatch } from './queue/watch.js';
import { openQueueWorld, type QueueSuite } from './queue-world.js';
import { type ContractRunner, FEATURES, type StoreFeatures, type StoreSubjectFactory } from './subject.js';
import { type Base, type Suite, suiteOf } from './suite.js';

type Part = readonly [title: string, describePart: (suite: Suite<Base>, features: StoreFeatures) => void];

/** A part whose tests have three instances each that want the same things. */
const inQueueWorld =
  (describePart: (suite: QueueSuite, features: StoreFeatures) => void): Part[1] =>
  (suite, features) =>
    describePart(suite.with(openQueueWorld), features);

const LOCK_PARTS = {
  leases: ['a lease', describeLeases],
  readWrite: ['a read/write lock', inQueueWorld(describeReadWrite)],
  writer: ['a writer', inQueueWorld(describeWriter)],
  downgrade: ['a downgrade', inQueueWorld(describeDowngrade)],
  queue: ['the queue', inQueueWorld(describeQueue)],
  grants: ['grants', inQueueWorld(describeGrants)],
  grantMessages: ['messages about grants', inQueueWorld(describeGrantMessages)],
  keep: ['kept places', inQueueWorld(describeKeeping)],
  deadHolder: ['a dead holder', inQueueWorld(describeDeadHolder)],
  rotate: ['a rotation', inQueueWorld(describeRotation)],
  holders: ['what is seen of the holders', inQueueWorld(describeSeenHolders)],
  label: ['the label', inQueueWorld(describeLabels)],
  semaphore: ['a semaphore', inQueueWorld(describeSemaphore)],
  semaphoreSize: ['the size of a semaphore', inQueueWorld(describeSemaphoreSize)],
  retain: ['a lock that is retained', inQueueWorld(describeRetention)],
  operators: ['an operator', inQueueWorld(describeOperators)],
  watch: ['a watcher', inQueueWorld(describeWatch)],
  rollCalls: ['a roll call', describeRollCalls],
  leaseLengths: ['the length of a lease', inQueueWorld(describeLeaseLengths)],
} satisfies Readonly<Record<string, Part>>;

type LockStorePart = keyof typeof LOCK_PARTS;

/** The parts that only a store with semaphores has. */
const OF_SEMAPHORES: readonly LockStorePart[] = ['semaphore', 'semaphoreSize'];

/**
 * Describes the contract of a lock store, as tests.
 *
 * @param runner Jest's, or one that leaves tests out
 * @param create creates an empty place for locks; called once for each test
 * @param features the features of the store, and the parts to run. @default all
 */
export function describeLockStore(
  runner: ContractRunner,
  create: StoreSubjectFactory,
  { parts, ...given }: Partial<StoreFeatures> & { readonly parts?: readonly LockStorePart[] } = {},
): void {
  const features = { ...FEATURES, ...given };
  const suite = suiteOf(runner, create, features.timeoutMs);
  for (const part of parts ?? (Object.keys(LOCK_PARTS) as LockStorePart[])) {
    if (OF_SEMAPHORES.includes(part) && !features.semaphores) continue;
    const [title, describePart]: Part = LOCK_PARTS[part];
    suite.describe(title, () => describePart(suite, features));
  }
}

/**
 * Describes what each job store has to do: a tick starts once in the whole fleet, and there are a history, pauses and
 * missed ticks. See {@link describeLockStore}.
 */
export function describeJobStore(
  runner: ContractRunner,
  create: StoreSubjectFactory,
  given: Partial<StoreFeatures> = {},
): void {
  const { records, timeoutMs } = { ...FEATURES, ...given };
  const suite = suiteOf(runner, create, timeoutMs);
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

/** Describes what each store of results has to do. See {@link describeLockStore}. */
export function describeResultStore(runner: ContractRunner, create: StoreSubjectFactory): void {
  describeResults(suiteOf(runner, create, FEATURES.timeoutMs));
}

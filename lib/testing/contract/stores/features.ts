import { InvalidLockOptionsError } from '../../../core/api/errors.js';
import {
  atLeast,
  checked,
  checkFunction,
  checkOneOf,
  describeValue,
  flag,
  milliseconds,
  type OptionsOf,
  OptionTable,
} from '../../../core/api/validation.js';
import type { AllFeatures, ContractRunner, StoreFeatures, StoreSubjectFactory } from '../subject.js';

/** A part of what a lock store has to do. */
export type LockStorePart =
  | 'leases'
  | 'readWrite'
  | 'writer'
  | 'downgrade'
  | 'queue'
  | 'grants'
  | 'grantMessages'
  | 'keep'
  | 'deadHolder'
  | 'rotate'
  | 'several'
  | 'holders'
  | 'label'
  | 'semaphore'
  | 'semaphoreSize'
  | 'retain'
  | 'transfer'
  | 'operators'
  | 'watch'
  | 'rollCalls'
  | 'leaseLengths';

/** What the lock store can do, and which tests are run. */
export interface LockStoreFeatures extends StoreFeatures {
  /**
   * The parts to run, in this order. For a store that is being written: begin with `['leases']`.
   *
   * @allowed an array of the names of parts
   * @default all
   */
  readonly parts?: readonly LockStorePart[];
}

/** The longest time of a timer. */
const LONGEST_MS = 2 ** 31 - 1;

const FEATURES = {
  semaphores: flag().default(true),
  jobs: flag().default(true),
  records: flag().default(true),
  oneQueue: flag().default(true),
  servers: atLeast(1, 'servers').default(1),
  timeoutMs: milliseconds(1, LONGEST_MS).default(60_000),
} satisfies OptionsOf<StoreFeatures>;

const STORE_FEATURES = new OptionTable(FEATURES);
export const LOCK_STORE_FEATURES = new OptionTable({
  ...FEATURES,
  parts: checked<readonly LockStorePart[]>(),
} satisfies OptionsOf<LockStoreFeatures>);

/**
 * Checks the arguments of a function that describes a contract, and fills in the features that are left out.
 *
 * @param where the name of the function, for the message
 * @throws InvalidLockOptionsError
 */
export function readFeatures(
  where: string,
  runner: ContractRunner,
  create: StoreSubjectFactory,
  features: StoreFeatures,
): AllFeatures {
  // Not checkIsObject: the module node:test is a function that has both.
  checkFunction(`describe in the first argument of ${where}`, runner?.describe);
  checkFunction(`it in the first argument of ${where}`, runner?.it);
  checkFunction('create', create);
  const table = where === 'describeLockStore' ? LOCK_STORE_FEATURES : STORE_FEATURES;
  table.check(`the features of ${where}`, features);
  const { semaphores, jobs, records, oneQueue, servers, timeoutMs } = STORE_FEATURES.defaults;
  return {
    semaphores: features.semaphores ?? semaphores,
    jobs: features.jobs ?? jobs,
    records: features.records ?? records,
    oneQueue: features.oneQueue ?? oneQueue,
    servers: features.servers ?? servers,
    timeoutMs: features.timeoutMs ?? timeoutMs,
  };
}

/** @throws InvalidLockOptionsError if a part is not one of those that there are */
export function readParts(parts: unknown, known: readonly LockStorePart[]): readonly LockStorePart[] {
  if (parts === undefined) return known;
  if (!Array.isArray(parts) || parts.length === 0) {
    throw new InvalidLockOptionsError(
      `parts must be an array with at least one part, not ${describeValue(parts)}. Leave it out to run all parts.`,
      'parts',
    );
  }
  for (const part of parts) checkOneOf('each of parts', part, known);
  return parts as LockStorePart[];
}

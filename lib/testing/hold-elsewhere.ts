import { InvalidLockOptionsError } from '../kernel/api/errors.js';
import { Option, type OptionsOf, OptionTable } from '../kernel/api/validation.js';
import type { Lease } from '../kernel/api/lease.js';
import { LOCK_OPTIONS, type LockMode, resolveLockOptions } from '../kernel/api/lock-options.js';
import { checkResource, JOB_PREFIX, LEADER_PREFIX } from '../kernel/api/resource.js';
import { SEMAPHORE_OPTIONS } from '../kernel/semaphore/semaphore-options.js';
import { quote } from '../kernel/util/quoted.js';
import { TestKitError } from './fleet/test-kit-error.js';
import type { TestFleet } from './fleet/test-fleet.js';

/** Options of `holdElsewhere`. */
export interface HoldElsewhereOptions {
  /**
   * The mode of the lock.
   *
   * @default `'exclusive'`, or a semaphore if `permits` or `total` is set
   */
  mode?: Exclude<LockMode, 'semaphore'>;
  /**
   * The number of permits to hold, for a semaphore.
   *
   * @allowed 1 to 1000000
   * @default 1
   */
  permits?: number;
  /**
   * The total number of permits of the semaphore, as in your application.
   *
   * @allowed 1 to 1000000
   * @default `permits`
   */
  total?: number;
  /**
   * The name of the simulated instance, as errors and `inspect` show it.
   *
   * @allowed 1 to 100 of `A-Z a-z 0-9 _ . : @ -`
   * @default 'elsewhere'
   */
  instanceId?: string;
  /**
   * The length of the lease.
   *
   * @allowed 50 ms to 24 h
   * @default 15000
   */
  leaseMs?: number;
  /**
   * Time to wait if the resource is held, measured by the module's `clock`.
   *
   * @allowed 0 ms or more, or `Infinity`
   * @default 0
   */
  waitMs?: number;
}

/** A resource held by another application. */
export interface HeldElsewhere extends AsyncDisposable {
  readonly fencingToken: number;
  /** Aborts when the other application has lost it. */
  readonly signal: AbortSignal;
  /** Releases it in the other application. Resolves when the next waiter has it. */
  release(): Promise<void>;
}

const { mode, leaseMs } = LOCK_OPTIONS.options;
const { permits } = SEMAPHORE_OPTIONS.options;

export const HOLD_ELSEWHERE_OPTIONS = new OptionTable({
  mode: Option.checked<Exclude<LockMode, 'semaphore'>>(mode.check),
  permits: permits.default(1),
  total: permits,
  instanceId: Option.text(/^[\w.:@-]{1,100}$/, '1 to 100 of A-Z a-z 0-9 _ . : @ -').default('elsewhere'),
  leaseMs,
  waitMs: Option.durationOrInfinity().default(0),
} satisfies OptionsOf<HoldElsewhereOptions>);

/** Lets another application of the fleet acquire the resource. */
export async function holdElsewhere(
  fleet: TestFleet,
  service: string,
  resource: string,
  options: HoldElsewhereOptions,
): Promise<HeldElsewhere> {
  HOLD_ELSEWHERE_OPTIONS.check('holdElsewhere', options);
  const filled = HOLD_ELSEWHERE_OPTIONS.filled(options);
  const { mode, instanceId: instance, waitMs, leaseMs, permits: count, total = count } = filled;
  const isSemaphore = options.permits !== undefined || options.total !== undefined;
  const name = checkResource(resource, 'holdElsewhere');
  if (mode !== undefined || isSemaphore) refuseReserved(name);
  if (mode !== undefined && isSemaphore) {
    throw new InvalidLockOptionsError(
      'holdElsewhere() holds either a lock (mode) or a semaphore (permits, total). Leave out mode, or permits and total.',
      'mode',
    );
  }
  if (fleet.instances.some(({ instanceId }) => instanceId === instance)) {
    throw new InvalidLockOptionsError(
      `instanceId of holdElsewhere() must not be ${quote(instance)}: an application of this fleet has that id.`,
      'instanceId',
    );
  }
  const client = fleet.elsewhere(service, instance);
  const lock = { waitMs, leaseMs };
  const acquired: Promise<Lease> = isSemaphore
    ? client.semaphore(name, { permits: total }).acquire({ ...lock, count })
    : client.leases.acquireOne(name, resolveLockOptions({ ...lock, mode: mode ?? 'exclusive' }, client.deps.defaults));
  const lease = await acquired;
  const { fencingToken, signal } = lease;
  const release = (): Promise<void> => lease.release();
  return { fencingToken, signal, release, [Symbol.asyncDispose]: release };
}

/** A job runs, and a leader leads, under an exclusive lock. */
function refuseReserved(resource: string): void {
  if (!resource.startsWith(JOB_PREFIX) && !resource.startsWith(LEADER_PREFIX)) return;
  throw new TestKitError(
    'invalid',
    `${quote(resource)} is the lock of a job or a leadership, which holdElsewhere() always holds in mode exclusive. Leave ` +
      'out mode, permits and total.',
  );
}

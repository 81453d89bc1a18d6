import type { TransactionHooks } from '../kernel/api/transactions.js';
import type { Groups } from '../kernel/events/observers.js';
import type { JobRecords } from '../features/jobs/core/job-records.js';
import type { OnceCalls } from '../features/once/core/once-calls.js';
import type { MissedTicks } from '../features/jobs/core/missed-ticks.js';
import type { LockClient } from '../kernel/lock-client.js';
import type { SingletonRuns } from '../features/jobs/core/singleton-runs.js';
import { type Clock, SYSTEM_CLOCK } from '../kernel/util/clock.js';
import type { LockTelemetry } from '../kernel/events/telemetry.js';
import type { LockStores } from '../kernel/lock-stores.js';

/** The lock service behind a `TestPlace`. */
export interface TestContext {
  /** The `service` of the registration; `'default'` without one. */
  readonly service: string;
  /** The name of this process, shown for holders. */
  readonly instanceId: string;
  /** `true` if the options of the application set its `instanceId`. */
  readonly isNamed: boolean;
}

/** The replacement for the stores of lock services in a test. */
export interface TestStores {
  /** Called when a lock service is created. */
  place(context: TestContext): TestPlace;
}

/** The stores of one lock service in a test. */
export interface TestPlace {
  readonly stores: LockStores;
  /** Follows the lock service, beside the telemetries of its options. */
  readonly telemetry: LockTelemetry;
  /** Called when the lock service has been created. @param injected the object that the application injects for it */
  created(client: LockClient, injected: object): void;
}

/** The target of the calls of a lock service. A test may replace it. */
export interface ForwardedTo {
  client: LockClient;
  singletonRuns: SingletonRuns;
  once: Pick<OnceCalls, 'run' | 'forget' | 'assertSupported'>;
}

/** The parts of one lock service: the decorators and the explorers find them by the service. */
export interface ServiceParts extends ForwardedTo {
  readonly drainMs: number;
  readonly onStarted?: (() => void) | undefined;
  /** The clock of its timers. @default the system's */
  readonly clock?: Clock | undefined;
  /** Only set if its leases last until the end of a transaction. */
  readonly transactions?: TransactionHooks | undefined;
  /** The jobs that the store remembers, or the reason why it remembers none. */
  readonly jobs?:
    | {
        readonly missed: MissedTicks;
        readonly records: JobRecords;
        /** The reason. */
        readonly refusal: string | undefined;
      }
    | undefined;
  /** Returns the names of the jobs that this process can run. Set by `SingletonJobs`. */
  ownJobs?: () => ReadonlySet<string>;
  /** Only set in a test. */
  readonly place?: TestPlace | undefined;
  /** Only set in a test, see `jobsUnderTestOf`. */
  jobsUnderTest?: object;
}

/** Both copies of this package, ES module and CommonJS, find the parts of a service that one of them has made. */
const PARTS = Symbol.for('nestjs-redis-lock:parts:1');

export function keepParts(service: object, parts: ServiceParts): void {
  Object.defineProperty(service, PARTS, { value: parts });
}

/** @returns undefined for a test double of a lock service */
export function partsOf(service: unknown): ServiceParts | undefined {
  return (service as { [PARTS]?: ServiceParts } | null | undefined)?.[PARTS];
}

/** Returns the clock of a lock service, for timers around it. */
export function clockOf(service: object): Clock {
  return partsOf(service)?.clock ?? SYSTEM_CLOCK;
}

export function groupsOf(service: object): Groups | undefined {
  return partsOf(service)?.client.observers.groups;
}

import type { TransactionHooks } from '../kernel/api/transactions.js';
import type { Groups } from '../kernel/events/observers.js';
import type { JobRecords } from '../features/jobs/core/job-records.js';
import type { MissedTicks } from '../features/jobs/core/missed-ticks.js';
import type { LockClient } from '../kernel/lock-client.js';
import type { SingletonRuns } from '../features/jobs/core/singleton-runs.js';
import { type Clock, SYSTEM_CLOCK } from '../kernel/util/clock.js';
import type { LockTelemetry } from '../kernel/events/telemetry.js';
import type { LockStores } from '../kernel/lock-stores.js';

/** The lock service that a place is for. */
export interface TestContext {
  /** The `service` of the registration; `'default'` without one. */
  readonly service: string;
  /** The name of this process where holders are shown. */
  readonly instanceId: string;
  /** Whether the options of the application state its `instanceId`. */
  readonly isNamed: boolean;
}

/** What a test puts in place of the stores of a lock service. */
export interface TestStores {
  /** A lock service is created. */
  place(context: TestContext): TestPlace;
}

/** The stores of one lock service in a test. */
export interface TestPlace {
  readonly stores: LockStores;
  /** Follows the lock service, beside the telemetries of its options. */
  readonly telemetry: LockTelemetry;
  /** The lock service has been created. @param injected what the application injects for it */
  created(client: LockClient, injected: object): void;
}

/** What the calls of a lock service are forwarded to. A test may exchange it. */
export interface ForwardedTo {
  client: LockClient;
  singletonRuns: SingletonRuns;
}

/** All that belongs to one lock service: the decorators and the explorers find it by the service. */
export interface ServiceParts extends ForwardedTo {
  readonly drainMs: number;
  readonly onStarted?: (() => void) | undefined;
  /** By which it counts. @default the system's */
  readonly clock?: Clock | undefined;
  /** Set where its leases last until the end of a transaction. */
  readonly transactions?: TransactionHooks | undefined;
  /** What it does for jobs that the store remembers. */
  readonly jobs?:
    | {
        readonly missed: MissedTicks;
        readonly records: JobRecords;
        /** Why its store remembers no jobs. */
        readonly refusal: string | undefined;
      }
    | undefined;
  /** The names of the jobs that this process can run. Set by `SingletonJobs`. */
  ownJobs?: () => ReadonlySet<string>;
  /** Set in a test. */
  readonly place?: TestPlace | undefined;
  /** Set in a test, see `jobsUnderTestOf`. */
  jobsUnderTest?: object;
}

/** Both copies of this package, ES module and CommonJS, find the parts of a service that one of them has made. */
const PARTS = Symbol.for('nestjs-redis-lock:parts:1');

export function keepParts(service: object, parts: ServiceParts): void {
  Object.defineProperty(service, PARTS, { value: parts });
}

/** @returns nothing for what a test has put in the place of a lock service */
export function partsOf(service: unknown): ServiceParts | undefined {
  return (service as { [PARTS]?: ServiceParts } | null | undefined)?.[PARTS];
}

/** The clock by which a lock service counts, for what is timed around it. */
export function clockOf(service: object): Clock {
  return partsOf(service)?.clock ?? SYSTEM_CLOCK;
}

export function groupsOf(service: object): Groups | undefined {
  return partsOf(service)?.client.observers.groups;
}

import type { LockTelemetry } from '../core/events/telemetry.js';
import type { LockClient } from '../core/lock-client.js';
import type { LockStores, StoreContext } from '../core/store/lock-stores.js';

/** The lock service that a place is for. */
export interface TestContext extends StoreContext {
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

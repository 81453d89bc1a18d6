import { describeOrders } from '../../core/holding/lock-order.js';
import type { LockTelemetry } from '../../core/events/telemetry.js';
import type { LockClient } from '../../core/lock-client.js';
import type { LockStores } from '../../core/store/lock-stores.js';
import type { TestContext, TestPlace } from '../../nest/test-stores.js';
import { LogTelemetry } from './log-telemetry.js';
import type { TestFleet } from './test-fleet.js';
import type { TestInstance } from './test-instance.js';
import { TestKitError } from './test-kit-error.js';

/** A lock service of an application, in its fleet. */
export class FleetPlace implements TestPlace {
  readonly instance: TestInstance;
  readonly stores: LockStores;
  readonly telemetry: LockTelemetry;
  /** Set once it has been created. */
  client: LockClient | undefined;

  constructor(
    readonly fleet: TestFleet,
    { service: name, instanceId, isNamed }: TestContext,
    private readonly throwsOnLockOrder: boolean,
  ) {
    this.instance = fleet.join(name, isNamed ? instanceId : undefined);
    this.stores = this.instance.stores;
    this.telemetry = new LogTelemetry(fleet.log, this.instance.instanceId);
  }

  created(client: LockClient, injected: object): void {
    this.client = client;
    this.instance.injected = injected;
    this.fleet.watch(this.instance, client);
    if (this.throwsOnLockOrder) {
      client.underTest.onLockOrder((edges) => {
        throw new TestKitError('lockOrder', `${describeOrders(edges)} This is an error by throwOnLockOrder.`);
      });
    }
  }
}

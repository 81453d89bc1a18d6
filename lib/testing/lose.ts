import type { Lease } from '../kernel/api/lease.js';
import type { LeaseLossReason } from '../kernel/api/lease-errors.js';
import { InvalidLockOptionsError } from '../kernel/api/errors.js';
import { checkResource } from '../kernel/api/resource.js';
import { checkOneOf, describeValue } from '../kernel/api/validation.js';
import type { LocalHolder } from '../kernel/holding/store-lease.js';
import { isObject } from '../kernel/util/objects.js';
import { quote } from '../kernel/util/quoted.js';
import type { FleetPlace } from './fleet/test-fleet.js';
import { settle } from '../kernel/util/promises.js';
import { TestKitError } from './fleet/test-kit-error.js';

/**
 * The reason why a lease is lost. `takenOver`: Redis no longer has it, as after `forceRelease()`. `notRenewed`: no
 * renewal was confirmed in time. `expired`: a fixed lease has expired. `maxHold`: it was held for `maxHoldMs`.
 */
export type TestLossReason = Extract<LeaseLossReason, 'takenOver' | 'notRenewed' | 'expired' | 'maxHold'>;

const REASONS: readonly TestLossReason[] = ['takenOver', 'notRenewed', 'expired', 'maxHold'];

/** Makes the application lose a lease, with the same effects as on Redis. */
export async function lose(place: FleetPlace, lost: string | Lease, reason: TestLossReason): Promise<void> {
  checkOneOf('the reason of lose', reason, REASONS);
  const given = typeof lost === 'string' ? [checkResource(lost, 'lose')] : resourcesOf(lost);
  const meant = given.flatMap((resource) => {
    const holders = place.client!.deps.watchdog.holdersOf(resource).filter((holder) => holder.checkHeld());
    return typeof lost === 'string' ? holders : holders.filter(isOf(lost, resource));
  });
  // For several resources, some leases may be lost already.
  if (meant.length === 0) throw unknown(place, given);
  for (const storeLease of new Set(meant.map((holder) => holder.storeLease))) {
    // Several readers can share a lease of the store.
    const { owner, holders } = storeLease;
    // As on Redis: only a lease that was taken over ends there before its holder knows.
    if (reason === 'takenOver') await place.instance.drop(owner);
    for (const holder of holders) holder.lose(reason);
    if (reason !== 'takenOver') await place.instance.drop(owner);
  }
  await settle();
}

function resourcesOf(lost: unknown): readonly string[] {
  if (isObject(lost) && 'fencingTokenOf' in lost) return (lost as Lease).resources;
  throw new InvalidLockOptionsError(
    `lose() needs a lease, or the name of a resource that the application holds, not ${describeValue(lost)}.`,
    'the first argument of lose',
  );
}

function isOf(lease: Lease, resource: string): (holder: LocalHolder) => boolean {
  const token = lease.fencingTokenOf(resource);
  return (holder) => holder.fencingToken === token;
}

function unknown({ fleet, instance }: FleetPlace, resources: readonly string[]): TestKitError {
  const { held } = fleet.log;
  const own = held.filter((entry) => entry.instanceId === instance.instanceId && entry.service === instance.service);
  const names = [...new Set(own.map((entry) => quote(entry.resource)))].join(', ') || 'nothing';
  const [resource] = resources as readonly [string];
  const other = held.find((entry) => resources.includes(entry.resource) && entry.instanceId !== instance.instanceId);
  const isEnding = own.some((entry) => resources.includes(entry.resource));
  const hint = other
    ? `${other.instanceId} holds ${quote(other.resource)}.`
    : 'Call lose() while the work under the lock runs.';
  return new TestKitError(
    'unknownResource',
    isEnding
      ? `The application releases ${resources.map((name) => quote(name)).join(', ')} at this moment, so lose() has no effect. ${hint}`
      : `The application does not hold ${quote(resource)}, so it cannot lose that lock. It holds ${names}. ${hint}`,
  );
}

import type { LockState } from '../core/store/lock-state.js';
import { readState } from '../memory/memory-server.js';
import type { LocksUnderTest } from './assertions/locks-under-test.js';
import type { FleetPlace } from './fleet/fleet-place.js';

/** What is held by the applications of a fleet, as a lock service of one of them would find it. */
export function seenBy({
  fleet,
  instance,
}: FleetPlace): Pick<LocksUnderTest, 'instanceId' | 'states' | 'unmetFailures'> {
  const { instanceId, server } = instance;
  const { clientId } = instance.stores.locks;
  // One that has closed is no longer of the fleet.
  const instances = () => new Set([instance, ...fleet.instances.filter(({ service }) => service === instance.service)]);
  return {
    instanceId,
    states: (): LockState[] => server.locks.resources().map((resource) => readState(server, resource, clientId)),
    unmetFailures: () =>
      [...instances()].flatMap((each) => each.unmetFailures.map(({ text }) => `${text} of ${each.instanceId}`)),
  };
}

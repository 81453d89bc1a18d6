import type { TestStores } from '../nest/test-stores.js';
import { FleetPlace } from './fleet/fleet-place.js';
import { fleetOf, type TestFleet } from './fleet/test-fleet.js';
import { TEST_LOCKS_OPTIONS, type TestLocksOptions } from './test-locks-options.js';

/** Puts lock services on the fleet with the name. Without a name, all services of one application have one fleet. */
export function fleetStores({ fleet: name, clock, startsAt }: TestLocksOptions): TestStores {
  let own: TestFleet | undefined;
  return {
    place(context) {
      // A second service of the same name belongs to another application: a module may be used by several.
      const isOther =
        own === undefined || own.hasEnded || own.instances.some(({ service }) => service === context.service);
      const kind = clock ?? TEST_LOCKS_OPTIONS.defaults.clock;
      if (name !== undefined || isOther) own = fleetOf(name, kind, startsAt && Number(startsAt));
      return new FleetPlace(own!, context);
    },
  };
}

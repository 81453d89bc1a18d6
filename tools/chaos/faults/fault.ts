import type { Slot } from '../world/slot.js';
import type { World } from '../world/world.js';

/** Something that goes wrong, for a while. */
export interface Fault {
  /** As it stands in the tables. */
  readonly kind: string;
  /** One worker; Redis, and with it all workers; or nobody, if all work must continue as usual. */
  readonly strikes: 'worker' | 'redis' | 'nobody';
  /** `true` for faults under which a lock on one Redis can't keep its promises. */
  readonly breaksPromises?: boolean;
  /** `true` if Redis loses its data, including the last fencing token. */
  readonly losesData?: boolean;
  readonly movesClock?: boolean;
  /** `true` if it has to move the wall clocks of workers. */
  readonly needsClock?: boolean;
  /** Chooses the best victim at this moment; `undefined` for any worker. */
  choose?(world: World): Promise<Slot | undefined>;
  /** Resolves after the fault, with `false` if it could not be injected. `victim` is set if it strikes a worker. */
  inject(world: World, victim: Slot): Promise<unknown>;
  /** Restores settings that no longer affect anyone after the fault. */
  restore?(): Promise<unknown>;
}

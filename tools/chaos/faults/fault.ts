import type { Slot } from '../world/slot.js';
import type { World } from '../world/world.js';

/** Something that goes wrong, for a while. */
export interface Fault {
  /** As it stands in the tables. */
  readonly kind: string;
  /** Whether it strikes one worker; or Redis, and with it all of them; or nobody, because all go on as if nothing were wrong. */
  readonly strikes: 'worker' | 'redis' | 'nobody';
  /** What no lock on one Redis can keep its word under. */
  readonly breaksPromises?: boolean;
  /** How: Redis forgets what it had, also the last fencing tick; or its clock moves. */
  readonly losesData?: boolean;
  readonly movesClock?: boolean;
  /** Whether the wall clocks of the workers have to be movable for it. */
  readonly needsClock?: boolean;
  /** Whom it would strike best at this moment; anybody, where it does not matter. */
  choose?(world: World): Promise<Slot | undefined>;
  /** Resolves when it is over; with `false` where it did not come to pass. `victim` is there where it strikes a worker. */
  inject(world: World, victim: Slot): Promise<unknown>;
  /** Puts right what is no longer felt when it is over: nobody is struck by that. */
  restore?(): Promise<unknown>;
}

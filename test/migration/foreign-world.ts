import type { LockOptions } from '../../lib/core/api/lock-options.js';
import { fakeForeignLock, FakeForeignServer } from '../support/world/fake-foreign-lock.js';
import { type Instance, LockWorld } from '../support/world/lock-world.js';

/** An instance beside a server with the locks of another library. */
export interface ForeignWorld {
  readonly world: LockWorld;
  readonly server: FakeForeignServer;
  readonly a: Instance;
  /** They take the lock of the other library too. */
  readonly options: LockOptions;
}

/** Fresh for every test. */
export function useForeignWorld(given: LockOptions, enter: (here: ForeignWorld) => void): void {
  beforeEach(() => {
    const world = new LockWorld();
    const server = new FakeForeignServer(world.clock);
    enter({ world, server, a: world.instance('a'), options: { alsoLock: fakeForeignLock(server), ...given } });
  });
}

/** The owner of our lock. */
export function ourOwnerIn(world: LockWorld, resource: string): string | undefined {
  return world.server.members(resource)[0]?.owner;
}

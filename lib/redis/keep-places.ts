import { asStoreError } from '../core/store/store-error.js';
import type { KeepReply, KeptPlace } from '../core/store/lock-store.js';
import type { FlaggedScript } from './script/script.js';
import { KEEP } from './script/scripts.js';
import { readKeepReplies, stamp } from './lock-replies.js';
import { waitersOf } from './keys.js';

/** What keeping places needs of its store. */
interface Keeping {
  readonly clientId: string;
  lockKeyOf(resource: string): string;
  run<T>(
    script: FlaggedScript<T>,
    keys: readonly string[],
    args: readonly (string | number)[],
    read: (reply: unknown) => T,
  ): Promise<T>;
}

/** Keeps places in one script. @param places in one slot */
export async function keepPlaces(
  places: readonly KeptPlace[],
  sentAt: number,
  keeping: Keeping,
): Promise<readonly KeepReply[]> {
  try {
    return await keepInStep(places, sentAt, keeping);
  } catch (thrown) {
    const error = asStoreError(thrown);
    if (error.failure !== 'refused') throw error;
    if (places.length === 1) return [error];
    // Redis looks at the rights to all keys before it runs the script: one that the user may not use any more refuses
    // all of them.
    return (await Promise.all(places.map((place) => keepPlaces([place], sentAt, keeping)))).flat();
  }
}

function keepInStep(places: readonly KeptPlace[], sentAt: number, { clientId, lockKeyOf, run }: Keeping) {
  const keys: string[] = [];
  const args: (string | number)[] = [stamp({ sentAt })];
  for (const { waiter, leaseMs, lastPlace = 1 } of places) {
    const lock = lockKeyOf(waiter.resource);
    keys.push(lock, waitersOf(lock));
    args.push(waiter.id, leaseMs, lastPlace);
  }
  return run(KEEP, keys, args, (reply) => readKeepReplies(reply, clientId));
}

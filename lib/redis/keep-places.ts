import { asStoreError } from '../kernel/store/store-error.js';
import type { KeepReply, KeptPlace } from '../kernel/store/lock-store.js';
import { waitersOf } from './keys.js';
import { readKeepReplies, stamp } from './lock-replies.js';
import { KEEP } from './script/scripts.js';
import type { ScriptHost } from './script-host.js';

/** Keeps places in one script. @param places in one slot */
export async function keepPlaces(
  places: readonly KeptPlace[],
  sentAt: number,
  store: ScriptHost,
): Promise<readonly KeepReply[]> {
  try {
    return await keepInStep(places, sentAt, store);
  } catch (thrown) {
    const error = asStoreError(thrown);
    if (error.failure !== 'refused') throw error;
    if (places.length === 1) return [error];
    // Redis looks at the rights to all keys before it runs the script: one that the user may not use any more refuses
    // all of them.
    return (await Promise.all(places.map((place) => keepPlaces([place], sentAt, store)))).flat();
  }
}

function keepInStep(places: readonly KeptPlace[], sentAt: number, store: ScriptHost) {
  const keys: string[] = [];
  const args: (string | number)[] = [stamp({ sentAt })];
  for (const { waiter, leaseMs, lastPlace = 1 } of places) {
    const lock = store.keys.lock(waiter.resource);
    keys.push(lock, waitersOf(lock));
    args.push(waiter.id, leaseMs, lastPlace);
  }
  return store.run(KEEP, keys, args, (reply) => readKeepReplies(reply, store.clientId));
}

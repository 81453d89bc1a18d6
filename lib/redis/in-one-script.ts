import { type KeepReply, type KeptPlace, type LockOwner, PER_STEP } from '../kernel/store/lock-store.js';
import { asStoreError, LockStoreError } from '../kernel/store/store-error.js';
import { inRootContext } from '../kernel/util/async-contexts.js';
import { soon } from '../kernel/util/promises.js';
import { waitersOf } from './keys.js';
import { readKeepReplies, readRenewReplies, stamp } from './lock-replies.js';
import { KEEP, RENEW } from './script/scripts.js';
import type { ScriptHost } from './script-host.js';
import { entryOf } from '../kernel/util/objects.js';

/**
 * Runs one script for several entries in one slot.
 *
 * @returns one reply for each entry, in their order. An error there concerns that entry alone
 */
async function inOneScript<Entry, Reply>(
  entries: readonly Entry[],
  run: (entries: readonly Entry[]) => Promise<readonly Reply[]>,
): Promise<readonly (Reply | LockStoreError)[]> {
  try {
    return await run(entries);
  } catch (thrown) {
    const error = asStoreError(thrown);
    if (error.failure !== 'refused') throw error;
    if (entries.length === 1) return [error];
    // Redis looks at the rights to all keys before it runs the script: one that the user may not use any more refuses
    // all of them.
    const alone = entries.map((entry) => inOneScript([entry], run).catch((reason: LockStoreError) => [reason]));
    return (await Promise.all(alone)).flat();
  }
}

/** Keeps places in one script. @param places in one slot */
export function keepPlaces(
  places: readonly KeptPlace[],
  sentAt: number,
  store: ScriptHost,
): Promise<readonly KeepReply[]> {
  return inOneScript(places, (kept) => {
    const keys: string[] = [];
    const args: (string | number)[] = [stamp({ sentAt })];
    for (const { waiter, leaseMs, lastPlace = 1 } of kept) {
      const lock = store.keys.lock(waiter.resource);
      keys.push(lock, waitersOf(lock));
      args.push(waiter.id, leaseMs, lastPlace);
    }
    return store.run(KEEP, keys, args, (reply) => readKeepReplies(reply, store.clientId));
  });
}

interface GatheredRenewal {
  readonly lock: string;
  readonly ownerId: string;
  readonly leaseMs: number;
  readonly resolve: (isOwner: boolean) => void;
  readonly reject: (error: unknown) => void;
}

/** Renewals of one turn of the event loop leave in one script for each slot. */
export class Renewals {
  /** The renewals of this turn by their fence, of which each slot has one. */
  readonly #waiting = new Map<string, GatheredRenewal[]>();

  constructor(private readonly store: ScriptHost) {}

  add({ resource, id }: LockOwner, leaseMs: number): Promise<boolean> {
    const { keys } = this.store;
    const lock = keys.lock(resource);
    const fence = keys.fence(lock);
    return new Promise((resolve, reject) => {
      if (this.#waiting.size === 0) void soon(this.#sendAll);
      const together = entryOf(this.#waiting, fence, () => []);
      if (together.push({ lock, ownerId: id, leaseMs, resolve, reject }) < PER_STEP) return;
      this.#waiting.delete(fence);
      this.#send(together);
    });
  }

  readonly #sendAll = (): void => {
    for (const together of this.#waiting.values()) this.#send(together);
    this.#waiting.clear();
  };

  /** It belongs to no call, even if a call has renewed one of them. */
  #send(renewals: readonly GatheredRenewal[]): void {
    inRootContext(() => inOneScript(renewals, (some) => this.#run(some))).then(
      (replies) => {
        for (const [index, { resolve, reject }] of renewals.entries()) {
          const reply = replies[index]!;
          if (reply instanceof LockStoreError) reject(reply);
          else resolve(reply);
        }
      },
      (error: unknown) => {
        for (const { reject } of renewals) reject(error);
      },
    );
  }

  #run(renewals: readonly GatheredRenewal[]): Promise<readonly (boolean | LockStoreError)[]> {
    const locks = renewals.map(({ lock }) => lock);
    const args = renewals.flatMap(({ ownerId, leaseMs }) => [ownerId, leaseMs]);
    return this.store.run(RENEW, locks, args, readRenewReplies);
  }
}

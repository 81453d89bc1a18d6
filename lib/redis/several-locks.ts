import { asStoreError } from '../core/store/store-error.js';
import type { KeepReply, KeptPlace, LockOwner, SeveralReply } from '../core/store/lock-store.js';
import { waitersOf } from './keys.js';
import { readKeepReplies, stamp } from './lock-replies.js';
import { KEEP } from './script/scripts.js';
import type { ScriptHost } from './script-host.js';

/** How the resources of one call are acquired in the slots of a cluster. On one server, all are in one slot. */
interface SlotRequests {
  slotOf(waiter: LockOwner): string;
  /** One script. @param mayQueue whether the first waiter may join the queue */
  acquire(waiters: readonly LockOwner[], mayQueue: boolean): Promise<SeveralReply>;
  /** Whether the call waits. Two that do not could refuse each other, so each of them stays in its first slot. */
  readonly isWait: boolean;
}

type LaterToken = SeveralReply['laterTokens'][number];

/** Sends one script for each slot, all at the same time. Only that of the first slot may join a queue. */
export function acquireBySlot(waiters: readonly LockOwner[], requests: SlotRequests): Promise<SeveralReply> {
  const slots = new Map<string, LockOwner[]>();
  for (const waiter of waiters) {
    const slot = requests.slotOf(waiter);
    const inSlot = slots.get(slot);
    if (inSlot) inSlot.push(waiter);
    else slots.set(slot, [waiter]);
  }
  const [inFirst, ...inOthers] = slots.values();
  if (inOthers.length === 0) return requests.acquire(inFirst!, true);
  return acquireAtOnce(waiters, inFirst!, requests.isWait ? inOthers : [], requests);
}

async function acquireAtOnce(
  waiters: readonly LockOwner[],
  inFirst: readonly LockOwner[],
  inOthers: readonly (readonly LockOwner[])[],
  { acquire }: SlotRequests,
): Promise<SeveralReply> {
  const tokens = new Map<LockOwner, LaterToken>();
  const note = (owners: readonly LockOwner[], known: readonly LaterToken[]): void => {
    for (const [index, owner] of owners.entries()) tokens.set(owner, known[index]);
  };
  const ask = async (owners: readonly LockOwner[], mayQueue: boolean): Promise<SeveralReply['first']> => {
    try {
      const { first, laterTokens } = await acquire(owners, mayQueue);
      const isGranted = 'status' in first && first.status === 'granted';
      note(owners, [isGranted ? first.fencingToken : undefined, ...laterTokens]);
      return first;
    } catch (thrown) {
      const error = asStoreError(thrown);
      if (error.failure === 'unknown') note(owners, Array<null>(owners.length).fill(null));
      return error;
    }
  };
  const [first] = await Promise.all([ask(inFirst, true), ...inOthers.map((inSlot) => ask(inSlot, false))]);
  return { first, laterTokens: waiters.slice(1).map((waiter) => tokens.get(waiter)) };
}

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

import { setTimeout as sleep } from 'node:timers/promises';
import { machineNow } from '../../../test/support/expect/machine-now.js';
import type { Fault } from '../faults/fault.js';
import { intruder } from '../faults/intruder.js';
import { processFaults } from '../faults/process-faults.js';
import { inject } from '../run/inject.js';
import type { Slot } from '../world/slot.js';
import type { World } from '../world/world.js';

/** What happens to a small world, until the signal says that it is enough. */
export type Trouble = (world: World, signal: AbortSignal) => Promise<void>;

interface Seen {
  readonly holders: readonly Slot[];
  readonly waiters: readonly Slot[];
}

/** The one that everybody wants. */
const RESOURCE = 'stock-0';
/** More than come in the time. */
const MANY = 50;

async function waiter(world: World): Promise<Slot | undefined> {
  return (await world.look(RESOURCE)).waiters[0];
}

async function holder(world: World): Promise<Slot | undefined> {
  return (await world.look(RESOURCE)).holders[0];
}

function again(...faults: Fault[]): Trouble {
  return (world, signal) => inject(world, { faults, each: MANY, together: 0, signal });
}

function withKind(kind: string): Fault {
  return processFaults.find((fault) => fault.kind === kind)!;
}

/** Holders and waiters stand still for longer than their leases last. */
export const stops = again(
  { ...withKind('SIGSTOP of a holder, past its lease'), choose: holder },
  { ...withKind('SIGSTOP of a waiter, past its place'), choose: waiter },
);

/** A holder, or one that was granted and does not know it, is suspended: its clock does not know how long. */
export const suspends = again(
  { ...withKind('suspend of a holder, past its lease'), choose: holder },
  { ...withKind('suspend of a granted waiter'), choose: waiter },
);

/** What a holder has sent until the end of its work arrives when its lease is long over. */
export const sendsLate = again({
  kind: 'network: nothing arrives for more than a lease',
  strikes: 'worker',
  choose: holder,
  async inject(world, { proxies: [proxy] }) {
    proxy!.blackHole('toServer');
    await sleep(2.2 * world.leaseMs);
    proxy!.heal();
  },
});

/** All messages of the time are lost. */
export function hearsNothing(forMs: number): Trouble {
  return (world, signal) => {
    const fault: Fault = {
      kind: 'network: the subscriber hears nothing',
      strikes: 'redis',
      async inject({ slots }) {
        for (const {
          proxies: [proxy],
        } of slots)
          proxy!.blackHole('toClient', 'subscriber');
        await sleep(forMs, undefined, { signal }).catch(() => undefined);
        for (const {
          proxies: [proxy],
        } of slots) {
          proxy!.cut('subscriber');
          proxy!.heal();
        }
      },
    };
    return again(fault)(world, signal);
  };
}

/** Redis lives, and all commands wait. */
export function answersNobody(forMs: number): Trouble {
  const fault: Fault = {
    kind: 'Redis: CLIENT PAUSE',
    strikes: 'redis',
    async inject({ redis, slots, say }) {
      const sentAt = machineNow();
      await redis.admins[0]!.call('CLIENT', 'PAUSE', forMs, 'ALL');
      const from = machineNow();
      await sleep(forMs);
      say({ type: 'unanswered', from, at: sentAt + forMs, victims: slots.map(({ worker }) => worker.instanceId) });
      await redis.admins[0]!.ping();
    },
  };
  return again(fault);
}

/** Somebody else sends into the inboxes what was overheard there. */
export const intrudes = again(intruder);

/** How long it takes to be sure that a free lock is given to nobody, with the lease of the dead. */
const SURE_MS = 2_000;

/** A worker that waits is granted the lock, and dies before it knows. Then the others are left alone for a while. */
export const diesOfGrant: Trouble = (world, signal) => {
  const fault: Fault = {
    kind: 'kill -9 of a granted waiter',
    strikes: 'worker',
    async inject(_, victim) {
      if (!(await stopWhen(world, [victim], ({ waiters }) => waiters.includes(victim), signal))) return;
      const giveUpAt = performance.now() + world.leaseMs;
      while (!(await world.look(RESOURCE)).holders.includes(victim) && performance.now() < giveUpAt) await sleep(5);
      await world.kill(victim);
      await world.replace(victim);
      await sleep(SURE_MS, undefined, { signal }).catch(() => undefined);
    },
  };
  return again(fault)(world, signal);
};

/** All die at the same time: one holds the lock, and another one waits for it. */
export const killsAll: Trouble = async (world, signal) => {
  const isWanted = ({ holders, waiters }: Seen): boolean => holders.length > 0 && waiters.length > 0;
  for (;;) {
    if (!(await stopWhen(world, world.slots, isWanted, signal))) return;
    // What they had sent is still under way to Redis: a release may leave none that waits.
    await sleep(20);
    await world.redis.admins[0]!.ping();
    if (isWanted(await world.look(RESOURCE))) break;
    for (const { worker } of world.slots) worker.resume();
  }
  for (const slot of world.slots) await world.kill(slot);
};

/**
 * Stops workers in a moment in which it is so: they send nothing while they stand still. Returns whether it came to that.
 */
async function stopWhen(
  world: World,
  slots: readonly Slot[],
  isSo: (seen: Seen) => boolean,
  signal: AbortSignal,
): Promise<boolean> {
  while (!signal.aborted) {
    for (const { worker } of slots) worker.suspend();
    if (isSo(await world.look(RESOURCE))) return true;
    for (const { worker } of slots) worker.resume();
    await sleep(5);
  }
  return false;
}

import { setTimeout as sleep } from 'node:timers/promises';
import { machineNow } from '../../../test/support/expect/machine-now.js';
import type { Fault } from '../faults/fault.js';
import { refusalFaults } from '../faults/refusal-faults.js';
import { ROUNDING_MS } from '../faults/snapshot-fault.js';
import { intruder } from '../faults/intruder.js';
import { processFaults } from '../faults/process-faults.js';
import { inject } from '../run/inject.js';
import type { ChaosRedis } from '../servers/chaos-redis.js';
import type { Slot } from '../world/slot.js';
import type { World } from '../world/world.js';

/** Disturbs a small world until the signal aborts. */
export type Trouble = (world: World, signal: AbortSignal, redis: ChaosRedis) => Promise<void>;

interface Seen {
  readonly holders: readonly Slot[];
  readonly waiters: readonly Slot[];
}

/** The resource that all workers want. */
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

/** Stalls holders and waiters for longer than their leases last. */
export const stops = again(
  { ...withKind('SIGSTOP of a holder, past its lease'), choose: holder },
  { ...withKind('SIGSTOP of a waiter, past its place'), choose: waiter },
);

/** A holder, or one that was granted and does not know it, is suspended: its clock does not know how long. */
export const suspends = again(
  { ...withKind('suspend of a holder, past its lease'), choose: holder },
  { ...withKind('suspend of a granted waiter'), choose: waiter },
);

/** Delays all commands of a holder until long after its lease. */
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
  return (world, signal, redis) => {
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
    return again(fault)(world, signal, redis);
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

/** Redis refuses everything for a second. */
export const refuses: Trouble = (world, signal, redis) => again(...refusalFaults(redis))(world, signal, redis);

/** Sends overheard messages into the inboxes. */
export const intrudes = again(intruder);

/** Time after which a free lock is certainly granted to nobody, including the lease of the dead process. */
const SURE_MS = 2_000;

/** A worker that waits is granted the lock, and dies before it knows. Then the others are left alone for a while. */
export const diesOfGrant: Trouble = (world, signal, redis) => {
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
  return again(fault)(world, signal, redis);
};

/** All die at the same time: one holds the lock, and another one waits for it. */
export const killsAll: Trouble = async (world, signal) => {
  for (;;) {
    if (!(await stopWhen(world, world.slots, isWanted, signal))) return;
    // Their last commands are still on the way: a release may leave no waiter.
    await sleep(20);
    await world.redis.admins[0]!.ping();
    if (isWanted(await world.look(RESOURCE))) break;
    for (const { worker } of world.slots) worker.resume();
  }
  for (const slot of world.slots) await world.kill(slot);
};

const isWanted = ({ holders, waiters }: Seen): boolean => holders.length > 0 && waiters.length > 0;

/** Restores an old state of Redis. An operator ends the lease that reappears, and then one of the waiters gives up. */
export const comesBackOld: Trouble = (world, signal, redis) =>
  again({
    kind: 'Redis: kill -9, back from an old snapshot',
    strikes: 'redis',
    losesData: true,
    async inject() {
      const seen = await stopWhen(
        world,
        world.slots,
        ({ holders, waiters }) => holders.length > 0 && waiters.length > 1,
        signal,
      );
      if (!seen) return false;
      const [holder, leaving] = [seen.holders[0]!, seen.waiters[1]!];
      await redis.snapshot();
      await redis.kill();
      await redis.restart({ keepData: true });
      return outlives(world, holder, signal, async () => {
        while (!signal.aborted && (await world.look(RESOURCE)).holders.length > 0) await world.forceRelease(RESOURCE);
        // The other one has kept its place by then.
        await sleep(world.leaseMs / 8);
        await world.terminate(leaving);
        await world.replace(leaving);
      });
    },
  })(world, signal, redis);

/** Redis loses what it has logged since the last grant. */
export const losesPower: Trouble = (world, signal, redis) =>
  again({
    kind: 'Redis: power failure',
    strikes: 'redis',
    losesData: true,
    async inject() {
      const holds = world.countHolds();
      let seen: Seen | undefined;
      await redis.losePower(async () => {
        while (!signal.aborted && world.countHolds() === holds) await sleep(5);
        seen = await stopWhen(world, world.slots, isWanted, signal);
      });
      return seen !== undefined && outlives(world, seen.holders[0]!, signal);
    },
  })(world, signal, redis);

/** Stalls a holder until its lease has expired, and Redis doesn't know about it. The others continue. */
async function outlives(
  world: World,
  holder: Slot,
  signal: AbortSignal,
  meanwhile?: () => Promise<void>,
): Promise<void> {
  for (const slot of world.slots) if (slot !== holder) slot.worker.resume();
  try {
    await meanwhile?.();
    await sleep(world.leaseMs + ROUNDING_MS, undefined, { signal }).catch(() => undefined);
  } finally {
    holder.worker.resume();
  }
}

/** Stops workers at a moment for which `isSo` is true, and returns its state. Stopped workers send nothing. */
async function stopWhen(
  world: World,
  slots: readonly Slot[],
  isSo: (seen: Seen) => boolean,
  signal: AbortSignal,
): Promise<Seen | undefined> {
  while (!signal.aborted) {
    for (const { worker } of slots) worker.suspend();
    const seen = await world.look(RESOURCE);
    if (isSo(seen)) return seen;
    for (const { worker } of slots) worker.resume();
    await sleep(5);
  }
  return undefined;
}

import { setTimeout as sleep } from 'node:timers/promises';
import { machineNow } from '../../../test/support/expect/machine-now.js';
import type { Slot } from '../world/slot.js';
import type { World } from '../world/world.js';
import type { Fault } from './fault.js';

/** The most contended resources, which nearly always have a holder and waiters. */
export const WANTED = ['stock-0', 'ledger-0', 'prices-0', 'exports-0', 'leader:worker'];

async function holder(world: World): Promise<Slot | undefined> {
  return (await world.look(world.oneOf(WANTED))).holders.find(({ worker }) => !worker.isStopped);
}

async function firstWaiter(world: World): Promise<Slot | undefined> {
  return (await world.look(world.oneOf(WANTED))).waiters.find(({ worker }) => !worker.isStopped);
}

type Role = 'holders' | 'waiters';

/** Which of the resources it holds, or waits for. */
export async function those(world: World, victim: Slot, role: Role): Promise<string[]> {
  const seen = await Promise.all(WANTED.map((resource) => world.look(resource)));
  return WANTED.filter((_, index) => seen[index]![role].includes(victim));
}

/**
 * Stops it while it holds or waits, and returns the resources. Returns none, and lets it run, if no such moment comes.
 */
async function stopAs(world: World, victim: Slot, role: Role): Promise<string[]> {
  for (let tries = 0; tries < 10; tries++) {
    victim.worker.suspend();
    const found = await those(world, victim, role);
    if (found.length > 0) return found;
    victim.worker.resume();
    await sleep(world.leaseMs / 50);
  }
  return [];
}

/**
 * Stops a waiter until Redis has granted it the resource unknown to it. Returns false, and lets it run, if that doesn't
 * happen.
 */
async function stopUntilGranted(world: World, victim: Slot): Promise<boolean> {
  const wanted = await stopAs(world, victim, 'waiters');
  const held = await those(world, victim, 'holders');
  for (let looked = 0; wanted.length > 0 && looked < 10; looked++) {
    const now = await those(world, victim, 'holders');
    if (now.some((resource) => wanted.includes(resource) && !held.includes(resource))) return true;
    await sleep(world.leaseMs / 20);
  }
  victim.worker.resume();
  return false;
}

async function killAndReplace(world: World, victim: Slot): Promise<void> {
  await world.kill(victim);
  await world.replace(victim);
}

async function resumeAfter(world: World, { worker }: Slot, leases: number): Promise<void> {
  await sleep(leases * world.leaseMs);
  worker.resume();
}

/** Resumes it as after a suspend of its machine: its monotonic clock skips that time. */
async function suspendFor(world: World, { worker, clock }: Slot, leases: number): Promise<void> {
  const from = machineNow();
  await sleep(leases * world.leaseMs);
  clock!.suspend(machineNow() - from);
  worker.resume();
}

/** The fault is about one that holds, or waits: it is stopped as such first. */
function of(role: Role, inject: Fault['inject']): Pick<Fault, 'strikes' | 'choose' | 'inject'> {
  return {
    strikes: 'worker',
    choose: role === 'holders' ? holder : firstWaiter,
    inject: async (world, victim) => (await stopAs(world, victim, role)).length > 0 && inject(world, victim),
  };
}

/** The same of one that was granted what it waited for, and does not know it. */
function ofGranted(inject: Fault['inject']): Pick<Fault, 'strikes' | 'choose' | 'inject'> {
  return {
    strikes: 'worker',
    choose: firstWaiter,
    inject: async (world, victim) => (await stopUntilGranted(world, victim)) && inject(world, victim),
  };
}

async function block(world: World, { worker }: Slot, leases: number): Promise<void> {
  worker.send({ type: 'block', ms: leases * world.leaseMs });
  await sleep(leases * world.leaseMs);
}

/** Faults on the processes of an application. */
export const processFaults: readonly Fault[] = [
  { kind: 'kill -9 of a holder', ...of('holders', killAndReplace) },
  { kind: 'kill -9 of a waiter', ...of('waiters', killAndReplace) },
  { kind: 'kill -9 of a granted waiter', ...ofGranted(killAndReplace) },
  {
    kind: 'SIGSTOP of a holder, past its lease',
    ...of('holders', (world, victim) => resumeAfter(world, victim, 1.1 + world.random.fraction())),
  },
  {
    kind: 'SIGSTOP of a waiter, past its place',
    ...of('waiters', (world, victim) => resumeAfter(world, victim, 1.1 + world.random.fraction())),
  },
  {
    kind: 'SIGSTOP of a granted waiter',
    ...ofGranted((world, victim) => resumeAfter(world, victim, world.random.fraction())),
  },
  {
    kind: 'suspend of a holder, past its lease',
    needsClock: true,
    ...of('holders', (world, victim) => suspendFor(world, victim, 1.1 + world.random.fraction())),
  },
  {
    kind: 'suspend of a granted waiter',
    needsClock: true,
    ...ofGranted((world, victim) => suspendFor(world, victim, 0.4 + world.random.fraction())),
  },
  {
    kind: 'event loop blocked for 0.9 leases',
    strikes: 'worker',
    choose: holder,
    inject: (world, victim) => block(world, victim, 0.9),
  },
  {
    kind: 'event loop blocked for 2 leases',
    strikes: 'worker',
    choose: holder,
    inject: (world, victim) => block(world, victim, 2),
  },
  {
    kind: 'SIGTERM with held leases',
    ...of('holders', async (world, victim) => {
      victim.worker.resume();
      await world.terminate(victim);
      await world.replace(victim);
    }),
  },
  {
    kind: 'wall clock of a worker +60 s or -60 s',
    strikes: 'worker',
    needsClock: true,
    async inject(world, { clock }) {
      const step = world.upTo(2) ? 60_000 : -60_000;
      clock!.step(step);
      await sleep(world.leaseMs / 2);
      clock!.step(-step);
    },
  },
];

import { setTimeout as sleep } from 'node:timers/promises';
import type { QuorumSet } from '../servers/quorum-set.js';
import type { Slot } from '../world/slot.js';
import type { World } from '../world/world.js';
import type { Fault } from './fault.js';

/** So many of the nodes. */
function some(world: World, count: number): number[] {
  const left = world.redis.ports.map((_, index) => index);
  return Array.from({ length: count }, () => left.splice(world.upTo(left.length), 1)[0]!);
}

/** Less than a lease, or more. */
function anyTime(world: World): number {
  return world.leaseMs * (0.4 + 1.1 * world.random.fraction());
}

/** What is sent between the worker and so many nodes goes nowhere. */
async function cutOff(world: World, { proxies }: Slot, count: number): Promise<void> {
  const cut = some(world, count).map((index) => proxies[index]!);
  for (const proxy of cut) {
    proxy.blackHole('toServer');
    proxy.blackHole('toClient');
  }
  await sleep(anyTime(world));
  for (const proxy of cut) {
    // What was held back arrives, or is lost.
    if (world.upTo(2)) proxy.cut();
    proxy.heal();
  }
}

/** Redis executes, and the worker never hears of it: of each script to one node, for a while. */
async function loseReplies(world: World, { proxies }: Slot): Promise<boolean> {
  const proxy = proxies[world.upTo(proxies.length)]!;
  let isOver = false;
  let lost = 0;
  const over = sleep(anyTime(world)).then(() => (isOver = true));
  while (!isOver) {
    const happened = proxy.loseNextReply('commands').then(() => lost++);
    await Promise.race([happened, over]);
  }
  proxy.heal();
  return lost > 0;
}

/** What happens to five nodes of which three decide: two of them are missed by nobody. */
export function quorumFaults(set: QuorumSet): Fault[] {
  const revive = (): Promise<void> => set.revive();
  const killed = async (world: World, count: number): Promise<void> => {
    await set.kill(some(world, count));
    await sleep(anyTime(world));
  };
  const paused = (world: World, count: number): Promise<void> => set.pause(some(world, count), anyTime(world));
  return [
    ...[1, 2].flatMap((count): Fault[] => [
      {
        kind: `Quorum: kill -9 of ${count} of 5 nodes, back empty`,
        strikes: 'nobody',
        inject: (world) => killed(world, count),
        restore: revive,
      },
      { kind: `Quorum: SIGSTOP of ${count} of 5 nodes`, strikes: 'nobody', inject: (world) => paused(world, count) },
    ]),
    {
      kind: 'Quorum: kill -9 of 3 of 5 nodes, back empty',
      strikes: 'redis',
      inject: async (world) => {
        await killed(world, 3);
        await revive();
      },
    },
    { kind: 'Quorum: SIGSTOP of 3 of 5 nodes', strikes: 'redis', inject: (world) => paused(world, 3) },
    {
      kind: 'Quorum: a worker is cut off from 2 of 5 nodes',
      strikes: 'nobody',
      inject: (world, victim) => cutOff(world, victim, 2),
    },
    {
      kind: 'Quorum: a worker is cut off from 3 of 5 nodes',
      strikes: 'worker',
      inject: (world, victim) => cutOff(world, victim, 3),
    },
    { kind: 'Quorum: replies of a node are lost after it has executed', strikes: 'nobody', inject: loseReplies },
  ];
}

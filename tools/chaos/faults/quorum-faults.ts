import { setTimeout as sleep } from 'node:timers/promises';
import type { QuorumSet } from '../servers/quorum-set.js';
import type { Slot } from '../world/slot.js';
import type { World } from '../world/world.js';
import type { Fault } from './fault.js';
import { those } from './process-faults.js';

/** So many of the nodes. */
function some(world: World, count: number): number[] {
  const left = world.redis.ports.map((_, index) => index);
  return Array.from({ length: count }, () => left.splice(world.upTo(left.length), 1)[0]!);
}

/** Less than a lease, or more. */
function anyTime(world: World): number {
  return world.leaseMs * (0.4 + 1.1 * world.random.fraction());
}

/** Drops all data between the worker and these nodes. @param meanwhile time to wait */
async function cutOff(
  world: World,
  { proxies }: Slot,
  nodes: readonly number[],
  meanwhile: () => Promise<unknown> = () => sleep(anyTime(world)),
): Promise<void> {
  const cut = nodes.map((index) => proxies[index]!);
  for (const proxy of cut) {
    proxy.blackHole('toServer');
    proxy.blackHole('toClient');
  }
  await meanwhile();
  for (const proxy of cut) {
    // Delayed data arrives or gets lost.
    if (world.upTo(2)) proxy.cut();
    proxy.heal();
  }
}

/** Lets Redis execute the scripts to one node and drops the replies, for a while. */
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

/** A node loses what it has just logged: one of the votes for a worker that was granted something and has none to spare. */
async function losePower(world: World, victim: Slot, set: QuorumSet): Promise<void> {
  const [node, ...missed] = some(world, 3);
  const held = await those(world, victim, 'holders');
  const granted = async (): Promise<void> => {
    const until = performance.now() + 2 * world.leaseMs;
    while ((await those(world, victim, 'holders')).every((one) => held.includes(one)) && performance.now() < until) {
      await sleep(10);
    }
  };
  await cutOff(world, victim, missed, () => set.losePower(node!, granted));
}

/** Faults on five nodes of which any two may fail. */
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
      inject: (world, victim) => cutOff(world, victim, some(world, 2)),
    },
    {
      kind: 'Quorum: a worker is cut off from 3 of 5 nodes',
      strikes: 'worker',
      inject: (world, victim) => cutOff(world, victim, some(world, 3)),
    },
    {
      kind: 'Quorum: power failure of a node, while a worker is cut off from 2 others',
      // Every worker that has the vote of this node may find that a majority has forgotten its lease.
      strikes: 'redis',
      inject: (world, victim) => losePower(world, victim, set),
      restore: () => set.untilAllVote(),
    },
    { kind: 'Quorum: replies of a node are lost after it has executed', strikes: 'nobody', inject: loseReplies },
  ];
}

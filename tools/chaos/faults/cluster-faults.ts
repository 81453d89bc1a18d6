import type { ChaosCluster } from '../servers/chaos-cluster.js';
import type { World } from '../world/world.js';
import type { Fault } from './fault.js';
import { WANTED } from './process-faults.js';

/** The lock key of one of the contended resources. */
function wantedKey(world: World): string {
  return `lock:{${world.oneOf(WANTED)}}`;
}

/** Faults on the nodes of a cluster that lose no data. */
export function clusterFaults(cluster: ChaosCluster): Fault[] {
  const fault = (kind: string, inject: (world: World) => Promise<unknown>): Fault => ({
    kind,
    strikes: 'redis',
    inject,
  });
  return [
    {
      ...fault('Cluster: kill -9 of a primary, to a current replica', (world) => cluster.killPrimary(wantedKey(world))),
      restore: () => cluster.untilWhole(),
    },
    {
      ...fault('Cluster: fail-over by command', (world) => cluster.failOver(wantedKey(world))),
      restore: () => cluster.untilWhole(),
    },
    fault('Cluster: a slot moves', (world) => cluster.moveSlot(wantedKey(world), world.upTo(world.leaseMs / 2))),
    fault('Cluster: SIGSTOP of a node', (world) => {
      return cluster.pauseNode(world.random.fraction(), world.leaseMs * (0.2 + 0.8 * world.random.fraction()));
    }),
    fault('Cluster: CLIENT KILL of the command connections', async () => (await cluster.killClients('normal')) > 0),
    fault('Cluster: CLIENT KILL of the subscribers', async () => (await cluster.killClients('pubsub')) > 0),
    fault('Cluster: SCRIPT FLUSH, again and again', ({ leaseMs }) => cluster.flushScripts(leaseMs / 4)),
  ];
}

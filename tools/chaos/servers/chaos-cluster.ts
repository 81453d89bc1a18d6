import { setTimeout as sleep } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import type { ClusterConnectionOptions } from '../../../lib/redis/connection/connection-options.js';
import { slotOf } from '../../../lib/redis/topology/slot.js';
import { asDocumentedUser, documentedUserArgs } from '../../../test/support/redis/lock-user.js';
import { type ClusterNode, RedisCluster } from '../../../test/support/redis/redis-cluster.js';
import { insist } from '../../../test/support/redis/admin-client.js';
import { isPrimary, untilCaughtUp, untilPrimary } from './replication.js';

/**
 * A silent node counts as down after this time, and a new vote on the same primary takes twice as long. Usually long,
 * so that a busy machine doesn't make nodes unavailable.
 */
const NODE_TIMEOUT_MS = { failOver: 1_000, usual: 60_000 };
/** Until the primary is killed. */
const HOLD_WRITES_MS = 60_000;
/** Redis gives up a fail-over by command after 5 s. */
const FAIL_OVER_MS = 6_000;
/** Gives up: more attempts would not help. */
const FAIL_OVERS = 10;

/** Additional rights of the user on a cluster. ioredis sends INFO by itself, and prints a warning without the right. */
const CLUSTER_RIGHTS = ['+asking', '+cluster|slots', '+info'];

/** A cluster of three primaries with a replica each, with faults. Only a fault promotes a replica. */
export class ChaosCluster implements AsyncDisposable {
  /** Killed, and not back yet. */
  #dead: ClusterNode | undefined;

  private constructor(private readonly cluster: RedisCluster) {}

  static async start(): Promise<ChaosCluster> {
    const args = [...documentedUserArgs(), ...CLUSTER_RIGHTS, '--cluster-replica-no-failover', 'yes'];
    return new ChaosCluster(await RedisCluster.start({ replicas: 1, nodeTimeoutMs: NODE_TIMEOUT_MS.usual, args }));
  }

  /** The connection for the lock module: as the user with the least rights. */
  get connection(): ClusterConnectionOptions {
    const { cluster: urls } = this.cluster.connection;
    return { cluster: urls.map((url) => asDocumentedUser(url as string)) };
  }

  /** All rights, on each node. */
  get admins(): readonly Redis[] {
    return this.cluster.nodes.map(({ admin }) => admin);
  }

  /** SIGKILL to the primary of a key, when its replica has all it has. Resolves when that is the primary. */
  async killPrimary(key: string): Promise<void> {
    const old = await this.cluster.primaryOf(key);
    const next = await this.#replicaOf(old);
    await next.admin.config('SET', 'cluster-replica-no-failover', 'no');
    await this.#setNodeTimeout(NODE_TIMEOUT_MS.failOver);
    await insist(() => old.admin.call('CLIENT', 'PAUSE', HOLD_WRITES_MS, 'WRITE'));
    await untilCaughtUp(next.admin, old.admin);
    this.#dead = old;
    await old.server.kill();
    await untilPrimary(next.admin);
    await next.admin.config('SET', 'cluster-replica-no-failover', 'yes');
  }

  /** After a fail-over: the old primary, which comes back where it was killed, is the replica of the new one. */
  async untilWhole(): Promise<void> {
    await this.#setNodeTimeout(NODE_TIMEOUT_MS.usual);
    await this.#dead?.server.restart({ keepData: true });
    this.#dead = undefined;
    await this.cluster.untilAgreed();
    await this.cluster.untilReplicated();
  }

  /** The replica of the primary of a key takes its place, by command: without a loss. */
  async failOver(key: string): Promise<void> {
    const next = await this.#replicaOf(await this.cluster.primaryOf(key));
    await this.#setNodeTimeout(NODE_TIMEOUT_MS.failOver);
    for (let tries = 1; ; tries++) {
      await insist(() => next.admin.call('CLUSTER', 'FAILOVER'));
      try {
        return await untilPrimary(next.admin, FAIL_OVER_MS);
      } catch (error) {
        if (tries === FAIL_OVERS) throw error;
      }
    }
  }

  /** Moves the slot of a key to another primary, over a period of `forMs`. */
  async moveSlot(key: string, forMs: number): Promise<void> {
    const from = await this.cluster.primaryOf(key);
    const arePrimaries = await Promise.all(this.admins.map(isPrimary));
    const to = this.cluster.nodes.find((node, index) => arePrimaries[index] && node !== from)!;
    const finish = await this.cluster.beginMove(slotOf(key), from, to);
    await sleep(forMs);
    await finish();
  }

  /** SIGSTOP to any of the nodes, for less than the others wait for. */
  async pauseNode(fraction: number, ms: number): Promise<void> {
    const { server } = this.cluster.nodes[Math.floor(fraction * this.cluster.nodes.length)]!;
    await server.pause();
    await sleep(ms);
    await server.resume();
  }

  /** Closes all connections of a type on all nodes, except the harness's. Returns their number. */
  async killClients(type: 'normal' | 'pubsub'): Promise<number> {
    const killed = await Promise.all(
      this.admins.map((admin) => insist(() => admin.call('CLIENT', 'KILL', 'TYPE', type, 'SKIPME', 'yes'))),
    );
    return killed.reduce((sum: number, count) => sum + Number(count), 0);
  }

  /** All nodes forget all scripts, again and again. */
  async flushScripts(forMs: number): Promise<void> {
    const until = performance.now() + forMs;
    do {
      await Promise.all(this.admins.map((admin) => insist(() => admin.script('FLUSH'))));
      await sleep(1);
    } while (performance.now() < until);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.cluster[Symbol.asyncDispose]();
  }

  async #replicaOf(primary: ClusterNode): Promise<ClusterNode> {
    const [replica] = (await insist(() => primary.admin.call('CLUSTER', 'REPLICAS', primary.id))) as string[];
    return this.cluster.nodes.find(({ id }) => replica!.startsWith(id))!;
  }

  async #setNodeTimeout(ms: number): Promise<void> {
    const alive = this.cluster.nodes.filter((node) => node !== this.#dead);
    await Promise.all(alive.map(({ admin }) => insist(() => admin.config('SET', 'cluster-node-timeout', String(ms)))));
  }
}

import { Redis } from 'ioredis';
import { findFreeClusterPort } from '../../../scripts/redis/free-port.mjs';
import type { ClusterConnectionOptions } from '../../../lib/redis/connection/connection-options.js';
import { SLOTS, slotOf } from '../../../lib/redis/topology/slot.js';
import { eventually } from '../expect/eventually.js';
import { type RedisServer, type RedisServerOptions, startRedis } from './redis-server.js';

/** Long, so that a busy machine does not cause a failover; a test that wants one sets it. */
const NODE_TIMEOUT_MS = 15_000;
const PATIENCE_MS = 45_000;

export interface RedisClusterOptions {
  /** @default 3 */
  primaries?: number;
  /** Of each primary. @default 0 */
  replicas?: number;
  /** A silent node counts as down after this time. @default 15000 */
  nodeTimeoutMs?: number;
  /** Further options of each redis-server. */
  args?: string[];
}

/** One node of a cluster. */
export class ClusterNode {
  /** All rights; what it is asked while the node is down is rejected. */
  readonly admin: Redis;

  constructor(
    readonly server: RedisServer,
    /** Its id in the cluster. */
    readonly id: string,
  ) {
    this.admin = new Redis(server.port, { maxRetriesPerRequest: 0, retryStrategy: () => 20, disconnectTimeout: 0 });
    this.admin.on('error', () => undefined);
  }

  get address(): string {
    return `127.0.0.1:${this.server.port}`;
  }
}

/** A private Redis Cluster on the loopback. The primaries come first, each with an equal part of the slots. */
export class RedisCluster implements AsyncDisposable {
  private constructor(
    readonly nodes: readonly ClusterNode[],
    private readonly replicas: number,
  ) {}

  static async start(options: RedisClusterOptions = {}): Promise<RedisCluster> {
    const { primaries = 3, replicas = 0 } = options;
    const nodes = await Promise.all(Array.from({ length: primaries * (1 + replicas) }, () => startNode(options)));
    const cluster = new RedisCluster(nodes, replicas);
    const [first] = nodes;
    for (const [index, { admin, server }] of nodes.entries()) {
      await admin.call('CLUSTER', 'SET-CONFIG-EPOCH', index + 1);
      if (index > 0) await first!.admin.call('CLUSTER', 'MEET', '127.0.0.1', server.port);
      if (index >= primaries) continue;
      const [from, to] = [index, index + 1].map((part) => Math.floor((part * SLOTS) / primaries)) as [number, number];
      // By range only since Redis 7.
      await admin.call('CLUSTER', 'ADDSLOTS', ...Array.from({ length: to - from }, (_, i) => from + i));
    }
    await cluster.untilAgreed();
    for (const [index, { admin }] of nodes.entries()) {
      if (index < primaries) continue;
      await eventually(() => admin.call('CLUSTER', 'REPLICATE', nodes[index % primaries]!.id), PATIENCE_MS);
    }
    await cluster.untilAgreed();
    await cluster.untilReplicated();
    return cluster;
  }

  /** The connection for the lock module. */
  get connection(): ClusterConnectionOptions {
    return { cluster: this.nodes.map(({ server }) => server.url) };
  }

  /** The primary that has the slot of a key, as the nodes see it. */
  async primaryOf(key: string): Promise<ClusterNode> {
    const slot = slotOf(key);
    for (const node of this.nodes) {
      const owner = (await viewOf(node))?.ownerOf(slot);
      const found = this.nodes.find(({ id }) => id === owner);
      if (found) return found;
    }
    throw new Error(`Nobody has slot ${slot}`);
  }

  /**
   * Begins to move a slot: each of its keys is on one of the two nodes. Returns the function that moves the keys, and
   * ends it: afterwards all nodes that run know the new owner.
   */
  async beginMove(slot: number, from: ClusterNode, to: ClusterNode): Promise<() => Promise<void>> {
    await this.#untilOwned(slot, from);
    await to.admin.call('CLUSTER', 'SETSLOT', slot, 'IMPORTING', from.id);
    await from.admin.call('CLUSTER', 'SETSLOT', slot, 'MIGRATING', to.id);
    return async () => {
      const keys = (await from.admin.call('CLUSTER', 'GETKEYSINSLOT', slot, 1_000)) as string[];
      for (const key of keys) await from.admin.call('MIGRATE', '127.0.0.1', to.server.port, key, 0, 5_000);
      await to.admin.call('CLUSTER', 'SETSLOT', slot, 'NODE', to.id);
      await from.admin.call('CLUSTER', 'SETSLOT', slot, 'NODE', to.id);
      for (const { admin } of this.nodes)
        await admin.call('CLUSTER', 'SETSLOT', slot, 'NODE', to.id).catch(() => undefined);
      await this.#untilOwned(slot, to);
    };
  }

  /**
   * Waits until every node that runs sees the slot at the same one, and knows the config epochs of the others. The
   * greatest one decides: a node that takes a slot, and has not heard of an epoch that is greater than its own, loses
   * the slot to the old owner again, and deletes the keys.
   */
  async #untilOwned(slot: number, owner: ClusterNode): Promise<void> {
    await eventually(async () => {
      const views = (await Promise.all(this.nodes.map(viewOf))).filter((view) => view !== undefined);
      for (const { id, epochs, ownerOf } of views) {
        if (ownerOf(slot) !== owner.id) throw new Error(`Slot ${slot} is at ${ownerOf(slot)} for ${id}`);
        for (const other of views) {
          const [known, own] = [epochs.get(other.id), other.epochs.get(other.id)];
          if (known !== own) throw new Error(`${id} knows epoch ${known} of ${other.id}, which is at ${own}`);
        }
      }
    }, PATIENCE_MS);
  }

  /** Empty again: keys, and nothing else. */
  async flush(): Promise<void> {
    for (const { admin } of this.nodes) await admin.flushall().catch(() => undefined);
  }

  /** All keys of all primaries. */
  async keys(pattern = '*'): Promise<string[]> {
    const found = await Promise.all(this.nodes.map(({ admin }) => admin.keys(pattern).catch(() => [])));
    return [...new Set(found.flat())].sort();
  }

  /** Every node that runs sees all slots served. */
  async untilAgreed(): Promise<void> {
    await eventually(async () => {
      for (const { admin } of this.nodes) {
        const info = (await admin.call('CLUSTER', 'INFO')) as string;
        const known = Number(/cluster_known_nodes:(\d+)/.exec(info)?.[1]);
        // Not the state alone, which is 'ok' for a moment while a node has been met, and its slots are not known.
        const isServed = info.includes('cluster_state:ok') && info.includes(`cluster_slots_ok:${SLOTS}`);
        if (!isServed || known !== this.nodes.length) throw new Error(info);
      }
    }, PATIENCE_MS);
  }

  /** Each primary has its replicas, and the other nodes know which. */
  async untilReplicated(): Promise<void> {
    await eventually(async () => {
      const primaries = new Set<string>();
      for (const { admin, id } of this.nodes) {
        const info = await admin.info('replication');
        const isReady = info.includes('role:master')
          ? info.includes(`connected_slaves:${this.replicas}`)
          : info.includes('master_link_status:up');
        if (!isReady) throw new Error(info);
        if (info.includes('role:master')) primaries.add(id);
      }
      for (const { admin } of this.nodes) {
        for (const id of primaries) {
          const known = (await admin.call('CLUSTER', 'REPLICAS', id)) as string[];
          if (known.length !== this.replicas) throw new Error(`${id} is not known to have ${this.replicas} replicas`);
        }
      }
    }, PATIENCE_MS);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const { admin } of this.nodes) admin.disconnect();
    await Promise.all(this.nodes.map(({ server }) => server.stop()));
  }
}

/** A node's view of all nodes; `undefined` if it does not run. */
async function viewOf({ admin, id }: ClusterNode) {
  const text = (await admin.call('CLUSTER', 'NODES').catch(() => '')) as string;
  if (text === '') return undefined;
  // id, address, flags, primary, ping, pong, config epoch, state of the link, and ranges of slots
  const lines = text
    .trim()
    .split('\n')
    .map((line) => line.split(' '));
  const epochs = new Map(lines.map(([of, , , , , , epoch]) => [of!, Number(epoch)]));
  const ownerOf = (slot: number): string | undefined => {
    const has = ([, , , , , , , , ...ranges]: string[]) =>
      ranges.some((range) => {
        const [first, last = first] = range.split('-').map(Number) as [number, number?];
        return first <= slot && slot <= last;
      });
    return lines.find(has)?.[0];
  };
  return { id, epochs, ownerOf };
}

async function startNode({ nodeTimeoutMs = NODE_TIMEOUT_MS, args = [] }: RedisClusterOptions): Promise<ClusterNode> {
  const options: RedisServerOptions = {
    args: [
      '--cluster-enabled',
      'yes',
      '--cluster-node-timeout',
      String(nodeTimeoutMs),
      '--cluster-require-full-coverage',
      'no',
      '--repl-diskless-sync-delay',
      '0',
      ...args,
    ],
  };
  const server = await startOnClusterPort(options);
  const client = new Redis(server.port);
  const id = (await client.call('CLUSTER', 'MYID')) as string;
  client.disconnect();
  return new ClusterNode(server, id);
}

/** Another process may take one of the two ports between our look at them and the start. */
async function startOnClusterPort(options: RedisServerOptions, attempts = 5): Promise<RedisServer> {
  try {
    return await startRedis({ ...options, port: await findFreeClusterPort() });
  } catch (error) {
    if (attempts === 1 || !/address already in use|could not .*bind/i.test(String(error))) throw error;
    return startOnClusterPort(options, attempts - 1);
  }
}

/** One cluster for all tests of the enclosing file or `describe`, whose nodes all run after each of them. */
export function useRedisCluster(options?: RedisClusterOptions): () => RedisCluster {
  let cluster: RedisCluster | undefined;
  beforeAll(async () => {
    cluster = await RedisCluster.start(options);
  });
  afterAll(async () => {
    await cluster?.[Symbol.asyncDispose]();
  });
  return () => {
    if (cluster === undefined) throw new Error('The cluster of useRedisCluster() runs only inside tests and hooks');
    return cluster;
  };
}

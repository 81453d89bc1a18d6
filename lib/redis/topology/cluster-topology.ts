import type { Cluster, Redis } from 'ioredis';
import { inRootContext } from '../../core/util/async-contexts.js';
import { connectInRootContext } from '../connection/ioredis-quirks.js';
import type { OwnClients } from '../connection/own-clients.js';
import { reconnectPauses } from '../connection/ioredis-options.js';

/** How long a node may take to say which nodes there are, before another one is asked. */
const ANSWER_MS = 1_000;
/** How long ioredis waits for the end of a connection on which it has asked, also where there was none: by default 2 s. */
const GONE_MS = 50;
/** Whoever asks more often gets what was found out last. */
const SHORTEST_INTERVAL_MS = 100;

/** Which node of a cluster has which slot. Found out by ioredis, with its options for names, addresses and TLS. */
export class ClusterTopology {
  readonly #cluster: Cluster;
  /** What nodes have said since the table was read. */
  readonly #moved = new Map<number, string>();
  /** The connections on which ioredis asks a node at the moment. */
  readonly #asking = new Set<Redis>();
  #refreshedAt = -Infinity;
  #isRefreshing = false;
  #isClosed = false;
  lastError: Error | undefined;

  /** @param onChange called whenever the table was read */
  constructor(
    model: Cluster,
    leaseMs: number,
    private readonly clients: OwnClients,
    onChange: () => void,
  ) {
    this.#cluster = model.duplicate([], {
      lazyConnect: true,
      // Commands are sent by our own connections, which send nothing twice. CLUSTER INFO may be forbidden.
      enableReadyCheck: false,
      enableOfflineQueue: false,
      scaleReads: 'master',
      slotsRefreshTimeout: ANSWER_MS,
      clusterRetryStrategy: reconnectPauses(leaseMs),
      shardedSubscribers: false,
      redisOptions: { ...model.options.redisOptions, disconnectTimeout: GONE_MS },
    });
    connectInRootContext(this.#cluster);
    clients.add(this.#cluster);
    this.#cluster.on('+node', (node: Redis) => this.#watch(node));
    this.#cluster.on('node error', (error: Error) => (this.lastError = error));
    this.#cluster.on('error', (error: Error) => (this.lastError ??= error));
    this.#cluster.on('refresh', () => {
      this.lastError = undefined;
      this.#moved.clear();
      onChange();
    });
  }

  connect(): void {
    // What goes wrong is kept in lastError. It tries again by itself.
    this.#cluster.connect().catch((error: Error) => (this.lastError ??= error));
  }

  /** Whether the table was ever read. */
  get isKnown(): boolean {
    return this.#cluster.slots.length > 0;
  }

  /** "host:port" of the primary that has it, as far as is known. */
  addressOf(slot: number): string | undefined {
    return this.#moved.get(slot) ?? this.#cluster.slots[slot]?.[0];
  }

  /** Those that the table names, which are connected to nothing: their options say how to connect. */
  nodes(role: 'master' | 'all'): Redis[] {
    return this.#cluster.nodes(role);
  }

  /** A node says that another one has the slot. */
  moved(slot: number, address: string): void {
    this.#moved.set(slot, address);
    this.refresh();
  }

  /** Reads the table again, in the background. */
  refresh(): void {
    const now = performance.now();
    if (this.#isClosed || this.#isRefreshing || now < this.#refreshedAt + SHORTEST_INTERVAL_MS) return;
    this.#isRefreshing = true;
    this.#refreshedAt = now;
    const refreshed = (error?: Error | null): void => {
      this.#isRefreshing = false;
      // No node that was known answers: begin anew with those of the options, whose names may stand for others by now.
      if (error && !this.#isClosed && this.#cluster.status === 'ready') this.#cluster.disconnect(true);
    };
    // A call may have found out that the table is old, and what follows outlives it.
    inRootContext(() => this.#cluster.refreshSlotsCache(refreshed));
  }

  /** The address at which a node is reached that calls itself so. */
  reachable(address: string): string {
    const { natMap } = this.#cluster.options;
    const mapped = typeof natMap === 'function' ? natMap(address) : natMap?.[address];
    return mapped ? `${mapped.host}:${mapped.port}` : address;
  }

  close(): void {
    this.#isClosed = true;
    this.#cluster.disconnect();
    // ioredis would wait for the answers, and keep the process alive for so long.
    for (const { stream } of this.#asking) stream?.destroy();
  }

  /** ioredis asks each time on a connection of its own, of which nobody is told. */
  #watch(node: Redis): void {
    const duplicate = node.duplicate.bind(node);
    node.duplicate = (changes) => {
      const copy = duplicate(changes);
      if (changes?.connectionName?.includes('refresher')) {
        this.#asking.add(this.clients.add(copy));
        copy.once('end', () => this.#asking.delete(copy));
      }
      return copy;
    };
  }
}

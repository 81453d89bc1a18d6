import type { Cluster, Redis } from 'ioredis';
import { inRootContext } from '../../kernel/util/async-contexts.js';
import { startNodesOf } from '../connection/connection-options.js';
import { connectInRootContext } from '../connection/ioredis-quirks.js';
import type { OwnClients } from '../connection/own-clients.js';
import { SLOTS } from './slot.js';

/** When a node takes longer than this to list the nodes, another one is asked. */
const ANSWER_MS = 1_000;
/**
 * The time for which ioredis waits for the end of a connection on which it has asked, even if there was none. Its
 * default is 2 s.
 */
const GONE_MS = 50;
const MIN_INTERVAL_MS = 100;

/** Which node of a cluster has which slot. ioredis finds it out, with its options for names, addresses and TLS. */
export class ClusterTopology {
  readonly #cluster: Cluster;
  /** The slots that have moved since the table was read, as nodes have answered. */
  readonly #moved = new Map<number, string>();
  /** The connections on which ioredis is asking a node at this moment. */
  readonly #asking = new Set<Redis>();
  #refreshedAt = -Infinity;
  #isRefreshing = false;
  #isClosed = false;
  lastError: Error | undefined;
  /** Why a connection was closed on which ioredis was asking a node. */
  #closedBy: Error | undefined;

  constructor(
    model: Cluster,
    private readonly clients: OwnClients,
    onChange: () => void,
  ) {
    this.#cluster = model.duplicate([], {
      lazyConnect: true,
      // Our own connections send the commands, and never twice. An ACL may forbid CLUSTER INFO.
      enableReadyCheck: false,
      enableOfflineQueue: false,
      scaleReads: 'master',
      slotsRefreshTimeout: ANSWER_MS,
      clusterRetryStrategy: clients.pauseBefore,
      shardedSubscribers: false,
      redisOptions: { ...model.options.redisOptions, disconnectTimeout: GONE_MS },
    });
    connectInRootContext(this.#cluster);
    clients.addOther(this.#cluster);
    this.#cluster.on('+node', (node: Redis) => this.#watch(node));
    // The connection has reported the reason, if it was closed.
    this.#cluster.on('node error', (error: Error) => (this.lastError = this.#closedBy ?? error));
    this.#cluster.on('error', (error: Error) => (this.lastError ??= error));
    this.#cluster.on('refresh', () => {
      this.lastError = this.#closedBy = undefined;
      this.#moved.clear();
      onChange();
    });
  }

  connect(): void {
    // lastError keeps the reason. ioredis tries again by itself.
    this.#cluster.connect().catch((error: Error) => (this.lastError ??= error));
  }

  get startNodes(): string {
    return startNodesOf(this.#cluster).join(', ');
  }

  /** `true` once the table was read. */
  get isKnown(): boolean {
    return this.#cluster.slots.length > 0;
  }

  /** "host:port" of the primary with this slot, if it is known. */
  addressOf(slot: number): string | undefined {
    return this.#moved.get(slot) ?? this.#cluster.slots[slot]?.[0];
  }

  /** The first slot of the primary at "host:port"; `undefined` if it has none. */
  firstSlotAt(address: string): number | undefined {
    for (let slot = 0; slot < SLOTS; slot++) if (this.addressOf(slot) === address) return slot;
    return undefined;
  }

  /** The clients of ioredis for the nodes in the table. They are not connected: their options are used to connect. */
  nodes(role: 'master' | 'all'): Redis[] {
    return this.#cluster.nodes(role);
  }

  moved(slot: number, address: string): void {
    this.#moved.set(slot, address);
    this.refresh();
  }

  refresh(): void {
    const now = performance.now();
    if (this.#isClosed || this.#isRefreshing || now < this.#refreshedAt + MIN_INTERVAL_MS) return;
    this.#isRefreshing = true;
    this.#refreshedAt = now;
    const refreshed = (error?: Error | null): void => {
      this.#isRefreshing = false;
      // No known node answers: starts over with the nodes of the options. Their names may resolve to other addresses by
      // now.
      if (error && !this.#isClosed && this.#cluster.status === 'ready') this.#cluster.disconnect(true);
    };
    // A call may have found out that the table is old. Reading it outlives that call, and must not keep its context.
    inRootContext(() => this.#cluster.refreshSlotsCache(refreshed));
  }

  /** The address at which this process reaches a node that announces this address. */
  reachable(address: string): string {
    const { natMap } = this.#cluster.options;
    const mapped = typeof natMap === 'function' ? natMap(address) : natMap?.[address];
    return mapped ? `${mapped.host}:${mapped.port}` : address;
  }

  close(): void {
    this.#isClosed = true;
    this.#cluster.disconnect();
    // ioredis would wait for the answers, and keep the process alive until then.
    for (const { stream } of this.#asking) stream?.destroy();
  }

  /** ioredis asks each time on a new connection, without an event: duplicate() is the only place to see it. */
  #watch(node: Redis): void {
    const duplicate = node.duplicate.bind(node);
    node.duplicate = (changes) => {
      const copy = duplicate(changes);
      if (changes?.connectionName?.includes('refresher')) {
        this.#asking.add(this.clients.add(copy));
        copy.on('error', (error: Error) => (this.#closedBy = error));
        copy.once('end', () => this.#asking.delete(copy));
      }
      return copy;
    };
  }
}

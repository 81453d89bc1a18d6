import type { Redis, RedisOptions } from 'ioredis';
import { inRootContext } from '../../kernel/util/async-contexts.js';
import { hostAndPort, parseHostAndPort } from '../script/address.js';
import type { ClusterTopology } from './cluster-topology.js';
import type { OwnClients } from '../connection/own-clients.js';
import type { ServerConnection } from '../connection/server-connection.js';
import type { Durability } from '../durability/durable-connection.js';
import { openServer } from '../durability/durable-server.js';

/** The time for which a node without slots stays connected: it may be about to get one, or replies may be under way. */
const GUEST_MS = 30_000;

/** The connections for commands to the primaries of a cluster, and for a while to former and future primaries. */
export class ClusterServers {
  readonly #servers = new Map<string, ServerConnection>();
  /** The nodes without a known slot, and until when they stay connected. */
  readonly #guests = new Map<string, number>();
  #sweeping: NodeJS.Timeout | undefined;
  readonly #listeners: (() => void)[] = [];

  constructor(
    private readonly topology: ClusterTopology,
    private readonly options: RedisOptions,
    private readonly clients: OwnClients,
    private readonly durability?: Durability,
  ) {}

  get primaries(): ServerConnection[] {
    return [...this.#servers].filter(([address]) => !this.#guests.has(address)).map(([, server]) => server);
  }

  onConnected(listener: () => void): void {
    this.#listeners.push(listener);
  }

  /** The connection to this address. It may not be established yet. */
  at(address: string): ServerConnection {
    if (this.#guests.has(address)) this.#welcome(address);
    const known = this.#servers.get(address);
    if (known) return known;
    const nodes = this.topology.nodes('all');
    const model = nodes.find((node) => hostAndPort(node) === address);
    if (!model) this.#welcome(address);
    return this.#add(address, model ?? nodes[0]!);
  }

  known(address: string): ServerConnection | undefined {
    return this.#servers.get(address);
  }

  /** The slot table was read: connects to each primary, and keeps other connections only for a while. */
  follow(): void {
    const primaries = new Map(this.topology.nodes('master').map((node) => [hostAndPort(node), node]));
    for (const [address, node] of primaries) {
      this.#guests.delete(address);
      if (!this.#servers.has(address)) this.#add(address, node);
    }
    for (const address of this.#servers.keys()) {
      if (!primaries.has(address) && !this.#guests.has(address)) this.#welcome(address);
    }
  }

  close(): void {
    clearTimeout(this.#sweeping);
    for (const server of this.#servers.values()) server.close();
  }

  #add(address: string, model: Redis): ServerConnection {
    const options = { ...this.options, ...parseHostAndPort(address) };
    const server = openServer(model, options, { clients: this.clients }, this.durability);
    this.#servers.set(address, server);
    server.onConnected(() => {
      for (const listener of this.#listeners) listener();
    });
    // The node may be gone for good, and other nodes may have its slots.
    server.client.on('close', () => this.topology.refresh());
    server.connect();
    return server;
  }

  #welcome(address: string): void {
    this.#guests.set(address, performance.now() + GUEST_MS);
    this.#sweepLater();
  }

  #sweepLater(): void {
    this.#sweeping ??= inRootContext(() => setTimeout(() => this.#sweep(), GUEST_MS).unref());
  }

  #sweep(): void {
    this.#sweeping = undefined;
    for (const [address, until] of this.#guests) {
      if (performance.now() < until) continue;
      this.#guests.delete(address);
      this.#servers.get(address)?.close();
      this.#servers.delete(address);
    }
    if (this.#guests.size > 0) this.#sweepLater();
  }
}

import { EventEmitter } from 'node:events';
import type { Redis, RedisOptions } from 'ioredis';
import { mendQuirks } from '../connection/ioredis-quirks.js';
import type { Subscriber } from '../connection/connection.js';
import { hostAndPort } from '../script/address.js';
import type { OwnClients } from '../connection/own-clients.js';

/**
 * Listens on any one node of a cluster: a message that is published on one node reaches all of them. When that node
 * goes down or leaves the cluster, it listens on another.
 */
export class ClusterSubscriber extends EventEmitter implements Subscriber {
  #client: Redis | undefined;
  #isClosed = false;

  /** @param nodes returns the present nodes of the cluster */
  constructor(
    private readonly nodes: () => Redis[],
    private readonly options: RedisOptions,
    private readonly clients: OwnClients,
    private readonly pauseBefore: (attempt: number) => number,
  ) {
    super();
  }

  get status(): string {
    return this.#client?.status ?? 'wait';
  }

  subscribe(channel: string): Promise<unknown> {
    return this.#client
      ? this.#client.subscribe(channel)
      : Promise.reject(new Error('No node of the cluster is known'));
  }

  unsubscribe(channel: string): Promise<unknown> {
    return this.#client ? this.#client.unsubscribe(channel) : Promise.resolve();
  }

  /** The slot table was read: the nodes may have changed. */
  nodesChanged(): void {
    const at = this.#client && hostAndPort(this.#client);
    if (this.nodes().some((node) => hostAndPort(node) === at)) return;
    this.#choose(1);
  }

  /** Listens on another node, if there is one. */
  replace(): void {
    this.#choose(1);
  }

  close(): void {
    this.#isClosed = true;
    this.#client?.disconnect();
  }

  #choose(attempt: number): void {
    const last = this.#client;
    this.#client = undefined;
    last?.disconnect();
    if (last) this.emit('close');
    const all = this.nodes();
    const others = all.filter((node) => !last || hostAndPort(node) !== hostAndPort(last));
    const choice = others.length > 0 ? others : all;
    const node = choice[Math.floor(Math.random() * choice.length)];
    if (!node || this.#isClosed) return;
    const client = node.duplicate({
      ...this.options,
      // Another node probably answers before this one is back.
      retryStrategy: null,
    });
    mendQuirks(client);
    this.clients.add(client);
    this.#client = client;
    let tried = attempt;
    client.on('error', () => {}); // the connections for commands report them
    client.on('ready', () => {
      tried = 0;
      if (client === this.#client) this.emit('ready');
    });
    client.on('message', (channel: string, message: string) => this.emit('message', channel, message));
    client.on('close', () => {
      if (client === this.#client) this.emit('close');
    });
    client.on('end', () => {
      if (client !== this.#client || this.#isClosed) return;
      setTimeout(() => client === this.#client && this.#choose(tried + 1), this.pauseBefore(tried + 1)).unref();
    });
    client.connect().catch(() => {}); // 'end' follows
  }
}

import { EventEmitter } from 'node:events';
import type { Redis } from 'ioredis';
import type { Subscriber } from './connection.js';
import type { OwnClients } from './own-clients.js';

/** Listens for messages on one connection at a time, which can be replaced without a gap. */
export abstract class OwnSubscriber extends EventEmitter implements Subscriber {
  protected client: Redis | undefined;
  readonly #channels = new Set<string>();

  constructor(protected readonly clients: OwnClients) {
    super();
  }

  /** A client for another connection, which is not connected yet; `undefined` if no server is known. */
  protected abstract make(): Redis | undefined;

  get status(): string {
    return this.client?.status ?? 'wait';
  }

  async subscribe(channel: string): Promise<unknown> {
    const { client } = this;
    if (!client) throw new Error('No server to subscribe to is known');
    const reply = await client.subscribe(channel);
    if (client === this.client) this.#channels.add(channel);
    return reply;
  }

  async unsubscribe(channel: string): Promise<unknown> {
    this.#channels.delete(channel);
    return this.client?.unsubscribe(channel);
  }

  protected use(client: Redis): void {
    this.client = client;
    this.#channels.clear();
    client.on('ready', () => {
      if (client === this.client) this.emit('ready');
    });
    client.on('close', () => {
      if (client !== this.client) return;
      this.#channels.clear();
      this.emit('close');
    });
  }

  /** Makes a client of this instance, and delivers its messages. */
  protected own(client: Redis): Redis {
    client.on('error', () => {}); // the connections for commands have the same troubles, and report them
    // While a connection is replaced, both receive: each message comes at least once.
    client.on('message', (channel: string, message: string) => this.emit('message', channel, message));
    return this.clients.add(client, () => this.#replace(client));
  }

  /** Ends the connection when another one receives the same. @throws if there is none: it is kept then */
  async #replace(old: Redis): Promise<void> {
    const next = this.make();
    if (next === undefined) throw new Error('no server to subscribe to is known');
    try {
      await next.connect();
      await Promise.all([...this.#channels].map((channel) => next.subscribe(channel)));
      if (this.client !== old) throw new Error('the connection was replaced in the meantime');
    } catch (error) {
      next.disconnect();
      throw error;
    }
    const channels = [...this.#channels];
    this.use(next);
    channels.forEach((channel) => this.#channels.add(channel));
    old.disconnect();
  }
}

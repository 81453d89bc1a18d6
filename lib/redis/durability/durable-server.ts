import type { Redis, RedisOptions } from 'ioredis';
import { ServerConnection, type ServerOptions } from '../connection/server-connection.js';
import type { ScriptCall, ScriptSender } from '../script/script.js';
import type { Durability } from './durability.js';
import { DurablePool } from './durable-pool.js';
import { KeyOrder } from './key-order.js';

/** A server whose durable commands count only when enough replicas have them. Those use connections of their own. */
class DurableServer extends ServerConnection {
  readonly #pool: DurablePool;
  readonly #order = new KeyOrder();

  constructor(model: Redis, safeOptions: RedisOptions, options: ServerOptions, durability: Durability) {
    const { clients, onDemoted } = options;
    // The connections lead to the same server: where one of them says that it is a replica now, all are made anew.
    const demoted = onDemoted && {
      onDemoted: (): void => {
        this.reconnect();
        onDemoted();
      },
    };
    super(model, safeOptions, { ...options, ...demoted });
    // Redis answers a WAIT this much later than another command.
    const socketTimeout = (safeOptions.socketTimeout ?? 0) + durability.timeoutMs;
    const open = () => new ServerConnection(model, { ...safeOptions, socketTimeout }, { clients, ...demoted });
    this.#pool = new DurablePool(open, durability, () => this.announce());
  }

  override connect(): void {
    super.connect();
    this.#pool.connect();
  }

  override reconnect(): void {
    super.reconnect();
    this.#pool.reconnect();
  }

  override get isConnected(): boolean {
    return super.isConnected && this.#pool.isReady;
  }

  /** Keeps the commands of one lock in order, although they use different connections. */
  override sendIfConnected<T>(
    scripts: ScriptSender,
    call: ScriptCall<T>,
    fail: (error: unknown) => Promise<T>,
  ): Promise<T> {
    const client = this.ready();
    return this.#order.run(call.keys[0]!, (executed) =>
      call.durable ? this.#pool.run(call, scripts, fail, executed) : scripts.send(client, call, fail),
    );
  }

  override close(): void {
    super.close();
    this.#pool.close();
  }
}

/** @param model a client whose options say where the server is */
export function openServer(
  model: Redis,
  safeOptions: RedisOptions,
  options: ServerOptions,
  durability?: Durability,
): ServerConnection {
  return durability
    ? new DurableServer(model, safeOptions, options, durability)
    : new ServerConnection(model, safeOptions, options);
}

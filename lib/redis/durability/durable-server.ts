import type { Redis, RedisOptions } from 'ioredis';
import { Deferred } from '../../core/util/promises.js';
import { ServerConnection, type ServerOptions } from '../connection/server-connection.js';
import type { ScriptCall, ScriptSender } from '../script/script.js';
import type { Durability } from './durability.js';
import { DurablePool } from './durable-pool.js';

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

/**
 * Keeps the commands for one key in order, although they use different connections. A command is sent when the one
 * before it was executed, or will never be.
 */
export class KeyOrder {
  readonly #last = new Map<string, Deferred<void>>();

  /** The number of keys with a command under way. */
  get size(): number {
    return this.#last.size;
  }

  /** @param send gets a function to call when the command was executed, if that is before it is settled */
  run<T>(key: string, send: (executed: () => void) => Promise<T>): Promise<T> {
    const before = this.#last.get(key);
    const own = new Deferred<void>();
    const executed = (): void => {
      if (this.#last.get(key) === own) this.#last.delete(key);
      own.resolve();
    };
    this.#last.set(key, own);
    const result = before ? before.promise.then(() => send(executed)) : send(executed);
    result.then(executed, executed);
    return result;
  }
}

import type { Redis, RedisOptions } from 'ioredis';
import { Deferred, nextTick } from '../../kernel/util/promises.js';
import { ServerConnection, type ServerOptions } from '../connection/server-connection.js';
import type { ScriptCall, ScriptSender } from '../script/script.js';
import { inRootContext } from '../../kernel/util/async-contexts.js';
import { LockStoreError } from '../../kernel/store/store-error.js';
import { DurableCommand } from './durable-command.js';
import { type Durability, DurableConnection, type DurableConnectionListener } from './durable-connection.js';

function closedError(): LockStoreError {
  return new LockStoreError('notExecuted', 'the connections are closed');
}

/** A server whose durable commands count only when enough replicas have them. Those use connections of their own. */
class DurableServer extends ServerConnection {
  readonly #pool: DurablePool;
  readonly #order = new KeyOrder();

  constructor(model: Redis, safeOptions: RedisOptions, options: ServerOptions, durability: Durability) {
    const { clients, onDemoted } = options;
    // The connections lead to the same server: if one of them reports that it is a replica now, all are replaced.
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

  override sendIfConnected<T>(
    scripts: ScriptSender,
    call: ScriptCall<T>,
    fail: (error: unknown) => Promise<T>,
  ): Promise<T> {
    const client = this.ready();
    const locks = call.durable?.ofSeveral ? call.keys : [call.keys[0]!];
    return this.#order.run(locks, (executed) =>
      call.durable ? this.#pool.run(call, scripts, fail, executed) : scripts.send(client, call, fail),
    );
  }

  override close(): void {
    super.close();
    this.#pool.close();
  }

  protected override note(error: LockStoreError): void {
    super.note(error);
    this.#pool.note(error);
  }
}

/** @param model a client whose options have the address */
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
 * Keeps the commands for one key in order, although they use different connections. A command is sent when those before
 * it were executed, or will never be.
 */
export class KeyOrder {
  readonly #last = new Map<string, Deferred<void>>();

  get size(): number {
    return this.#last.size;
  }

  /** @param send gets a function to call when the command was executed, if that is before it is settled */
  run<T>(keys: readonly string[], send: (executed: () => void) => Promise<T>): Promise<T> {
    const before = keys.flatMap((key) => this.#last.get(key)?.promise ?? []);
    const own = new Deferred<void>();
    const executed = (): void => {
      for (const key of keys) if (this.#last.get(key) === own) this.#last.delete(key);
      own.resolve();
    };
    for (const key of keys) this.#last.set(key, own);
    const result = before.length > 0 ? Promise.all(before).then(() => send(executed)) : send(executed);
    result.then(executed, executed);
    return result;
  }
}

/** The maximum number of connections that wait for replicas at the same time. */
const MAX_CONNECTIONS = 16;
/** A command waits at least this long for a free connection, in milliseconds. */
const MIN_PATIENCE_MS = 100;

/**
 * The connections to one server for durable commands. Only these connections are blocked while they wait for replicas.
 * When all of them are blocked, the pool opens one more. The commands that have come by then share the next free
 * connection.
 */
class DurablePool implements DurableConnectionListener {
  readonly #connections: DurableConnection[] = [];
  /** The connection whose batch is open: all commands of this turn of the event loop share one WAIT. */
  #filling: DurableConnection | undefined;
  #waiting: DurableCommand[] = [];
  #timer: NodeJS.Timeout | undefined;
  #trouble: LockStoreError | undefined;
  #isClosed = false;
  readonly #patienceMs: number;

  constructor(
    private readonly open: () => ServerConnection,
    private readonly durability: Durability,
    private readonly onReady: () => void,
  ) {
    this.#patienceMs = Math.max(MIN_PATIENCE_MS, durability.timeoutMs);
  }

  connect(): void {
    if (this.#connections.length === 0) this.#grow();
  }

  get isReady(): boolean {
    return this.#connections.some((connection) => connection.isTried);
  }

  run<T>(
    call: ScriptCall<T>,
    scripts: ScriptSender,
    fail: (error: unknown) => Promise<T>,
    executed: () => void,
  ): Promise<T> {
    const command = new DurableCommand(call, scripts, fail, executed);
    const connection = this.#filling ?? this.#connections.find(({ isIdle }) => isIdle);
    // Such a command has waited for the one before of its lock, which ended with the connections.
    if (this.#isClosed) command.drop(closedError());
    else if (connection) this.#send(connection, [command as DurableCommand]);
    else this.#queue(command as DurableCommand);
    return command.outcome;
  }

  /** Keeps this error as the reason until Redis has answered on a new connection. */
  note(error: LockStoreError): void {
    this.#trouble = error;
  }

  tried(): void {
    this.#trouble = undefined;
    // Only the first connection makes the pool ready. Later ones help it.
    if (this.#connections.filter(({ isTried }) => isTried).length === 1) this.onReady();
  }

  idle(connection: DurableConnection): void {
    if (this.#waiting.length > 0 && connection.isIdle) this.#send(connection, this.#waiting.splice(0));
  }

  unusable(error: LockStoreError): void {
    if (error.failure !== 'refused' && this.#connections.some(({ isProven }) => isProven)) return;
    this.note(error);
    for (const command of this.#waiting.splice(0)) command.drop(error);
  }

  reconnect(): void {
    for (const { server } of this.#connections) server.reconnect();
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    for (const command of this.#waiting.splice(0)) command.drop(closedError());
    for (const { server } of this.#connections) server.close();
  }

  #send(connection: DurableConnection, commands: readonly DurableCommand[]): void {
    if (this.#filling !== connection) {
      // Runs before the scripts are written at the end of this turn: so the WAIT leaves together with them.
      nextTick(() => {
        if (this.#filling === connection) this.#filling = undefined;
        connection.endBatch();
      });
      this.#filling = connection;
    }
    for (const command of commands) connection.add(command);
  }

  #queue(command: DurableCommand): void {
    this.#waiting.push(command);
    this.#timer ??= inRootContext(() => setTimeout(this.#expire, this.#patienceMs));
    const resting = this.#connections.filter((connection) => connection.server.isConnected && !connection.isProven);
    for (const connection of resting) connection.prove();
    const isConnecting = this.#connections.some((connection) => !connection.isProven);
    if (!isConnecting && this.#connections.length < MAX_CONNECTIONS) this.#grow();
  }

  #grow(): void {
    this.#connections.push(new DurableConnection(this.open(), this.durability, this));
  }

  readonly #expire = (): void => {
    this.#timer = undefined;
    const now = performance.now();
    const isLate = ({ queuedAt }: DurableCommand): boolean => queuedAt + this.#patienceMs <= now;
    const late = this.#waiting.filter(isLate);
    this.#waiting = this.#waiting.filter((command) => !isLate(command));
    if (this.#waiting.length > 0) {
      this.#timer = setTimeout(this.#expire, Math.max(1, this.#waiting[0]!.queuedAt + this.#patienceMs - now));
    }
    const broken = this.#connections.find(({ server }) => !server.isConnected);
    const trouble = this.#trouble?.message ?? broken?.server.describeTrouble();
    const why = trouble ?? 'all connections are waiting for replicas (durability)';
    for (const command of late) {
      command.drop(new LockStoreError('notExecuted', `not sent within ${this.#patienceMs} ms: ${why}`));
    }
  };
}

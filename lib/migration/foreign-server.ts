import type { ForeignContext, ForeignReply } from '../core/api/foreign-lock.js';
import { closedStore, LockStoreError } from '../core/store/store-error.js';
import { SYSTEM_CLOCK } from '../core/util/clock.js';
import { pause } from '../core/util/promises.js';
import { lastingController, mergeSignals } from '../core/util/signals.js';
import type { Connection } from '../redis/connection/connection.js';
import type { RedisConnectionOption } from '../redis/connection/connection-options.js';
import { createConnection } from '../redis/create-connection.js';
import { type Advice, withAdvice } from '../redis/script/failures.js';
import type { Script } from '../redis/script/script.js';

/**
 * How long a command waits for the first connection. Less than a command may take by default: then the error says what
 * is wrong with the connection, and not only that there was no answer.
 */
const FIRST_CONNECTION_MS = 750;
/** No pause before a reconnect is longer than a third of it. */
const RECONNECT_WITHIN_MS = 3_000;

/** Advice on refusals: the advice of our own keys would be wrong here. */
const ADVICE: Advice = {
  WRONGTYPE:
    'This key of the old code holds a value of another type. Check the option client, and that the key function of ' +
    'alsoLock returns the key of a lock of that library',
};

/** Our own connections to one Redis of the other library: to its server, database and key prefix. */
export class ForeignServer {
  readonly connection: Connection;
  /** Aborts when there is the first connection. */
  readonly #first = lastingController();
  #isClosed = false;

  /** @param client is duplicated, and never changed or closed */
  constructor(client: RedisConnectionOption, { instanceId }: Pick<ForeignContext, 'instanceId'>) {
    const settings = { instanceId, leaseMs: RECONNECT_WITHIN_MS, inBackground: true };
    this.connection = createConnection({ connection: client, ...settings });
    this.connection.onConnected(() => this.#first.abort());
    this.connection.connect();
  }

  /** The name of a key as Redis has it, with the prefix of the client. */
  key(name: string): string {
    return this.connection.outerKeyPrefix + name;
  }

  /**
   * Resolves as soon as there has been a connection, or after three quarters of a second. A command that is sent without
   * a connection is refused at once, as not executed.
   *
   * @throws LockStoreError if the signal aborts: then the command is not to be sent
   */
  async connected(signal: AbortSignal): Promise<void> {
    if (!this.#first.signal.aborted) {
      const { signal: either, dispose } = mergeSignals(this.#first.signal, signal);
      await pause(SYSTEM_CLOCK, FIRST_CONNECTION_MS, either);
      dispose();
    }
    if (signal.aborted) throw new LockStoreError('notExecuted', 'the call has given up');
  }

  /** Why no command for this key can be sent now; `undefined` if one can. */
  describeTrouble(key: string): string | undefined {
    return this.connection.troubleAt(key)?.message;
  }

  /** @param keys as {@link key} returns them */
  run<T>(
    script: Script,
    keys: readonly string[],
    args: readonly (string | number)[],
    read: (reply: unknown) => T,
  ): Promise<T> {
    if (this.#isClosed) return Promise.reject(closedStore());
    return this.connection.route({ script, keys, args, read }).catch((error: unknown) => {
      throw error instanceof LockStoreError ? withAdvice(error, ADVICE) : error;
    });
  }

  close(): Promise<void> {
    this.#isClosed = true;
    return this.connection.close();
  }
}

/** What a script to acquire replies where this owner has the lock. Otherwise it replies with the TTL of the key. */
export const HELD = -3;

/**
 * Reads the reply of a script to acquire. A key without an expiry has a TTL of -1. The TTL is in a list where another run
 * of the same job has it.
 */
export function readAcquired(reply: unknown): ForeignReply {
  if (reply === HELD) return { status: 'held' };
  const isOurs = Array.isArray(reply);
  const ttl: unknown = isOurs ? reply[0] : reply;
  return { status: 'busy', ttlMs: typeof ttl === 'number' && ttl >= 0 ? ttl : Infinity, ...(isOurs && { isOurs }) };
}

import type { LockStoreError } from '../../core/store/lock-store.js';
import type { ScriptCall } from '../script/script.js';
import type { ServerConnection } from './server-connection.js';

/** What listens for messages: a `Redis`, or what moves from node to node of a cluster. */
export interface Subscriber {
  readonly status: string;
  on(event: 'ready', listener: () => void): unknown;
  on(event: 'message', listener: (channel: string, message: string) => void): unknown;
  subscribe(channel: string): Promise<unknown>;
}

/** The connections of one instance to one Redis, however many servers that has. They belong to the library. */
export interface Connection {
  /** The `keyPrefix` of the user's own client or options, which our keys and channels begin with too. */
  readonly outerKeyPrefix: string;
  /** Whether the keys of one script have to be in one slot, and messages come through other nodes. */
  readonly isCluster: boolean;
  readonly subscriber: Subscriber;
  /** Whether commands can be sent. */
  readonly isConnected: boolean;
  /** Begins to connect, and goes on trying by itself until it is closed. */
  connect(): void;
  /** Calls back whenever there is a new connection for commands. */
  onConnected(listener: () => void): void;
  /** Runs one script where its first key is. Rejects with a `LockStoreError`. */
  route<T>(call: ScriptCall<T>): Promise<T>;
  /** Why no script can be sent to where this key is; nothing where it can. */
  troubleAt(key: string): LockStoreError | undefined;
  /** All servers on which locks may be. @throws LockStoreError while they are not known */
  servers(): readonly ServerConnection[];
  /** Why commands cannot be sent now, for people. */
  describeTrouble(): string;
  /** From now on the connections keep the process alive. */
  keepAlive(): void;
  /** Resolves when the connections are closed; what hangs is given up within a second. */
  close(): Promise<void>;
}

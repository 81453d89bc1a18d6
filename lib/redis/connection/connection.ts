import type { LockStoreError } from '../../kernel/store/store-error.js';
import type { ScriptCall } from '../script/script.js';
import type { OwnClients } from './own-clients.js';
import type { ServerConnection } from './server-connection.js';

/** Listens for messages: a `Redis`, or a subscriber that moves from node to node of a cluster. */
export interface Subscriber {
  readonly status: string;
  on(event: 'ready' | 'close', listener: () => void): unknown;
  on(event: 'message', listener: (channel: string, message: string) => void): unknown;
  subscribe(channel: string): Promise<unknown>;
  unsubscribe(channel: string): Promise<unknown>;
}

/** A server that is needed for locks, and in a cluster one of the slots that it has. */
export interface LockServer {
  readonly server: ServerConnection;
  readonly slot?: number;
}

/**
 * The connections of one instance to one Redis, which may have several servers. They belong to the library.
 *
 * ioredis is behind it. A transport on another client would have to do the same:
 * - Verbs: EVALSHA with words as bytes, EVAL after NOSCRIPT; WAIT on the same connection after a durable write, and
 *   ASKING before a command; SCAN, INFO, ACL DRYRUN, PUBSUB NUMSUB. Replies as numbers, texts and lists. Nothing is
 *   queued while there is no connection, and nothing is sent twice. An error shows if the command was written.
 * - Subscriptions on a connection of their own, which reports when each is accepted or refused, and delivers in order.
 * - Routing: the node of a slot, MOVED and ASK, a slot table that is read again; the primary that sentinels name, and
 *   an end of the connection as soon as they name another one.
 * - State: 'ready' only when Redis has accepted AUTH and SELECT; a connection that is silent for 5 s is replaced; a
 *   pause before each attempt; sockets that let the process exit; a close that waits for no answer.
 */
export interface Connection {
  /** The `keyPrefix` of the user's own client or options. The keys and channels of the library begin with it too. */
  readonly outerKeyPrefix: string;
  /** `true` if the keys of one script have to be in one slot, and messages may come from any node. */
  readonly isCluster: boolean;
  readonly topology: 'standalone' | 'sentinel' | 'cluster';
  readonly subscriber: Subscriber;
  /**
   * `true` if a message may be lost although the connection for messages works: on its way from node to node, or
   * because a process still uses a primary that was just replaced.
   */
  readonly mayLoseMessages: boolean;
  readonly isConnected: boolean;
  readonly clients: OwnClients;
  /** Begins to connect, and keeps trying until it is closed. */
  connect(): void;
  /** Calls the listener whenever there is a new connection for commands. */
  onConnected(listener: () => void): void;
  /** Runs one script on the server that has its first key. Rejects with a `LockStoreError`. */
  route<T>(call: ScriptCall<T>): Promise<T>;
  /** Why no script can be sent to the server that has this key; undefined if it can. */
  troubleAt(key: string): LockStoreError | undefined;
  /**
   * Returns true if a command about this key sent at that time went to a server that is known to have forgotten no
   * lease, or nowhere.
   */
  trusts(key: string, fence: string, sentAt: number): boolean;
  /** All servers that may have locks. @throws LockStoreError while they are not known */
  servers(): readonly ServerConnection[];
  /**
   * All servers that are needed, so that any lock can be taken. In a cluster these are the primaries with slots.
   *
   * @param turn counts the calls: each of them names other slots
   * @throws LockStoreError while they are not known, or while a slot has none
   */
  neededServers(turn: number): readonly LockServer[];
  /** One of the servers that may have locks: each of them in its turn. `undefined` while it is not known. */
  serverInTurn(turn: number): LockServer | undefined;
  /** Replaces the connection for messages, although it seems to work. */
  replaceSubscriber(): void;
  /** Why commands cannot be sent now, in words for a message. */
  describeTrouble(): string;
  /** Resolves when the connections are closed. A connection that hangs is given up within a second. */
  close(): Promise<void>;
}

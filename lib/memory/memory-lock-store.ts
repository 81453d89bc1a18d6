import { closedProbe, type StoreProbe } from '../kernel/store/store-probe.js';
import { closedStore } from '../kernel/store/store-error.js';
import type { MessageHealth } from '../kernel/store/message-health.js';
import { deliver, readMessage } from '../redis/inbox.js';
import { toStoreError } from '../redis/script/failures.js';
import type { FlaggedScript } from '../redis/script/script.js';
import { RedisJobStore } from '../features/jobs/redis/redis-job-store.js';
import { RedisResultStore } from '../features/once/redis/redis-result-store.js';
import { ScriptLockStore } from '../redis/script-lock-store.js';
import { RedisError } from './lua.js';
import { MemoryServer } from './memory-server.js';

interface MemoryLockStoreOptions {
  /** Must differ between the stores of one server. */
  readonly instanceId: string;
  /**
   * The server to keep the locks on. Stores that share one compete, like instances on one Redis. @default a server of
   * its own
   */
  readonly server?: MemoryServer;
  /** The prefix of its owner ids; the same for one client's stores on several servers. @default one of its own */
  readonly clientId?: string;
}

const HEARS_ALL: MessageHealth = { trustedForMs: Infinity, silentSince: undefined, setNeeded: () => {} };

let clients = 0;

/**
 * Keeps locks in the memory of **one process**: it runs the scripts of Redis on a server in memory. For tests of an
 * application that run without Redis. It does not protect against other processes: never use it for an application with
 * several instances.
 */
export class MemoryLockStore extends ScriptLockStore {
  readonly hearing = HEARS_ALL;
  readonly isCluster = false;
  readonly database = 0;
  readonly server: MemoryServer;
  readonly #closeInbox: () => void;

  constructor({ instanceId, server = new MemoryServer(), clientId }: MemoryLockStoreOptions) {
    super(instanceId, clientId ?? `${instanceId}/${++clients}`, server.keys);
    this.server = server;
    const channels = [this.keys.inbox(this.clientId), this.keys.rollChannel(this.database)];
    const closings = channels.map((channel) =>
      server.redis.subscribe(channel, (text) => {
        const message = readMessage(text);
        if (message && !('probe' in message)) deliver(message, this.messages);
      }),
    );
    this.#closeInbox = () => closings.forEach((close) => close());
  }

  async run<T>(
    { name }: FlaggedScript<T>,
    keys: readonly string[],
    args: readonly (string | number)[],
    read: (reply: unknown) => T = (reply) => reply as T,
  ): Promise<T> {
    if (this.isClosed) throw closedStore();
    try {
      return read(this.server.run(name as never, keys, args));
    } catch (error) {
      throw error instanceof RedisError ? toStoreError({ name: 'ReplyError', message: error.err }) : error;
    }
  }

  troubleAt(): undefined {}

  probe(): StoreProbe {
    if (this.isClosed) return closedProbe('memory');
    return {
      topology: 'memory',
      needed: 1,
      servers: [Promise.resolve({ roundTripMs: 0, problems: [] })],
      problems: [],
    };
  }

  async list(prefix: string, limit: number): Promise<string[]> {
    if (this.isClosed) throw closedStore();
    const resources = this.server.resources();
    return resources.filter((resource) => resource.startsWith(prefix)).slice(0, limit);
  }

  async close(): Promise<void> {
    this.isClosed = true;
    this.#closeInbox();
  }
}

/** Creates all stores of one instance. They close with the lock store. */
export function memoryStores(options: MemoryLockStoreOptions): {
  readonly locks: MemoryLockStore;
  readonly jobs: RedisJobStore;
  readonly results: RedisResultStore;
} {
  const locks = new MemoryLockStore(options);
  return { locks, jobs: new RedisJobStore(locks), results: new RedisResultStore(locks) };
}

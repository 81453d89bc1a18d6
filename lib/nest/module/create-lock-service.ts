import { MemoryLatchStore } from '../../memory/memory-latch-store.js';
import { MemoryLockStore } from '../../memory/memory-lock-store.js';
import { MemoryServer } from '../../memory/memory-server.js';
import { MemoryTickStore } from '../../memory/memory-tick-store.js';
import type { LatchStore } from '../../core/store/latch-store.js';
import { Latches } from '../../core/latch/latches.js';
import { LockClient } from '../../core/lock-client.js';
import type { LockStore } from '../../core/store/lock-store.js';
import { SingletonRuns } from '../../core/singleton/singleton-runs.js';
import type { TickStore } from '../../core/store/tick-store.js';
import { RedisLatchStore } from '../../redis/redis-latch-store.js';
import { RedisLockStore } from '../../redis/redis-lock-store.js';
import { RedisTickStore } from '../../redis/redis-tick-store.js';
import { createOnQuorum } from './create-quorum.js';
import { LOGGED_EVENTS, LockEventLog } from '../lock-event-log.js';
import { IN_MEMORY, type ResolvedModuleOptions } from './module-options.js';
import { RedisLockService } from '../redis-lock.service.js';

/** Builds a lock service and waits a moment for Redis; an application whose Redis is down starts all the same. */
export async function createLockService(options: ResolvedModuleOptions): Promise<RedisLockService> {
  const { defaults, observers, onLeak, drainMs } = options;
  const log = new LockEventLog();
  const stores = await createStores(options, log);
  const client = new LockClient({ store: stores.store, defaults, onLeak });
  client.observers.add(log.observe, LOGGED_EVENTS);
  for (const observer of observers) client.observers.add(observer);
  const singletonRuns = new SingletonRuns(client, stores.tickStore);
  return new RedisLockService(client, singletonRuns, new Latches(client, stores.latches), drainMs, stores.keepAlive);
}

function createStores(options: ResolvedModuleOptions, log: LockEventLog): Stores | Promise<Stores> {
  if (options.quorum) return createOnQuorum(options, options.quorum, log);
  return options.connection() === IN_MEMORY ? createInMemory(options, log) : createOnRedis(options, log);
}

export interface Stores {
  readonly store: LockStore;
  readonly tickStore: TickStore;
  readonly latches: LatchStore;
  /**
   * The application has started: from now on the connections keep the process alive. Nest tells nobody of a start that fails,
   * so until then they do not.
   */
  readonly keepAlive?: () => void;
}

function createInMemory({ instanceId }: ResolvedModuleOptions, log: LockEventLog): Stores {
  if (process.env['NODE_ENV'] === 'production') log.inMemory();
  const server = new MemoryServer();
  const store = new MemoryLockStore({ instanceId, server });
  return { store, tickStore: new MemoryTickStore(server), latches: new MemoryLatchStore(store) };
}

async function createOnRedis(options: ResolvedModuleOptions, log: LockEventLog): Promise<Stores> {
  const { keyPrefix, instanceId, defaults, durability } = options;
  const connection = options.connection()!;
  const { leaseMs, restartQuarantineMs } = defaults;
  const terms = { connection, instanceId, leaseMs, durability, restartQuarantineMs, inBackground: true };
  const store = new RedisLockStore({ ...terms, keyPrefix });
  if (!(await store.start(defaults.attemptTimeoutMs))) log.unreachable(store.describeTrouble());
  if (store.inboxRefusal) log.noInbox(store.inboxRefusal);
  const keepAlive = () => store.keepAlive();
  return { store, tickStore: new RedisTickStore(store), latches: new RedisLatchStore(store), keepAlive };
}

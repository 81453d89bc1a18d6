import { randomUUID } from 'node:crypto';
import { Redis } from 'ioredis';
import type { Clock } from '../../../lib/kernel/util/clock.js';
import type { LockEvent } from '../../../lib/kernel/events/events.js';
import { LockClient } from '../../../lib/kernel/lock-client.js';
import type { LockDefaults } from '../../../lib/kernel/api/lock-options.js';
import type { RedisConnectionOption } from '../../../lib/redis/connection/connection-options.js';
import type { Durability } from '../../../lib/redis/durability/durable-connection.js';
import { RedisLockStore } from '../../../lib/redis/redis-lock-store.js';
import { eventually } from '../expect/eventually.js';
import { listenTogether } from '../world/listen-together.js';
import { instancesOf } from './instances-of.js';
import { lockConnection } from './lock-user.js';

/** The locks of one application process: a lock client on connections of its own. */
export interface LockInstance {
  readonly instanceId: string;
  readonly locks: LockClient;
  readonly store: RedisLockStore;
  readonly events: LockEvent[];
}

export interface LockInstanceOptions {
  connection?: RedisConnectionOption;
  keyPrefix?: string;
  defaults?: Partial<LockDefaults>;
  clock?: Clock;
  durability?: Durability;
  restartQuarantineMs?: number;
  suspiciousNames?: 'refuse' | 'allow';
  warn?: (line: string) => void;
  /** The time to wait for the connections; 0 for a Redis that is down. */
  patienceMs?: number;
}

/** Starts instances, and shuts all of them down after each test. */
export function useInstances(
  connection: () => RedisConnectionOption,
): (options?: LockInstanceOptions) => Promise<LockInstance> {
  const running: LockInstance[] = [];
  afterEach(async () => {
    await Promise.all(running.splice(0).map(({ locks }) => locks.shutdown(0)));
  });
  return async (options = {}) => {
    const instanceId = `test-${randomUUID().slice(0, 8)}`;
    const { durability, restartQuarantineMs } = options;
    // A restart or a fail-over on a busy machine may take longer than 2 s.
    const defaults = {
      leaseMs: 10_000,
      waitMs: 10_000,
      unavailableMs: Infinity,
      restartQuarantineMs,
      ...options.defaults,
    };
    const events: LockEvent[] = [];
    const store = new RedisLockStore({
      connection: lockConnection(options.connection ?? connection()),
      keyPrefix: options.keyPrefix ?? 'lock',
      instanceId,
      leaseMs: defaults.leaseMs,
      durability,
      restartQuarantineMs,
      warn: options.warn,
    });
    listenTogether(store);
    const { clock, suspiciousNames, warn } = options;
    const observers = [(event: LockEvent) => events.push(event)];
    const locks = new LockClient({
      store,
      defaults,
      observers,
      ...(clock && { clock }),
      ...(suspiciousNames && { suspiciousNames }),
      ...(warn && { warn }),
    });
    const instance = { instanceId, locks, store, events };
    running.push(instance);
    await store.start(options.patienceMs ?? 5_000);
    return instance;
  };
}

/** A plain client to look at Redis from the side, which is empty before each test. */
export function useAdmin(url: () => string): () => Redis {
  let admin: Redis;
  beforeAll(() => {
    // The server may be gone before us: then there is no orderly end to wait for.
    admin = new Redis(url(), { disconnectTimeout: 0 });
    admin.on('error', () => undefined);
  });
  beforeEach(async () => void (await admin.flushall()));
  afterAll(() => admin.disconnect());
  return () => admin;
}

/** The number of calls of each command since {@link resetCounts}, including those in scripts. */
export async function commandCounts(admin: Redis): Promise<Record<string, number>> {
  const lines = (await admin.info('commandstats')).matchAll(/^cmdstat_(\w+):calls=(\d+)/gm);
  return Object.fromEntries([...lines].map(([, name, calls]) => [name, Number(calls)]));
}

export async function resetCounts(admin: Redis): Promise<void> {
  await admin.config('RESETSTAT');
}

/** Every key with its time to live: -1 where it never expires. */
export async function keysWithTtl(admin: Redis): Promise<Record<string, number>> {
  const keys = await admin.keys('*');
  const entries = await Promise.all(keys.sort().map(async (key) => [key, await admin.pttl(key)] as const));
  return Object.fromEntries(entries.filter(([, ttl]) => ttl !== -2)); // -2: it has expired in between
}

/** Waits until exactly these instances stand in the queue in Redis, in this order. */
export async function untilQueued(
  witness: LockInstance,
  resource: string,
  ...waiters: Pick<LockInstance, 'instanceId'>[]
): Promise<void> {
  const ids = waiters.map(({ instanceId }) => instanceId);
  await eventually(async () => expect(instancesOf((await witness.store.inspect(resource)).waiters)).toEqual(ids));
}

/** Expects no key but the fence's, and no inbox except of live instances. */
export async function expectNothingLeft(admin: Redis, ...live: LockInstance[]): Promise<void> {
  const inboxes = live.map(({ store }) => `lock:inbox:${store.clientId}`).sort();
  await eventually(async () => {
    expect(await admin.keys('*')).toEqual(['lock:fence']);
    expect(((await admin.pubsub('CHANNELS', 'lock:inbox:*')) as string[]).sort()).toEqual(inboxes);
  });
}

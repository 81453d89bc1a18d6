import { pick } from '../../kernel/api/validation.js';
import { LockClient } from '../../kernel/lock-client.js';
import { defined } from '../../kernel/util/objects.js';
import { OnceCalls } from '../../features/once/core/once-calls.js';
import { CampaignLog } from '../../features/leader/nest/campaign-log.js';
import { OnceLog } from '../../features/once/nest/once-log.js';
import { loggerOf } from '../log/logger-of.js';
import { hintAtShutdownHooks, StartLog } from '../log/start-log.js';
import { LockEventLog } from '../log/lock-event-log.js';
import { DEFAULT_NAME, type TestStores } from '../service-parts.js';
import { RedisLockService } from '../redis-lock.service.js';
import { IN_MEMORY, type ResolvedModuleOptions } from './module-options.js';
import type { LockStores } from '../../kernel/lock-stores.js';

/** Builds a lock service and waits a moment for Redis. The application starts even if Redis is down. */
export async function createLockService(
  options: ResolvedModuleOptions,
  name = DEFAULT_NAME,
  testStores: TestStores | null = null,
): Promise<RedisLockService> {
  const { instanceId, isNamed, defaults, observers, transactions } = options;
  const place = testStores?.place({ service: name, instanceId, isNamed });
  const log = new StartLog(name);
  if (place && process.env['NODE_ENV'] === 'production') log.testLocks();
  const stores = place ? place.stores : await createStores(options, log);
  const logger = loggerOf(name);
  const warn = (line: string): void => logger.warn(line);
  const { locks: store, jobs, results, clock, random } = stores;
  const events = new LockEventLog(name, clock);
  const all = [...options.telemetry, { start: () => () => events.close() }];
  const client = new LockClient({
    ...pick(options, 'defaults', 'onLeak', 'transactions', 'group', 'labelGroups', 'suspiciousNames', 'contention'),
    ...defined({ clock, random }),
    store,
    service: name,
    telemetry: place ? [...all, place.telemetry] : all,
    warn,
  });
  events.listenTo(client.observers, client.closing, () => client.countWaiting());
  for (const observer of observers) client.observers.add(observer);
  const campaigns = new CampaignLog(client, name);
  new OnceLog(client.observers, name);
  const isInMemory = place !== undefined || options.connection() === IN_MEMORY;
  const drainMs = place ? 0 : options.drainMs;
  const started = (): void => {
    stores.keepAlive?.();
    campaigns.started();
    if (!isInMemory) hintAtShutdownHooks(logger, defaults.leaseMs, client.closing);
  };
  const service = new RedisLockService({
    client,
    singletonRuns: client.jobs.runs(jobs),
    once: new OnceCalls(client.deps, client.leases, client.watches, results, options.suspiciousNames),
    drainMs,
    onStarted: started,
    clock,
    transactions,
    jobs: { missed: client.jobs.missedTicks(jobs), records: client.jobs.records(jobs) },
    place,
  });
  place?.created(client, service);
  return service;
}

/**
 * Creates the stores for the options, and loads their code only now: an application that keeps its locks in memory
 * loads no ioredis, and the import of the package costs neither. This file imports nothing of Nest, so it is CommonJS
 * in both formats, and a bundler puts the loaded code into the same file.
 */
async function createStores(options: ResolvedModuleOptions, log: StartLog): Promise<LockStores> {
  if (options.quorum) return (await import('./on-quorum.js')).createOnQuorum(options, options.quorum, log);
  if (options.connection() !== IN_MEMORY) return (await import('./on-redis.js')).createOnRedis(options, log);
  if (process.env['NODE_ENV'] === 'production') log.inMemory();
  return (await import('../../memory/memory-lock-store.js')).memoryStores(options);
}

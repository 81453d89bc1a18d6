import { LockClient } from '../../core/lock-client.js';
import { AlsoLocks } from '../../migration/both/also-locks.js';
import { CampaignLog } from '../leader/campaign-log.js';
import { loggerOf } from '../log/logger-of.js';
import { hintAtShutdownHooks } from '../log/shutdown-hint.js';
import { LockEventLog } from '../log/lock-event-log.js';
import { StartLog } from '../log/start-log.js';
import type { TestStores } from '../test-stores.js';
import { DEFAULT_NAME } from '../tokens.js';
import { RedisLockService } from '../redis-lock.service.js';
import { IN_MEMORY, type ResolvedModuleOptions } from './module-options.js';
import { createStores, withRefusals } from './stores.js';

/** Builds a lock service and waits a moment for Redis. An application whose Redis is down starts all the same. */
export async function createLockService(
  options: ResolvedModuleOptions,
  name = DEFAULT_NAME,
  testStores: TestStores | null = null,
): Promise<RedisLockService> {
  const { instanceId, isNamed, keyPrefix, defaults, observers, onLeak, transactions } = options;
  const context = { service: name, instanceId, keyPrefix, defaults };
  const place = testStores?.place({ ...context, isNamed });
  const log = new StartLog(name);
  if (place && process.env['NODE_ENV'] === 'production') log.testLocks();
  const stores = await (place ? withRefusals(place.stores) : createStores(options, context, log));
  const { group, labelGroups, unclearNames, telemetry, contention } = options;
  const logger = loggerOf(name);
  const warn = (line: string): void => logger.warn(line);
  const { locks: store, jobs, latches, clock, random } = stores;
  const events = new LockEventLog(name, clock);
  const all = [...telemetry, { start: () => () => events.close() }];
  const client = new LockClient({
    store,
    ...(clock && { clock }),
    ...(random && { random }),
    defaults,
    onLeak,
    transactions,
    service: name,
    group,
    labelGroups,
    unclearNames,
    telemetry: place ? [...all, place.telemetry] : all,
    contention,
    warn,
    secondLocks: (runtime) => new AlsoLocks(runtime),
  });
  events.listenTo(client.observers, client.closing, () => client.countWaiting());
  for (const observer of observers) client.observers.add(observer);
  const campaigns = new CampaignLog(client, name);
  const isInMemory = place !== undefined || options.connection() === IN_MEMORY;
  const drainMs = place ? 0 : options.drainMs;
  const started = (): void => {
    stores.keepAlive?.();
    campaigns.started();
    if (!isInMemory) hintAtShutdownHooks(logger, defaults.leaseMs, client.closing);
  };
  const service = new RedisLockService({
    client,
    singletonRuns: client.singletonRuns(jobs),
    latches: client.latches(latches),
    drainMs,
    onStarted: started,
    clock,
    transactions,
    jobs: { missed: client.missedTicks(jobs), records: client.jobRecords(jobs), refusal: jobs.refusal },
    place,
  });
  place?.created(client, service);
  return service;
}

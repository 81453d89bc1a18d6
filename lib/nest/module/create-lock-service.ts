import { LockClient } from '../../core/lock-client.js';
import type { LatchStore } from '../../core/store/latch-store.js';
import type { LockStore } from '../../core/store/lock-store.js';
import { type JobStore, RefusedJobStore } from '../../core/store/job-store.js';
import {
  checkLockStores,
  type LockStores,
  type StoreContext,
  type StoreFactory,
} from '../../core/store/lock-stores.js';
import { RefusedTickStore, type TickStore } from '../../core/store/tick-store.js';
import { type Clock, SYSTEM_CLOCK } from '../../core/util/clock.js';
import { type Random, SystemRandom } from '../../core/util/random.js';
import { MemoryJobStore } from '../../memory/memory-job-store.js';
import { MemoryLatchStore } from '../../memory/memory-latch-store.js';
import { MemoryLockStore } from '../../memory/memory-lock-store.js';
import { MemoryServer } from '../../memory/memory-server.js';
import { MemoryTickStore } from '../../memory/memory-tick-store.js';
import { RefusedLatchStore } from '../../quorum/no-latches.js';
import { QuorumLockStore } from '../../quorum/quorum-lock-store.js';
import { QuorumTickStore } from '../../quorum/quorum-tick-store.js';
import { RedisJobStore } from '../../redis/redis-job-store.js';
import { RedisLatchStore } from '../../redis/redis-latch-store.js';
import type { MissingRights } from '../../redis/script/missing-rights.js';
import { createClientId, RedisLockStore } from '../../redis/redis-lock-store.js';
import { RedisTickStore } from '../../redis/redis-tick-store.js';
import { CampaignLog } from '../leader/campaign-log.js';
import { loggerOf } from '../log/logger-of.js';
import { hintAtShutdownHooks } from '../log/shutdown-hint.js';
import { LockEventLog } from '../log/lock-event-log.js';
import { StartLog } from '../log/start-log.js';
import type { TestStores } from '../test-stores.js';
import { DEFAULT_NAME } from '../tokens.js';
import { RedisLockService } from '../redis-lock.service.js';
import { IN_MEMORY, type ResolvedModuleOptions } from './module-options.js';
import type { ResolvedQuorum } from './store-options.js';

const NO_LATCHES =
  'a quorum keeps no latches: no single node could say which process was the last to count down. ' +
  'Keep latches on one Redis: register the module a second time, with a connection and a name of its own';

const NO_JOBS =
  'a quorum keeps no records of jobs: no single node could say what was claimed last. Its ticks run as without them. ' +
  'For history, pauses and missed ticks, keep jobs on one Redis: register the module a second time, with a connection ' +
  'and a name of its own';

const NO_TICKS =
  'the option store returned no ticks, so nothing could say which instance runs a tick. Return a TickStore as ticks';

const NO_RECORDS =
  'the option store returned no jobs, so nothing remembers them. Their ticks run as without them. For history, pauses ' +
  'and missed ticks, return a JobStore as jobs';

const NO_OWN_LATCHES = 'the option store returned no latches. Return a LatchStore as latches';

/** Where one registration of the module keeps its locks, ticks and latches. */
interface Stores {
  readonly store: LockStore;
  readonly tickStore: TickStore;
  readonly latches: LatchStore;
  readonly jobs: JobStore;
  /** @default the system's */
  readonly clock?: Clock | undefined;
  /** @default the system's */
  readonly random?: Random | undefined;
  /**
   * Called when the application has started: from then on, the connections keep the process alive. Not before, because
   * Nest does not report a start that fails, and such a process must be able to exit.
   */
  readonly keepAlive?: () => void;
}

/** Builds a lock service and waits a moment for Redis. An application whose Redis is down starts all the same. */
export async function createLockService(
  options: ResolvedModuleOptions,
  name = DEFAULT_NAME,
  testStores: TestStores | null = null,
): Promise<RedisLockService> {
  const { defaults, observers, onLeak, transactions } = options;
  const place = testStores?.place({ ...contextOf(options, name), isNamed: options.isNamed });
  const log = new StartLog(name);
  if (place && process.env['NODE_ENV'] === 'production') log.testLocks();
  const stores = await (place ? withRefusals(place.stores) : createStores(options, name, log));
  const { group, labelGroups, unclearNames, telemetry, contention } = options;
  const logger = loggerOf(name);
  const warn = (line: string): void => logger.warn(line);
  const { store, clock, random } = stores;
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
    telemetry: place ? [...telemetry, place.telemetry] : telemetry,
    contention,
    warn,
  });
  new LockEventLog(name, clock).listenTo(client.observers, client.closing, () => client.countWaiting());
  for (const observer of observers) client.observers.add(observer);
  const campaigns = new CampaignLog(client, name);
  const isInMemory = place !== undefined || options.connection() === IN_MEMORY;
  const drainMs = place ? 0 : options.drainMs;
  const started = (): void => {
    stores.keepAlive?.();
    campaigns.started();
    if (!isInMemory) hintAtShutdownHooks(logger, defaults.leaseMs, client.closing);
  };
  const { tickStore, jobs } = stores;
  const service = new RedisLockService({
    client,
    singletonRuns: client.singletonRuns(tickStore, jobs),
    latches: client.latches(stores.latches),
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

function contextOf({ instanceId, keyPrefix, defaults }: ResolvedModuleOptions, name: string): StoreContext {
  return { service: name, instanceId, keyPrefix, defaults };
}

function createStores(options: ResolvedModuleOptions, name: string, log: StartLog): Stores | Promise<Stores> {
  if (options.store) return createOwn(contextOf(options, name), options.store);
  if (options.quorum) return createOnQuorum(options, options.quorum, log);
  return options.connection() === IN_MEMORY ? createInMemory(options, log) : createOnRedis(options, log);
}

async function createOwn(context: StoreContext, create: StoreFactory): Promise<Stores> {
  const stores: unknown = await create(context);
  checkLockStores(stores, context.instanceId);
  return withRefusals(stores);
}

/** What is not there refuses, with the reason. */
function withRefusals({ locks, ticks, jobs, latches, clock, random }: LockStores): Stores {
  return {
    store: locks,
    tickStore: ticks ?? new RefusedTickStore(NO_TICKS),
    jobs: jobs ?? new RefusedJobStore(ticks ? NO_RECORDS : NO_TICKS),
    latches: latches ?? new RefusedLatchStore(NO_OWN_LATCHES),
    clock,
    random,
  };
}

function createInMemory({ instanceId }: ResolvedModuleOptions, log: StartLog): Stores {
  if (process.env['NODE_ENV'] === 'production') log.inMemory();
  const server = new MemoryServer();
  const store = new MemoryLockStore({ instanceId, server });
  return {
    store,
    tickStore: new MemoryTickStore(server),
    latches: new MemoryLatchStore(store),
    jobs: new MemoryJobStore(store),
  };
}

async function createOnRedis(options: ResolvedModuleOptions, log: StartLog): Promise<Stores> {
  const { keyPrefix, instanceId, defaults, durability } = options;
  const { leaseMs, restartQuarantineMs } = defaults;
  const store = new RedisLockStore({
    connection: options.connection()!,
    keyPrefix,
    instanceId,
    leaseMs,
    durability,
    restartQuarantineMs,
    inBackground: true,
  });
  const [isReached] = await connectAll([store], defaults.attemptTimeoutMs, log);
  if (!isReached) {
    log.unreachable(store.describeTrouble());
    logWhenConnected([store], log);
  }
  const keepAlive = () => store.keepAlive();
  const latches = new RedisLatchStore(store);
  return { store, tickStore: new RedisTickStore(store), latches, jobs: new RedisJobStore(store), keepAlive };
}

/** Begins to connect to all nodes, and waits a moment for them. */
async function createOnQuorum(
  { keyPrefix, instanceId, defaults }: ResolvedModuleOptions,
  { connections, names, fencing, nodeTimeoutMs }: ResolvedQuorum,
  log: StartLog,
): Promise<Stores> {
  const clientId = createClientId(instanceId);
  const { leaseMs, restartQuarantineMs } = defaults;
  const shared = { keyPrefix, instanceId, clientId, leaseMs, restartQuarantineMs, inBackground: true };
  const stores = connections().map((connection) => new RedisLockStore({ ...shared, connection }));
  const clock = SYSTEM_CLOCK;
  const random = new SystemRandom();
  const nodes = stores.map((store, index) => ({ name: names[index]!, store }));
  const store = new QuorumLockStore({ nodes, clock, random, nodeTimeoutMs, fencing });
  const tickNodes = stores.map((node) => new RedisTickStore(node));
  const reached = await connectAll(stores, defaults.attemptTimeoutMs, log);
  const troubles = stores.filter((_, index) => !reached[index]).map((node) => node.describeTrouble());
  if (troubles.length > 0) {
    log.unreachableNodes(stores.length, troubles);
    logWhenConnected(stores, log);
  }
  const tickStore = new QuorumTickStore(store, tickNodes, clock, random);
  const keepAlive = () => stores.forEach((node) => node.keepAlive());
  const latches = new RefusedLatchStore(NO_LATCHES);
  return { store, tickStore, latches, jobs: new RefusedJobStore(NO_JOBS), keepAlive };
}

/**
 * Begins to connect, and asks once what the Redis user may not do.
 *
 * @returns which of the stores are connected within `patienceMs`
 */
async function connectAll(
  stores: readonly RedisLockStore[],
  patienceMs: number,
  log: StartLog,
): Promise<readonly boolean[]> {
  const giveUpAt = performance.now() + patienceMs;
  const reached = await Promise.all(stores.map((store) => store.start(patienceMs)));
  const logRights = async (some: readonly RedisLockStore[]): Promise<void> =>
    logMissingRights((await Promise.all(some.map((store) => store.missingRights()))).flat(), log);
  stores
    .filter((_, index) => !reached[index])
    .forEach((store) => void store.whenStarted().then(() => logRights([store])));
  const asked = logRights(stores.filter((_, index) => reached[index]));
  // A Redis that hangs just now: the line comes when it answers.
  await within(giveUpAt - performance.now(), asked);
  const refusal = stores.find((store) => store.inboxRefusal)?.inboxRefusal;
  if (refusal) log.noInbox(refusal);
  return reached;
}

/** Logs that the trouble of the start is over. */
function logWhenConnected(stores: readonly RedisLockStore[], log: StartLog): void {
  const since = SYSTEM_CLOCK.now();
  void Promise.all(stores.map((store) => store.whenStarted())).then(() =>
    log.connected(stores.length, SYSTEM_CLOCK.now() - since),
  );
}

/** Logs a line for all servers that lack the same rights, and one for each that is a node of a cluster. */
function logMissingRights(found: readonly MissingRights[], log: StartLog): void {
  for (const { server, isOfCluster } of found) if (isOfCluster) log.nodeOfCluster(server);
  const serversByRules = new Map<string, MissingRights[]>();
  for (const each of found) {
    const rules = [...each.needed, '', ...each.helpful].join(' ');
    serversByRules.set(rules, [...(serversByRules.get(rules) ?? []), each]);
  }
  for (const servers of serversByRules.values()) {
    log.missingRights(
      servers[0]!,
      servers.map(({ server }) => server),
    );
  }
}

/** Resolves with the promise, or earlier when the time is over. The timer keeps the process alive until then. */
async function within(ms: number, promise: Promise<void>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, Math.max(0, ms));
  });
  await Promise.race([promise, timeout]);
  clearTimeout(timer);
}

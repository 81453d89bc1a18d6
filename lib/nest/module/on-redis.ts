import { pick } from '../../kernel/api/validation.js';
import { SYSTEM_CLOCK } from '../../kernel/util/clock.js';
import { within } from '../../kernel/util/promises.js';
import { RedisJobStore } from '../../features/jobs/redis/redis-job-store.js';
import { RedisResultStore } from '../../features/once/redis/redis-result-store.js';
import { RedisLockStore } from '../../redis/redis-lock-store.js';
import type { MissingRights } from '../../redis/script/missing-rights.js';
import type { StartLog } from '../log/start-log.js';
import type { ResolvedModuleOptions } from './module-options.js';
import { entryOf } from '../../kernel/util/objects.js';

export async function createOnRedis(options: ResolvedModuleOptions, log: StartLog) {
  const { defaults } = options;
  const store = new RedisLockStore({
    ...pick(options, 'keyPrefix', 'instanceId', 'durability', 'persistence'),
    ...pick(defaults, 'leaseMs', 'restartQuarantineMs'),
    connection: options.connection()!,
    inBackground: true,
    warn: log.connection,
  });
  const [trouble] = await connectAll([store], defaults.attemptTimeoutMs, log);
  if (trouble !== undefined) log.unreachable(trouble);
  const keepAlive = () => store.connection.clients.keepAlive();
  return { locks: store, jobs: new RedisJobStore(store), results: new RedisResultStore(store), keepAlive };
}

/**
 * Starts connecting, and checks once which rights the Redis user lacks, and whether Redis may evict locks.
 *
 * @returns the error of each store that is not connected within `patienceMs`
 */
export async function connectAll(
  stores: readonly RedisLockStore[],
  patienceMs: number,
  log: StartLog,
): Promise<readonly string[]> {
  const giveUpAt = performance.now() + patienceMs;
  const reached = await Promise.all(stores.map((store) => store.start(patienceMs)));
  const logServers = async (some: readonly RedisLockStore[]): Promise<void> => {
    const [rights, evicting] = await Promise.all([
      Promise.all(some.map((store) => store.missingRights())),
      Promise.all(some.map((store) => store.evictingServers())),
    ]);
    logMissingRights(rights.flat(), log);
    log.evicting(evicting.flat());
  };
  const unreached = stores.filter((_, index) => !reached[index]);
  for (const store of unreached) void store.inbox.opened.then(() => logServers([store]));
  const asked = logServers(stores.filter((_, index) => reached[index]));
  // For a Redis that hangs now, the line follows when it answers.
  await within(giveUpAt - performance.now(), asked);
  const refusal = stores.find(({ inbox }) => inbox.refusal)?.inbox.refusal;
  if (refusal) log.noInbox(refusal);
  if (unreached.length > 0) logWhenConnected(stores, log);
  return unreached.map(({ connection }) => connection.describeTrouble());
}

/** Logs that the problem of the start is solved. */
function logWhenConnected(stores: readonly RedisLockStore[], log: StartLog): void {
  const since = SYSTEM_CLOCK.now();
  void Promise.all(stores.map(({ inbox }) => inbox.opened)).then(() =>
    log.connected(stores.length, SYSTEM_CLOCK.now() - since),
  );
}

/** Logs a line for all servers that lack the same rights, and one for each that is a node of a cluster. */
function logMissingRights(found: readonly MissingRights[], log: StartLog): void {
  for (const { server, isOfCluster } of found) if (isOfCluster) log.nodeOfCluster(server);
  const serversByRules = new Map<string, MissingRights[]>();
  for (const each of found) {
    const rules = [...each.needed, '', ...each.helpful].join(' ');
    entryOf(serversByRules, rules, () => []).push(each);
  }
  for (const servers of serversByRules.values()) {
    log.missingRights(
      servers[0]!,
      servers.map(({ server }) => server),
    );
  }
}

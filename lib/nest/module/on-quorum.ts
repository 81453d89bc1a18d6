import { InvalidLockOptionsError } from '../../kernel/api/errors.js';
import { withoutRecords } from '../../features/jobs/core/job-store.js';
import { SYSTEM_CLOCK, SystemRandom } from '../../kernel/util/clock.js';
import { QuorumLockStore } from '../../quorum/quorum-lock-store.js';
import { QuorumClaims } from '../../quorum/quorum-claims.js';
import {
  describeConnection,
  isCluster,
  type RedisConnectionOption,
  statedConnection,
} from '../../redis/connection/connection-options.js';
import { createClientId, RedisLockStore } from '../../redis/redis-lock-store.js';
import { RedisJobStore } from '../../features/jobs/redis/redis-job-store.js';
import { normalizeAddress } from '../../redis/script/address.js';
import type { StartLog } from '../log/start-log.js';
import type { ResolvedModuleOptions } from './module-options.js';
import { connectAll } from './on-redis.js';
import { invalid, NODES, notOnePrimary, type ResolvedQuorum } from './store-options.js';

const NO_JOBS =
  'a quorum keeps no records of jobs: no single node knows what was claimed last. Ticks still run. ' +
  'For history, pauses and missed ticks, keep jobs on one Redis: register the module a second time, with its own ' +
  'connection and service';

/** Starts connecting to all nodes, and waits a moment for them. */
export async function createOnQuorum(
  { keyPrefix, instanceId, defaults, persistence }: ResolvedModuleOptions,
  { connections, fencing, nodeTimeoutMs }: ResolvedQuorum,
  log: StartLog,
) {
  const names = namesOf(connections());
  const clientId = createClientId(instanceId);
  const { leaseMs, restartQuarantineMs } = defaults;
  const warn = log.connection;
  const limit = { leaseMs, restartQuarantineMs, persistence };
  const shared = { keyPrefix, instanceId, clientId, ...limit, inBackground: true, warn };
  const stores = connections().map((connection) => new RedisLockStore({ ...shared, connection }));
  const clock = SYSTEM_CLOCK;
  const random = new SystemRandom();
  const nodes = stores.map((store, index) => ({ name: names[index]!, store }));
  const store = new QuorumLockStore({ nodes, clock, random, nodeTimeoutMs, fencing });
  const claimNodes = stores.map((node) => new RedisJobStore(node));
  const troubles = await connectAll(stores, defaults.attemptTimeoutMs, log);
  if (troubles.length > 0) log.unreachableNodes(stores.length, troubles);
  const jobs = withoutRecords(NO_JOBS, new QuorumClaims(store, claimNodes, clock, random));
  const keepAlive = () => stores.forEach(({ connection }) => connection.clients.keepAlive());
  return { locks: store, jobs, keepAlive };
}

/**
 * Returns the names of the nodes for messages. @throws InvalidLockOptionsError for an address that leads nowhere, or
 * twice to one server
 */
function namesOf(connections: readonly RedisConnectionOption[]): readonly string[] {
  const names = connections.map(nameOf);
  const seen = names.map(normalizeAddress);
  const twice = seen.findIndex((name, index) => seen.indexOf(name) !== index);
  if (twice === -1) return names;
  throw invalid(
    NODES,
    `${NODES}[${twice}] is ${names[twice]}, and so is ${NODES}[${seen.indexOf(seen[twice]!)}]: the vote of one server ` +
      'must not count twice, and another database of the same server is not another server',
  );
}

function nameOf(connection: RedisConnectionOption, index: number): string {
  try {
    // A client of another package does not show it earlier.
    const { model } = statedConnection(connection);
    if (isCluster(model)) throw notOnePrimary(`${NODES}[${index}]`);
    return describeConnection(model);
  } catch (error) {
    if (!(error instanceof InvalidLockOptionsError) || !error.message.startsWith('connection')) throw error;
    throw invalid(NODES, error.message.replace(/^connection/, `${NODES}[${index}]`).replace(/\.$/, ''));
  }
}

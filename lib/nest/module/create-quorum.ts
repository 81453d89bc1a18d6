import { SYSTEM_CLOCK } from '../../core/util/clock.js';
import { QuorumLockStore } from '../../quorum/quorum-lock-store.js';
import { QuorumTickStore } from '../../quorum/quorum-tick-store.js';
import { SystemRandom } from '../../core/util/random.js';
import { RefusedLatchStore } from '../../quorum/no-latches.js';
import { createClientId, RedisLockStore } from '../../redis/redis-lock-store.js';
import { RedisTickStore } from '../../redis/redis-tick-store.js';
import type { Stores } from './create-lock-service.js';
import type { LockEventLog } from '../lock-event-log.js';
import type { ResolvedQuorum } from './quorum-options.js';
import type { ResolvedModuleOptions } from './module-options.js';

const NO_LATCHES =
  'latches are not kept by a quorum: no single node could say who was the last to count down. Keep them on one Redis, by a second ' +
  'registration of the module with a connection and a name';

/** Begins to connect to all nodes, and waits a moment for them. */
export async function createOnQuorum(
  { keyPrefix, instanceId, defaults }: ResolvedModuleOptions,
  { connections, names, fencing, nodeTimeoutMs }: ResolvedQuorum,
  log: LockEventLog,
): Promise<Stores> {
  const clientId = createClientId(instanceId);
  const { leaseMs, restartQuarantineMs } = defaults;
  const terms = { keyPrefix, instanceId, clientId, leaseMs, restartQuarantineMs, inBackground: true };
  const stores = connections().map((connection) => new RedisLockStore({ ...terms, connection }));
  const clock = SYSTEM_CLOCK;
  const random = new SystemRandom();
  const nodes = stores.map((store, index) => ({ name: names[index]!, store }));
  const store = new QuorumLockStore({ nodes, clock, random, nodeTimeoutMs, fencing });
  const claims = stores.map((node) => new RedisTickStore(node));
  const reached = await Promise.all(stores.map((node) => node.start(defaults.attemptTimeoutMs)));
  const troubles = stores.filter((_, index) => !reached[index]).map((node) => node.describeTrouble());
  if (troubles.length > 0) log.unreachableNodes(stores.length, troubles);
  const refusal = stores.find((node) => node.inboxRefusal)?.inboxRefusal;
  if (refusal) log.noInbox(refusal);
  const tickStore = new QuorumTickStore(store, claims, clock, random);
  const keepAlive = () => stores.forEach((node) => node.keepAlive());
  return { store, tickStore, latches: new RefusedLatchStore(NO_LATCHES), keepAlive };
}

import { createLockService } from '../../../lib/nest/module/create-lock-service.js';
import { type RedisLockModuleSettings, resolveModuleOptions } from '../../../lib/nest/module/module-options.js';
import type { RedisLockService } from '../../../lib/nest/redis-lock.service.js';
import { lockConnection } from './lock-user.js';
import { type RedisServer, startRedis } from './redis-server.js';

/** So many independent servers for all tests of the enclosing `describe`. After each test all of them are up again, and empty. */
export function useServers(count: number): () => RedisServer[] {
  let servers: RedisServer[] = [];
  beforeAll(async () => {
    servers = await Promise.all(Array.from({ length: count }, () => startRedis()));
  });
  afterAll(async () => {
    await Promise.all(servers.map((server) => server.stop()));
  });
  return () => servers;
}

/** The options of the module, with those of the quorum at the same level. */
interface QuorumTuning extends Omit<RedisLockModuleSettings, 'connection' | 'quorum' | 'store'> {
  readonly fencing?: boolean;
  readonly nodeTimeoutMs?: number;
}

/** Lock services on a quorum of the servers, as the module makes them; shut down after each test. */
export function useQuorum(
  servers: () => readonly RedisServer[],
): (options?: QuorumTuning, urls?: readonly string[]) => Promise<RedisLockService> {
  const running: RedisLockService[] = [];
  afterEach(async () => {
    await Promise.all(running.splice(0).map((service) => service.beforeApplicationShutdown()));
  });
  return async ({ fencing, nodeTimeoutMs, ...options } = {}, urls) => {
    const connections = urls ?? servers().map(({ url }) => lockConnection(url));
    const quorum = { connections, ...(fencing && { fencing }), ...(nodeTimeoutMs && { nodeTimeoutMs }) };
    // The servers have just been started, and have no leases to forget.
    const resolved = resolveModuleOptions({ quorum, shutdown: { drainMs: 0 }, restartQuarantineMs: 0, ...options });
    const service = await createLockService(resolved);
    running.push(service);
    return service;
  };
}

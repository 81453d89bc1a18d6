import { isCluster, templateClient, type RedisConnectionOption } from './connection-options.js';

/**
 * Where a connection leads, for people: host and port, the path of a socket, or the primary of some sentinels. Never with credentials,
 * and without the number of the database.
 *
 * @throws InvalidLockOptionsError when the option is none of the things that name a Redis
 */
export function redisAddress(connection: RedisConnectionOption): string {
  const model = templateClient(connection);
  if (isCluster(model)) return 'a Cluster';
  const { host = 'localhost', port = 6379, path, name, sentinels } = model.options;
  if (path) return path;
  if (!sentinels?.length) return `${host}:${port}`;
  const where = sentinels.map((sentinel) => `${sentinel.host ?? 'localhost'}:${sentinel.port ?? 26379}`);
  return `${name} of the sentinels ${where.join(' ')}`;
}

/** The same text for two addresses that are certainly one server. */
export function sameServer(address: string): string {
  return address.toLowerCase().replace(/^(localhost|127\.0\.0\.1|::1):/, 'localhost:');
}

// The floor: one round trip, and no lock. Of a quorum: until the slowest of a majority has answered.
import { majority } from './quorum-of.mjs';
import { openServers } from './servers.mjs';

export async function connect(url, where = {}) {
  const servers = openServers(url, where);
  return {
    acquire: () => (servers.length === 1 ? servers[0].ping() : majority(servers.map((redis) => redis.ping()))),
    release: undefined,
    close: () => servers.forEach((redis) => redis.disconnect()),
  };
}

import { findFreePort } from '../../../scripts/redis/free-port.mjs';
import { connectAdmin } from '../../../test/support/redis/admin-client.js';
import { startRedis } from '../../../test/support/redis/redis-server.js';
import { whatIsLeft } from './leftovers.js';

it('ends where a server was left behind by a fault that has failed, and says which one', async () => {
  await using redis = await startRedis();
  const gone = await findFreePort();
  const admins = [redis.port, gone].map((port) => connectAdmin(port));
  try {
    const left = { keys: [], clients: [], channels: [] };
    expect(await whatIsLeft(admins.slice(0, 1), 'lock', 0)).toEqual(left);
    await expect(whatIsLeft(admins, 'lock', 0, 100)).rejects.toThrow(`nothing answers on port ${gone}`);
  } finally {
    for (const admin of admins) admin.disconnect();
  }
});

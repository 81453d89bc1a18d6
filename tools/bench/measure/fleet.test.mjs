// Needs the built package, and a Redis that `npm test` would find.
import assert from 'node:assert/strict';
import * as runner from 'node:test';
import { startRedisServer } from '../../../scripts/redis-server.mjs';
import { chosenRedis, dockerRedis, installedRedis } from '../../../scripts/setup/find-redis.mjs';
import { measureFleet } from './fleet.mjs';
import { killAllWorkers } from '../processes/worker-process.mjs';
import { it } from '../testing.mjs';

const { env } = process;
const source = chosenRedis(env) ?? (await installedRedis(env)) ?? (await dockerRedis(env));

void runner.describe('a small fleet', () => {
  let redis;
  runner.before(async () => {
    redis = await startRedisServer({ source, args: ['--save', '', '--appendonly', 'no'] });
  });
  runner.after(async () => {
    killAllWorkers();
    await redis?.stop();
  });

  it('has two connections for each instance, and sends nothing while it has nothing to do', async () => {
    const used = await measureFleet(redis.url, { instances: 4 }, { forMs: 1_000, settleMs: 500 });
    assert.deepEqual([used.connections, used.scripts, used.published], [8, 0, 0]);
  });

  it('does all that it is told to at the same time', async () => {
    const load = { instances: 4, processes: 2, leaseMs: 3_000, locks: 5, permits: 2, waits: 3, leaderships: 2 };
    const work = { jobs: 2, everyMs: 1_000, pairs: 2 };
    const used = await measureFleet(redis.url, { ...load, ...work }, { forMs: 6_500, settleMs: 2_000 });
    assert.equal(used.connections, 8);
    // 28 leases that are renewed each second, and 16 acquires and releases: a busy machine does less in a time.
    assert.ok(used.scripts > 15 && used.scripts < 150, `${used.scripts} scripts/s`);
    for (const [name, value] of Object.entries(used)) assert.ok(value > 0, `${name}: ${value}`);
  });
});

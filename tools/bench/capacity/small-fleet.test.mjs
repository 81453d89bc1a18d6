// Needs the built package, and a Redis that `npm test` would find.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import * as runner from 'node:test';
import { startRedisServer } from '../../../scripts/redis-server.mjs';
import { chosenRedis, dockerRedis, installedRedis } from '../../../scripts/setup/find-redis.mjs';
import { killAllWorkers } from '../processes/worker-process.mjs';
import { it } from '../testing.mjs';
import { compare } from './check.mjs';
import { measureLoad } from './stage.mjs';

const { constants } = JSON.parse(readFileSync(new URL('../results/capacity.json', import.meta.url), 'utf8'));
const { env } = process;
const source = chosenRedis(env) ?? (await installedRedis(env)) ?? (await dockerRedis(env));

/** Each of these may be this many times what the formula says, or as much less: a busy machine does less in a time. */
const BOUNDS = {
  connections: 1,
  scripts: 2,
  'of these, probes': 2,
  'of these, keeps': 2.5,
  'places kept': 2.5,
  renewals: 2,
  'memory of data': 2.5,
  'bytes to Redis': 3,
  'bytes from Redis': 3,
};

void runner.describe('a small fleet', () => {
  let redis;
  runner.before(async () => {
    redis = await startRedisServer({ source, args: ['--save', '', '--appendonly', 'no'] });
  });
  runner.after(async () => {
    killAllWorkers();
    await redis?.stop();
  });

  it('needs about what the capacity plan says', async () => {
    const load = { instances: 8, leaseMs: 3_000, locks: 10, permits: 5, waits: 70, leaderships: 10 };
    const servers = { urls: [redis.url] };
    // The first script of each kind is sent with its text.
    await measureLoad(servers, { ...load, instances: 2 }, { forMs: 1_000, settleMs: 1_000 });
    // A call that waits for 5 s asks once more.
    const used = await measureLoad(servers, load, { forMs: 5_000, settleMs: 6_000 });
    const compared = compare(constants, load, used);
    for (const [name, bound] of Object.entries(BOUNDS)) {
      const { predicted, measured } = compared.find((row) => row.name === name);
      const off = Math.max(predicted / measured, measured / predicted);
      assert.ok(off <= bound, `${name}: the formula says ${predicted}, and it was ${measured}`);
    }
  });
});

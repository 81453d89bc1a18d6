// Needs the built package, and a Redis that `npm test` would find.
import assert from 'node:assert/strict';
import * as runner from 'node:test';
import { startRedisServer } from '../../scripts/redis-server.mjs';
import { chosenRedis, dockerRedis, installedRedis } from '../../scripts/setup/find-redis.mjs';
import { connect as connectFenced } from './contestants/raw-fenced.mjs';
import { median } from './measure/statistics.mjs';
import { Network } from './network/network.mjs';
import { measureOperation } from './scenarios/network/one-operation.mjs';
import { TOPOLOGIES } from './scenarios/network/topologies.mjs';
import { run } from './tasks/operation.mjs';
import { Begun, it } from './testing.mjs';

const { after, before } = runner;

/** No operation may need more round trips than this. */
const AT_MOST = {
  'a lock: acquire': { single: 1, durable: 2 },
  'a lock: release': { single: 1, durable: 1 },
  '`using()`, with its release': { single: 2, durable: 3 },
  'the same with `backgroundRelease`': { single: 1, durable: 2 },
  'a reader: acquire': { single: 1, durable: 2 },
  'a reader: release': { single: 1, durable: 1 },
  'a permit of a semaphore: acquire': { single: 1, durable: 2 },
  'a permit of a semaphore: release': { single: 1, durable: 1 },
  're-entry: acquire': { single: 0, durable: 0 },
  're-entry: release': { single: 0, durable: 0 },
  '2 resources: acquire': { single: 1, durable: 2 },
  '2 resources: release': { single: 1, durable: 1 },
  '5 resources: acquire': { single: 1, durable: 2 },
  '5 resources: release': { single: 1, durable: 1 },
  '`extend()`': { single: 1, durable: 2 },
  '`verify()`': { single: 1, durable: 1 },
  '`transfer()`': { single: 1, durable: 2 },
  '`adopt()`': { single: 1, durable: 2 },
  'a method with `@DistributedLock`': { single: 2, durable: 3 },
  'the method with `backgroundRelease`': { single: 1, durable: 3 },
  'a tick of a cron job: claim': { single: 1, durable: 2 },
  'a tick: claim, run and its end': { single: 2, durable: 3 },
  'a tick that another instance has': { single: 1, durable: 1 },
  'a hand-over to another process': { single: 1, durable: 3 },
  'elected after another process resigned': { single: 1, durable: 3 },
};
const SAMPLES = 5;
/**
 * Processes and a replica say something every second or so, whatever they are asked. That adds to most samples of a machine that is
 * so busy that they take longer than this: these do not count, unless all of them do.
 */
const SHORT_NS = 150e6;
const MOST_LONG = 100;

const { env } = process;
const source = chosenRedis(env) ?? (await installedRedis(env)) ?? (await dockerRedis(env));

for (const id of ['single', 'durable']) {
  // A server in a container does not reach the proxy on this machine, as a replica has to.
  const skip = id === 'durable' && source?.kind === 'image';
  void runner.describe(`round trips: ${TOPOLOGIES[id].label}`, { skip }, () => {
    const network = new Network();
    const begun = new Begun();
    let processes;
    before(async () => {
      const redis = await startRedisServer({ source, args: ['--save', '', '--appendonly', 'no'] });
      begun.endBy(() => redis.stop());
      begun.endBy(() => network.stop());
      const topology = await TOPOLOGIES[id].start(network, redis.url);
      begun.endBy(() => topology.stop());
      processes = await Promise.all(['first', 'second'].map((name) => processOf(topology, name)));
      for (const ask of processes) begun.endBy(() => ask({ step: 'close' }));
    });
    after(() => begun.end());

    it('have a limit for each operation', async () => {
      const operations = await processes[0]({ step: 'names' });
      assert.deepEqual(
        operations.map(({ name }) => name),
        Object.keys(AT_MOST),
      );
    });

    for (const [name, { [id]: atMost }] of Object.entries(AT_MOST)) {
      it(`${name}: at most ${atMost}`, async () => {
        const operation = (await processes[0]({ step: 'names' })).find((each) => each.name === name);
        const trips = [];
        // The first one loads the scripts.
        await measureOperation(network, processes, operation, `${name}:first`);
        for (let index = 0; trips.length < SAMPLES; index++) {
          const { tookNs, trips: count } = await measureOperation(network, processes, operation, `${name}:${index}`);
          if (tookNs < SHORT_NS || index >= MOST_LONG) trips.push(count);
        }
        // What happens beside it, such as a renewal, may add to one of them, not to most.
        const usual = median(trips);
        assert.ok(usual >= Math.min(1, atMost) && usual <= atMost, trips.join(', '));
      });
    }
  });
}

void runner.describe('the raw pair with a fencing token', () => {
  const network = new Network();
  const begun = new Begun();
  let client;
  before(async () => {
    const redis = await startRedisServer({ source, args: ['--save', '', '--appendonly', 'no'] });
    begun.endBy(() => redis.stop());
    begun.endBy(() => network.stop());
    client = await connectFenced(await network.way('client', 'redis', redis.url));
    begun.endBy(() => client.close());
  });
  after(() => begun.end());

  it('keeps others out, and only its holder releases it', async () => {
    const first = await client.acquire('one');
    await assert.rejects(client.acquire('one'), /one is busy/);
    assert.equal(await client.release({ ...first, value: 'of another' }), 0);
    await assert.rejects(client.acquire('one'), /one is busy/);
    assert.equal(await client.release(first), 1);
    const second = await client.acquire('one');
    assert.equal(second.token, first.token + 1);
    await client.release(second);
  });

  it('takes one round trip for each half, as ours does', async () => {
    network.begin();
    const lock = await client.acquire('two');
    assert.equal(network.tripsOf('client'), 1);
    await client.release(lock);
    assert.equal(network.tripsOf('client'), 2);
  });
});

/** The steps of the worker processes, in this one. */
async function processOf(topology, name) {
  const { url, tuning } = await topology.reach(name);
  const world = { url, kept: new Map() };
  return (args) => run(world, { tuning, ...args });
}

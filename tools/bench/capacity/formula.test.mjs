import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { format, resolveConfig } from 'prettier';
import { CAPACITY_PAGE, CAPACITY_RESULTS, capacityPage } from '../report/capacity-page.mjs';
import { describe, it } from '../testing.mjs';
import { compare, deviation } from './check.mjs';
import { fit } from './fit.mjs';
import { carriedBy, needsOf } from './formula.mjs';
import { LOADS, SIZES } from './loads.mjs';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const results = JSON.parse(readFileSync(ROOT + CAPACITY_RESULTS, 'utf8'));
const { constants } = results;

const needs = (fleet) => needsOf(constants, { instances: 100, ...fleet });
const close = (actual, expected, what) =>
  assert.ok(Math.abs(actual / expected - 1) < 0.05, `${what}: ${actual} is not about ${expected}`);

describe('the formula of the capacity plan', () => {
  it('says that an instance with nothing to do sends nothing', () => {
    const idle = needs({});
    assert.deepEqual([idle.connections, idle.scripts, idle.published], [200, 0, 0]);
  });

  it('says that waiting for 64 resources takes no more scripts than waiting for one', () => {
    const scripts = [1, 64, 65].map((waits) => needs({ waits }).rates.keep);
    assert.deepEqual([scripts[1], scripts[2]], [scripts[0], 2 * scripts[0]]);
  });

  it('says that longer leases cost less, but that places are kept every 15 s at least', () => {
    const [short, long, longest] = [30, 45, 3_600].map((leaseS) => needs({ leaseS, waits: 1, locks: 1 }).rates);
    close(short.keep / long.keep, 1.5, 'keeps');
    close(short.renewal / long.renewal, 1.5, 'renewals');
    assert.equal(longest.keep, long.keep);
  });

  it('says that a cluster keeps every place each 5 s at least, those of candidates too', () => {
    const [wait, leadership] = [{ waits: 1 }, { leaderships: 1 }].map((fleet) =>
      [15, 45].map((leaseS) => needs({ ...fleet, leaseS, primaries: 3 }).rates.keep),
    );
    assert.equal(wait[1], wait[0]);
    assert.equal(leadership[1], leadership[0]);
  });

  it('counts one holder for each leadership, and no waiter where there is one instance', () => {
    assert.equal(needs({ instances: 1, leaderships: 3 }).rates.keep, 0);
    assert.equal(needs({ leaderships: 3 }).rates.renewal, needs({ instances: 1, leaderships: 3 }).rates.renewal);
  });

  it('has a cluster keep each place by a script, and pass each message on to all nodes', () => {
    const fleet = { waits: 20, leaderships: 2 };
    const [one, three, nine] = [1, 3, 9].map((primaries) => needs({ ...fleet, primaries }));
    assert.deepEqual([one.connections, three.connections, nine.connections], [200, 400, 1_000]);
    assert.ok(three.rates.keep > 20 * one.rates.keep);
    assert.deepEqual([one.bus.messages, three.bus.messages], [0, 2 * three.published]);
    close(nine.bus.bytes, 4 * three.bus.bytes, 'bytes between nodes');
  });

  it('says that a connection has a buffer only while something is sent on it every 2 s', () => {
    const { idle, sending, listening } = constants.bytes.instance;
    const clients = (fleet) => needs(fleet).memory.clients / 100;
    assert.equal(clients({}), idle);
    close(clients({ pairs: 0.125 }), (idle + sending) / 2, 'a script every 4 s');
    close(clients({ pairs: 5 }), sending, 'ten scripts a second');
    close(clients({ waits: 1 }), listening, 'a call that waits');
    // One connection listens, and the scripts of an instance are too few for the buffers of nine others.
    assert.ok(clients({ waits: 1, primaries: 9 }) < listening + 8 * (sending - idle / 2));
  });

  it('says that a node of a cluster does its part of the scripts, and hears of all messages', () => {
    const cpu = (primaries, fleet) => needs({ instances: 1_000, primaries, ...fleet }).perNode.cpuPercent;
    const own = constants.cluster.serverCpuUs / 1e4;
    close(cpu(3, {}), own, 'a node with nothing to do');
    // Not a third: with fewer scripts, a node wakes up for more of them.
    assert.ok(cpu(9, { pairs: 5 }) < (2 / 3) * cpu(3, { pairs: 5 }));
    const silent = { ...constants, cluster: { ...constants.cluster, busCpuUs: 0 } };
    const fleet = { instances: 1_000, waits: 1, primaries: 9 };
    assert.ok(needsOf(silent, fleet).perNode.cpuPercent < needsOf(constants, fleet).perNode.cpuPercent);
  });

  it('finds how many instances a core carries', () => {
    const fleet = { waits: 10, pairs: 1 };
    const carried = carriedBy(constants, fleet);
    assert.ok(needs({ ...fleet, instances: carried }).cpuAtMostPercent <= 50);
    assert.ok(needs({ ...fleet, instances: carried + 1 }).cpuAtMostPercent > 50);
    assert.equal(carriedBy(constants, {}), Infinity);
    assert.equal(carriedBy(constants, { pairs: 1e6 }), 0);
  });
});

describe('the constants', () => {
  it('are found in fleets that were made of them', () => {
    const seconds = 6;
    const stages = Object.fromEntries(
      Object.entries(LOADS).map(([name, load]) => {
        const [small, large] = [SIZES.small, SIZES.large].map((instances) => usedBy(load, instances, seconds));
        return [name, { load, small, large }];
      }),
    );
    Object.assign(stages, { settledUsed: stages.used, settledWaiting: stages.waitingFew });
    const { bytes, work } = constants;
    const run = (field) => work.run[field] + work.claim[field];
    const jobs = {
      job: bytes.job,
      run: bytes.run,
      claim: bytes.claim,
      runCpuUs: run('cpuUs'),
      runReceived: run('receivedBytes'),
      runSent: run('sentBytes'),
    };
    const found = fit(stages, jobs, bytes.server);
    close(found.wake.us, constants.wake.us, 'waking up');
    for (const part of ['often', 'bytes']) {
      for (const [name, value] of Object.entries(found[part])) {
        if (typeof value === 'number') close(value, constants[part][name], `${part} ${name}`);
      }
    }
    for (const [kind, cost] of Object.entries(found.work)) {
      for (const [field, value] of Object.entries(cost)) {
        const expected = work[kind][field];
        assert.ok(Math.abs(value - expected) < 0.05 * expected + 2, `${kind} ${field}: ${value}, not ${expected}`);
      }
    }
  });

  it('predict a fleet that was made of them', () => {
    const load = { leaseMs: 30_000, locks: 3, waits: 3, pairs: 1 };
    const compared = compare(constants, { instances: 70, ...load }, usedBy(load, 70, 10));
    for (const row of compared) assert.ok(Math.abs(deviation(row)) < 0.01, row.name);
  });
});

describe('docs/operations/capacity.md', () => {
  it('has the numbers of the last measurement', async () => {
    const page = readFileSync(ROOT + CAPACITY_PAGE, 'utf8');
    const options = { ...(await resolveConfig(ROOT + CAPACITY_PAGE)), parser: 'markdown' };
    assert.equal(await format(capacityPage(page, results), options), page);
  });

  it('is about constants that predict the fleet that was measured', () => {
    const wrong = results.check.compared.filter((row) => Math.abs(deviation(row)) > 0.2);
    assert.deepEqual(wrong, []);
  });
});

/** What `measureLoad` would return for a fleet that is as the formula says. */
function usedBy({ leaseMs, everyMs = Infinity, probes = 0, ...load }, instances, seconds) {
  const fleet = { instances, leaseS: leaseMs / 1000, everyS: everyMs / 1000, ...load };
  const said = needsOf(constants, fleet);
  const { rates } = said;
  const probed = instances * probes;
  const { work, wake } = constants;
  const awake = (probed * wake.us) / (1 + probed * wake.togetherS);
  const count = (...kinds) => kinds.reduce((sum, kind) => sum + rates[kind], 0) * seconds;
  return {
    instances,
    seconds,
    cpuMs: (said.cpuPercent * 10 + (probed * work.probe.cpuUs + awake) / 1000) * seconds,
    received: (said.receivedBytes + probed * work.probe.receivedBytes) * seconds,
    sent: (said.sentBytes + probed * work.probe.sentBytes) * seconds,
    scripts: (said.scripts + probed) * seconds,
    published: said.published * seconds,
    connections: said.connections,
    clientBytes: said.memory.clients,
    dataBytes: said.memory.data - constants.bytes.server,
    counts: {
      probeInbox: count('probe') + probed * seconds,
      keep: count('keep'),
      keptPlaces: count('keptPlaces', 'keptCandidates'),
      renew: count('renewal', 'renewedPermit'),
      claimTick: count('claim'),
      endRun: count('run'),
      acquire: count('pair') / 2,
      release: count('pair') / 2,
    },
  };
}

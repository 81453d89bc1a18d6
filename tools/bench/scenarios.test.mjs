import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { describe, it } from './testing.mjs';
import { contestant, CONTESTANTS } from './contestants/index.mjs';
import { GROUPS, SCENARIOS } from './scenarios/index.mjs';
import { roundsAtEachDistance } from './scenarios/network/distances.mjs';

describe('the scenarios', () => {
  it('have names of their own', () => {
    assert.equal(new Set(SCENARIOS.map(({ name }) => name)).size, SCENARIOS.length);
  });

  for (const scenario of SCENARIOS) {
    it(`${scenario.name} compares only what it measures, and each target has one limit`, () => {
      const ids = scenario.metrics.map(({ id }) => id);
      for (const id of scenario.compare ?? []) assert.ok(ids.includes(id), id);
      for (const { atLeast, atMost } of scenario.targets) assert.notEqual(atLeast === undefined, atMost === undefined);
    });

    it(`${scenario.name} has targets that cope with contestants that failed`, () => {
      const everyoneFailed = Object.fromEntries(CONTESTANTS.map(({ name }) => [name, { failed: 'x' }]));
      for (const { of } of scenario.targets) assert.ok(!Number.isFinite(of(everyoneFailed)));
    });
  }
});

describe('the scenarios about what an observer costs', () => {
  for (const [name, observed] of [
    ['metrics', 'ours-metrics'],
    ['traces', 'ours-traces'],
  ]) {
    it(`${name} lets ours and ${observed} take turns`, async () => {
      const turns = [];
      const fleets = {
        of: (one) => [{ ask: async () => (turns.push(one), { latenciesMs: [1], elapsedMs: 1 }) }],
      };
      const attempt = (scenario, one, slice) => slice();
      const bench = { rounds: 1, fleets, attempt, ms: () => 1, count: () => 2, say() {}, resource: () => name };
      const { rounds } = await SCENARIOS.find((each) => each.name === name).run(bench);
      assert.deepEqual(turns, ['ours', observed, 'ours', observed, observed, 'ours']);
      assert.deepEqual(Object.keys(rounds[0].values), ['ours', observed]);
    });
  }
});

describe('the contestants', () => {
  it('each have a file', () => {
    for (const { name } of CONTESTANTS) {
      assert.ok(existsSync(new URL(`contestants/${name}.mjs`, import.meta.url)), name);
    }
  });

  it('are found by name', () => {
    assert.equal(contestant('ours').label, 'nestjs-redis-lock');
    assert.equal(contestant('nobody'), undefined);
  });
});

describe('the group of scenarios over a network', () => {
  it('can be chosen by one name', () => {
    assert.deepEqual(GROUPS.network, ['round-trips', 'network-1', 'network-several', 'network-handover']);
  });

  it('joins what was measured at each distance, and stops what it started', async () => {
    const asked = [];
    const bench = {
      url: 'redis://127.0.0.1:1',
      rounds: 5,
      say() {},
      at: (url) => ({ url, fleets: { dropAll: async () => void asked.push(url) } }),
    };
    let measured = 0;
    const rounds = await roundsAtEachDistance(bench, async ({ rounds: count }) => {
      measured++;
      const values = { ours: { p50Ms: measured }, raw: measured === 1 ? { failed: 'x' } : { p50Ms: 7 } };
      return Array.from({ length: count }, () => ({ order: ['ours', 'raw'], values }));
    });
    assert.equal(rounds.length, 3);
    assert.deepEqual(rounds[0].values, { ours: { farP50Ms: 1, nearP50Ms: 2 }, raw: { failed: 'x', nearP50Ms: 7 } });
    assert.equal(new Set(asked).size, 2);
  });
});

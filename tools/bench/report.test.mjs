import assert from 'node:assert/strict';
import { describe, it } from './testing.mjs';
import { evaluate } from './report/evaluate.mjs';
import { PAGE_SCENARIOS, pageWith } from './report/page.mjs';
import { alignColumns, scenarioReport } from './report/table.mjs';
import { ours, toContestant } from './scenarios/ratios.mjs';
import { SCENARIOS } from './scenarios/index.mjs';

const scenario = {
  name: 'sample',
  title: 'A sample',
  how: 'How it is done.',
  metrics: [
    { id: 'leasesPerSecond', label: 'leases/s', digits: 0 },
    { id: 'waitMs', label: 'wait, ms', digits: 1 },
  ],
  targets: [
    { text: 'of the raw pair', of: toContestant('raw', 'leasesPerSecond'), atLeast: 0.95 },
    { text: 'wait', of: ours('waitMs'), atMost: 1, unit: ' ms' },
    { text: 'of nobody', of: toContestant('nobody', 'leasesPerSecond'), atLeast: 1 },
  ],
};
const round = (raw, own, redlock) => ({
  order: ['raw', 'ours', 'redlock', 'node-redisson'],
  values: { raw, ours: own, redlock, 'node-redisson': { failed: 'it <broke>' } },
});
const measured = {
  rounds: [
    round({ leasesPerSecond: 1_000 }, { leasesPerSecond: 900, waitMs: 2 }, { leasesPerSecond: 950, stuckWaiters: 3 }),
    round({ leasesPerSecond: 2_000 }, { leasesPerSecond: 2_200, waitMs: 4 }, { leasesPerSecond: 2_150 }),
  ],
  settings: { redlock: { retryMs: 10 } },
  tried: { redlock: [{ tuning: { retryMs: 3 } }, { tuning: { retryMs: 10 } }] },
};
const result = evaluate(scenario, measured);

describe('the evaluation', () => {
  it('takes ratios within a round, then their median', () => {
    const [{ min, median, max, passed }] = result.targets;
    assert.deepEqual([min, median, max, passed], [0.9, 1, 1.1, true]);
  });

  it('tells a target that is missed from one that was not measured', () => {
    assert.deepEqual(
      result.targets.map(({ passed }) => passed),
      [true, false, null],
    );
  });
});

describe('the terminal', () => {
  it('aligns names to the left, numbers to the right', () => {
    const rows = [
      ['', 'n'],
      ['long', '1'],
      ['a', '22'],
    ];
    assert.equal(alignColumns(rows), '       n\nlong   1\na     22');
  });

  it('shows medians with their spread, targets, settings and failures', () => {
    const text = scenarioReport(scenario, result);
    assert.match(text, /nestjs-redis-lock +1,550 \(900–2,200\)/);
    assert.match(text, /PASS +of the raw pair +1\.00x \(0\.90x–1\.10x\) +>= 0\.95x/);
    assert.match(text, /missed +wait +3\.00 ms/);
    assert.match(text, /node-redisson +failed +-\n/);
    assert.match(text, /node-redisson failed in 2 rounds: it <broke>/);
    assert.match(text, /redlock: up to 3 callers/);
    assert.match(text, /redlock: {"retryMs":10} had the most leases/);
  });

  it('survives a scenario that was skipped', () => {
    const skipped = evaluate(scenario, { rounds: [], skipped: 'no such option' });
    assert.match(scenarioReport(scenario, skipped), /skipped: no such option/);
  });
});

describe('the page', () => {
  const run = {
    date: '2026-01-02T03:04:05.000Z',
    load: 0.25,
    rounds: 2,
    machine: { cpu: 'A processor', cores: 2, memoryGb: 8, system: 'Linux 6' },
    versions: { node: '20.20.2' },
    scenarios: Object.fromEntries(PAGE_SCENARIOS.map((name) => [name, { summary: summaryOf(name) }])),
  };

  function summaryOf(name) {
    const { metrics } = SCENARIOS.find((one) => one.name === name);
    const all = (median) => Object.fromEntries(metrics.map(({ id }) => [id, { median }]));
    return { 'raw-quorum': all(1_000), ours: all(2_000), redlock: { failed: 'x' } };
  }

  it('has a table and three charts in place of the last ones, and the rest as it was', () => {
    const page = pageWith('before\n<!-- measured -->\nold\n<!-- end -->\nafter', run, SCENARIOS);
    assert.match(page, /^before\n<!-- measured -->\n\nMedians of up to 2 rounds, 2026-01-02\./);
    assert.match(page, /\| A free lock, one caller: leases\/s \| 1,000 \| \*\*2,000\*\* \|  \| failed \|/);
    assert.equal(page.match(/```mermaid\n%%.*%%\nxychart-beta horizontal\n/g).length, 3);
    assert.match(page, /x-axis \["By hand", "nestjs-redis-lock"\]\n {2}y-axis 0 --> 2000\n {2}bar \[1000, 2000\]/);
    assert.match(page, /<!-- end -->\nafter$/);
    assert.doesNotMatch(page, /old|undefined|NaN/);
  });
});

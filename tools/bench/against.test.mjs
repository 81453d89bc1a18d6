import assert from 'node:assert/strict';
import { comparison } from './against.mjs';
import { describe, it } from './testing.mjs';

const scenario = { name: 'race', metrics: [{ id: 'speed', label: 'leases/s', digits: 0 }] };
const round = (ours, before, again) => ({
  values: { ours: { speed: ours }, before: { speed: before }, 'before-again': { speed: again } },
});

describe('a comparison with a commit', () => {
  it('takes ratios within a round, and their median', () => {
    const rounds = [round(100, 100, 100), round(45, 50, 55), round(300, 250, 250)];
    const expected = ['race', 'leases/s', '100', '1.000 (0.900–1.200)', '1.000 (1.000–1.100)'];
    assert.deepEqual(comparison(scenario, 'speed', rounds), expected);
  });

  it('has the ratio to the fixed base, where that took part', () => {
    const withFixed = (ours, fixed) => {
      const { values } = round(ours, 100, 100);
      return { values: { ...values, 'fixed-base': { speed: fixed } } };
    };
    const row = comparison(scenario, 'speed', [withFixed(90, 100), withFixed(120, 100), withFixed(100, 100)]);
    assert.deepEqual(row.slice(3), ['1.000 (0.900–1.200)', '1.000', '1.000 (0.900–1.200)']);
  });

  it('leaves out a round in which one of the two failed', () => {
    const failed = { values: { ours: { speed: 90 }, before: { failed: 'x' }, 'before-again': { speed: 90 } } };
    assert.equal(comparison(scenario, 'speed', [failed, round(90, 100, 100)])[3], '0.900');
  });
});

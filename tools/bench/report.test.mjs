import assert from 'node:assert/strict';
import { describe, it } from './testing.mjs';
import { check, resolveConfig } from 'prettier';
import { measured, result, results, scenario } from './fixtures/results.mjs';
import { barChart } from './report/chart.mjs';
import { evaluate } from './report/evaluate.mjs';
import { networkPage } from './report/network-page.mjs';
import { benchmarkPage } from './report/page.mjs';
import { scenarioChart } from './report/scenario-chart.mjs';
import { standing } from './report/standing.mjs';
import { merged } from './report/store.mjs';
import { alignColumns, scenarioReport } from './report/table.mjs';

describe('the evaluation', () => {
  it('takes ratios within a round, then their median', () => {
    const [toRaw] = result.targets;
    assert.deepEqual([toRaw.min, toRaw.median, toRaw.max, toRaw.passed], [0.9, 1, 1.1, true]);
  });

  it('tells a target that is missed from one that was not measured', () => {
    assert.deepEqual(
      result.targets.map(({ passed }) => passed),
      [true, false, null],
    );
  });

  it('keeps the failures, and only digits that mean something', () => {
    assert.deepEqual(result.summary['node-redisson'], { failed: 'it <broke>', failedRounds: 2 });
    assert.equal(result.rounds[0].values.redlock.leasesPerSecond, 950.1);
  });

  it('survives a scenario that was skipped', () => {
    const skipped = evaluate(scenario, { rounds: [], skipped: 'no such option' });
    assert.match(scenarioReport(scenario, skipped), /skipped: no such option/);
  });

  it('puts a part beside the rest', () => {
    const whole = merged(results, { machine: {}, versions: {}, scenarios: { other: {} } });
    assert.deepEqual(Object.keys(whole.scenarios), ['sample', 'other']);
  });
});

describe('the terminal', () => {
  it('aligns names to the left, numbers to the right', () => {
    assert.equal(
      alignColumns([
        ['', 'n'],
        ['long', '1'],
        ['a', '22'],
      ]),
      '       n\nlong   1\na     22',
    );
  });

  it('shows medians with their spread, targets, and failures', () => {
    const text = scenarioReport(scenario, result);
    assert.match(text, /nestjs-redis-lock +1,550 \(900–2,200\)/);
    assert.match(text, /PASS +of the raw pair +1\.00x \(0\.90x–1\.10x\) +>= 0\.95x/);
    assert.match(text, /missed +wait +3\.00 ms/);
    assert.match(text, /node-redisson +failed +-\n/);
    assert.match(text, /node-redisson failed in 2 rounds: it <broke>/);
    assert.match(text, /redlock: up to 3 callers/);
  });
});

describe('the standing', () => {
  it('says so where another one is better', () => {
    const slower = {
      summary: { ours: { leasesPerSecond: { median: 900 } }, redlock: { leasesPerSecond: { median: 950 } } },
    };
    assert.deepEqual(standing(scenario, slower), ['**Not first** in leases/s: ours 900; better: redlock (950).']);
  });

  it('says by how much we are first, for less is better too', () => {
    const [, wait] = standing(scenario, result);
    assert.equal(wait, 'First in wait, ms: ours 3.0, 0.35 times the best other lock (8.5).');
  });
});

describe('the chart', () => {
  const svg = scenarioChart(scenario, result);

  it('has a bar for everyone who has a result, ours in a colour of its own', () => {
    assert.equal(svg.match(/<rect /g).length, 3);
    assert.equal(svg.match(/<rect [^>]*#2f81f7/g).length, 1);
    assert.match(svg, />nestjs-redis-lock</);
  });

  it('has no background, so that it can be read on light and dark pages', () => {
    assert.doesNotMatch(svg, /<rect [^>]*width="760"/);
  });

  it('escapes what it is given, and stays within its width', () => {
    const bars = [{ label: 'a < b & "c"', value: 5, text: '5', kind: 'peer', range: [1, 9] }];
    const drawn = barChart({ title: 'x > y', unit: 'ms', bars, limit: { value: 4, text: 'target' } });
    assert.match(drawn, /a &lt; b &amp; &quot;c&quot;/);
    assert.doesNotMatch(drawn, /NaN|undefined/);
    for (const [, x] of drawn.matchAll(/ x[12]?="([\d.]+)"/g)) assert.ok(Number(x) <= 760);
  });

  it('is not drawn when nobody has a result', () => {
    assert.equal(scenarioChart(scenario, { summary: { redlock: { failed: 'x' } }, targets: [] }), undefined);
  });
});

describe('the page', () => {
  const options = { notes: { sample: 'A note by hand.' }, charts: { sample: 'benchmarks/sample.svg' } };
  const page = benchmarkPage(results, [scenario, { ...scenario, name: 'not-run' }], options);

  it('has the table, the targets, the standing, the settings, the chart and the note', () => {
    assert.match(page, /\| nestjs-redis-lock|\*\*nestjs-redis-lock\*\*/);
    assert.match(page, /\| of the raw pair \| 1\.00x \(0\.90x–1\.10x\) \| >= 0\.95x \| met \|/);
    assert.match(page, /- First in wait/);
    assert.match(page, /- redlock: retryMs 10 \(tried retryMs 3: 100\/s, retryMs 10: 900\/s\)/);
    assert.match(page, /!\[A sample, with a comma\]\(benchmarks\/sample\.svg\)/);
    assert.match(page, /A note by hand\./);
  });

  it('has a section for what was run, and only that', () => {
    assert.equal(page.match(/## A sample/g).length, 1);
  });

  it('links to its sections', () => {
    assert.match(page, /\(#a-sample-with-a-comma\)/);
  });

  it('has shell snippets only: all others are compiled and run by test/docs', () => {
    assert.deepEqual(
      [...page.matchAll(/^```(\w+)$/gm)].map(([, language]) => language),
      ['sh'],
    );
  });

  it('can be formatted like the other pages', async () => {
    const config = await resolveConfig('docs/operations/benchmarks.md');
    const { format } = await import('prettier');
    const formatted = await format(page, { ...config, parser: 'markdown' });
    assert.ok(await check(formatted, { ...config, parser: 'markdown' }));
  });

  it('is made of results that were stored and read again', () => {
    const stored = JSON.parse(JSON.stringify(results));
    assert.equal(benchmarkPage(stored, [scenario], options), benchmarkPage(results, [scenario], options));
    assert.equal(measured.rounds.length, stored.scenarios.sample.rounds.length);
  });
});

describe('the page about networks', () => {
  const busy = { ...results.scenarios.sample, load: 4.25 };
  const extras = { notes: { sample: 'A note by hand.' }, charts: { sample: 'benchmarks/sample.svg' } };
  const pageOf = (one) => networkPage({ ...results, scenarios: { sample: one } }, [scenario], extras);

  it('has the table, the note, and when each scenario was measured', () => {
    const page = pageOf(busy);
    assert.match(page, /^# Benchmarks over a network$/m);
    assert.match(page, /^## A sample, with a comma$/m);
    assert.match(page, /A note by hand\./);
    assert.match(page, /- `sample`: 2026-01-02, 2 rounds; other work ran on the machine \(load average 4\.3 before/);
  });

  it('says where the machine was quiet', () => {
    assert.match(pageOf({ ...busy, load: 0.1 }), /the machine was quiet \(load average 0\.1/);
  });

  it('is not written while nothing was measured', () => {
    assert.equal(networkPage({ ...results, scenarios: {} }, [scenario], extras), undefined);
  });
});

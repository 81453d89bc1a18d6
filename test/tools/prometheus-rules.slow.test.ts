import { execFileSync, spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { LOCK_METRICS, LockMetric, prometheusNameOf } from '../../lib/extras/telemetry/names.js';
import { root } from '../../scripts/setup.mjs';
import { findTools, PROMTOOL } from '../support/process/toolchain.mjs';

const FOLDER = join(root, 'docs/operations/prometheus');

function promtool(...args: string[]): { status: number | null; output: string } {
  const [program] = findTools([PROMTOOL]) as [string];
  // It needs little memory: to look for what is unused is a fifth of its work.
  const env = { ...process.env, GOGC: '400' };
  const { status, stdout, stderr } = spawnSync(program, args, { encoding: 'utf8', env });
  return { status, output: stdout + stderr };
}

// The rules have tests of their own, in the language of promtool, so that users can run them with the numbers they set.
it.each([
  ['check', 'alerts.yml'],
  ['test', 'alerts.test.yml'],
])('promtool %s rules %s', (command, file) => {
  expect(promtool(command, 'rules', join(FOLDER, file))).toEqual({
    status: 0,
    output: expect.stringContaining('SUCCESS'),
  });
});

it('exactly the metrics in seconds end in _seconds when renamed for a collector, as the page shows', () => {
  const page = readFileSync(join(root, 'docs/operations/metrics.md'), 'utf8');
  const [, script] = /```sh\n(sed [\s\S]*?)```/.exec(page) ?? [];
  const copy = mkdtempSync(join(tmpdir(), 'prometheus-rules-'));
  try {
    cpSync(FOLDER, copy, { recursive: true });
    execFileSync('sh', ['-c', script!], { cwd: copy });
    expect(promtool('check', 'rules', join(copy, 'alerts.yml')).status).toBe(0);
    const text = ['alerts.yml', 'alerts.test.yml', 'dashboard.json']
      .map((file) => readFileSync(join(copy, file), 'utf8'))
      .join('\n');
    for (const metric of Object.values(LockMetric)) {
      const name = prometheusNameOf(metric).replace(/_total$/, '');
      if (LOCK_METRICS[metric].unit !== 's') expect(text).toMatch(new RegExp(`\\b${name}(?!_seconds)`));
      else expect(text).toMatch(new RegExp(`\\b${name}_seconds`));
      if (LOCK_METRICS[metric].unit === 's') expect(text).not.toMatch(new RegExp(`\\b${name}(?!_seconds)`));
    }
  } finally {
    rmSync(copy, { recursive: true });
  }
});

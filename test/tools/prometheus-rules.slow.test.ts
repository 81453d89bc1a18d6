import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { root } from '../../scripts/setup.mjs';
import { findTools, PROMTOOL } from '../support/process/toolchain.mjs';

// The rules have tests of their own, in the language of promtool, so that users can run them with the numbers they set.
it.each([
  ['check', 'alerts.yml'],
  ['test', 'alerts.test.yml'],
])('promtool %s rules %s', (command, file) => {
  const [promtool] = findTools([PROMTOOL]) as [string];
  const folder = join(root, 'docs/operations/prometheus');
  const { status, stdout, stderr } = spawnSync(promtool, [command, 'rules', file], { cwd: folder, encoding: 'utf8' });
  expect(stdout + stderr).toContain('SUCCESS');
  expect(status).toBe(0);
});

// npm run check               format, lint, types, and the tests that need no server: what to run before a commit: a minute and a half
// npm run check -- --static   without the tests
import { spawn } from 'node:child_process';
import { inForeground, runCommand } from './command.mjs';
import { jest, LONG, SLOW } from './jest.mjs';
import { root, setUpPackages } from './setup.mjs';
import { slowerThanKept } from './timings/kept.mjs';

/** Each keeps one core busy. */
const STATIC = ['format:check', 'lint', 'typecheck'];
const UNIT = jest('--selectProjects', 'unit', '--testPathIgnorePatterns', LONG, SLOW, '--maxWorkers=2');

await runCommand(async () => {
  await setUpPackages();
  const from = performance.now();
  const codes = await Promise.all(STATIC.map(npmRun));
  if (process.argv.includes('--static')) return Math.max(...codes);
  codes.push(await inForeground(process.execPath, UNIT, { cwd: root, env: { ...process.env, TEST_SPEED: 'check' } }));
  console.log(slowerThanKept('npm run check', (performance.now() - from) / 1_000) ?? '');
  return Math.max(...codes);
});

/** What it prints is shown when it has ended, so that those which run beside each other do not speak at once. */
async function npmRun(script) {
  const from = performance.now();
  const child = spawn('npm', ['run', '--silent', script], { cwd: root, stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (output += chunk));
  const code = await new Promise((resolve, reject) =>
    child.on('error', reject).on('close', (exit) => resolve(exit ?? 1)),
  );
  const seconds = Math.round((performance.now() - from) / 1_000);
  console.log(`${output}${script}: ${code === 0 ? 'passed' : 'FAILED'} (${seconds} s)`);
  return code;
}

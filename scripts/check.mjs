// npm run check               format, lint, types, and the tests that need no server: what to run before a commit: half a minute
// npm run check -- --static   without the tests
import { Stages } from './ci/stages.mjs';
import { runCommand } from './command.mjs';
import { jest, LONG, SLOW } from './jest.mjs';
import { setUpPackages } from './setup.mjs';
import { slowerThanKept } from './timings/kept.mjs';

/** Each keeps one core busy. */
const STATIC = ['format:check', 'lint', 'typecheck'];
/** Three, because tests also wait. */
const UNIT = jest('--selectProjects', 'unit', '--testPathIgnorePatterns', LONG, SLOW, '--maxWorkers=3');

await runCommand(async () => {
  await setUpPackages();
  const from = performance.now();
  const stages = new Stages();
  // The compiler, and the rules that need types, are programs of Go: by default, a quarter of their time goes to garbage. They need 2 GB.
  const env = { GOGC: 'off', GOMEMLIMIT: '3GiB', ...process.env };
  await Promise.all(STATIC.map((script) => stages.beside(script, 'npm', ['run', '--silent', script], { env })));
  if (!process.argv.includes('--static')) {
    await stages.front('tests', process.execPath, UNIT, { env: { ...process.env, TEST_SPEED: 'check' } });
    console.log(slowerThanKept('npm run check', (performance.now() - from) / 1_000) ?? '');
  }
  return stages.failed.length === 0 ? 0 : 1;
});

// npm test                 every test, then the package as its users get it
// npm test -- <jest args>  a part of them: `npm test -- unit`, `npm test -- -t watchdog`
import { join } from 'node:path';
import { inForeground, runCommand } from './command.mjs';
import { root, setUp } from './setup.mjs';
import { environmentOf } from './setup/find-redis.mjs';

const JEST = [
  '--experimental-vm-modules', // Nest 12 is ESM only
  '--disable-warning=ExperimentalWarning',
  join(root, 'node_modules/jest/bin/jest.js'),
];
/** Most suites wait more than they work. Those that torment many processes keep two cores busy, and go on by themselves. */
const PARTS = {
  tests: ['--ignoreProjects', 'chaos', '--maxWorkers=3'],
  chaos: ['--selectProjects', 'chaos', '--maxWorkers=2'],
};

await runCommand(async () => {
  const selection = process.argv.slice(2);
  const redis = await setUp({ ownServer: true });
  const env = {
    ...process.env,
    ...environmentOf(redis),
  };

  const run = (...args) => inForeground(process.execPath, args, { cwd: root, env });
  const results = {};
  if (selection.length > 0) results.jest = await run(...JEST, '--maxWorkers=2', ...selection);
  else {
    for (const [name, args] of Object.entries(PARTS)) results[name] = await run(...JEST, ...args);
    results.package = await run(join(root, 'test/package/run.mjs'));
  }

  for (const [name, code] of Object.entries(results)) console.log(`${name}: ${code === 0 ? 'passed' : 'FAILED'}`);
  return Math.max(...Object.values(results));
});

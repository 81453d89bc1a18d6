// npm test                 what to run after a change: two minutes
// npm run test:all         every test in its short form, then the package as its users get it: a quarter of an hour and more
// npm run test:long        four times as many simulations, the long form of chaos, every consumer of the package: an hour
// npm test -- <jest args>  a part of them: `npm test -- --selectProjects unit`, `npm test -- -t watchdog`
import { randomInt } from 'node:crypto';
import { inForeground, runCommand } from './command.mjs';
import { jest } from './jest.mjs';
import { root, setUp } from './setup.mjs';
import { environmentOf } from './setup/find-redis.mjs';
import { PARTS, seedsOf } from './test-parts.mjs';
import { slowerThanKept } from './timings/kept.mjs';

const TYPED = { test: 'npm test', all: 'npm run test:all', long: 'npm run test:long' };

await runCommand(async () => {
  const [name, ...selection] = process.argv.slice(2);
  const parts = selection.length > 0 ? { jest: jest('--maxWorkers=2', ...selection) } : PARTS[name]();
  const redis = await setUp({ ownServer: true });
  const env = { ...process.env, TEST_SPEED: name, ...seedsOf(name, randomInt(2 ** 31)), ...environmentOf(redis) };

  const results = {};
  for (const [part, args] of Object.entries(parts)) {
    const from = performance.now();
    const code = await inForeground(process.execPath, args, { cwd: root, env });
    results[part] = { code, seconds: Math.round((performance.now() - from) / 1_000) };
  }
  for (const [part, { code, seconds }] of Object.entries(results)) {
    console.log(`${part}: ${code === 0 ? 'passed' : 'FAILED'} (${seconds} s)`);
  }
  const ran = Object.values(results);
  const seconds = ran.reduce((sum, part) => sum + part.seconds, 0);
  if (selection.length === 0) console.log(slowerThanKept(TYPED[name], seconds) ?? '');
  return Math.max(...ran.map(({ code }) => code));
});

// npm test                 what to run after a change: a minute
// npm run test:all         every test in its short form, and the package as its users get it, beside them: ten minutes
// npm run test:long        four times as many simulations, larger amounts on servers, the long form of chaos, every consumer: an hour
// npm test -- <jest args>  a part of them: `npm test -- --selectProjects unit`, `npm test -- -t watchdog`
import { randomInt } from 'node:crypto';
import { Stages } from './ci/stages.mjs';
import { runCommand } from './command.mjs';
import { jest } from './jest.mjs';
import { setUp } from './setup.mjs';
import { environmentOf } from './setup/find-redis.mjs';
import { PARTS, runParts, seedsOf } from './test-parts.mjs';
import { slowerThanKept } from './timings/kept.mjs';

const TYPED = { test: 'npm test', all: 'npm run test:all', long: 'npm run test:long' };

await runCommand(async () => {
  const [name, ...selection] = process.argv.slice(2);
  const parts = selection.length > 0 ? { front: { jest: jest('--maxWorkers=2', ...selection) } } : PARTS[name]();
  const redis = await setUp({ ownServer: true });
  const env = { ...process.env, TEST_SPEED: name, ...seedsOf(name, randomInt(2 ** 31)), ...environmentOf(redis) };

  const stages = new Stages();
  const from = performance.now();
  await runParts(stages, parts, { env });
  console.log(`\n${stages.summary()}`);
  if (selection.length === 0) console.log(slowerThanKept(TYPED[name], (performance.now() - from) / 1_000) ?? '');
  return stages.failed.length === 0 ? 0 : 1;
});

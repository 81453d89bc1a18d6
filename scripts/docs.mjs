// npm run docs, npm run docs:dev: the site. See tools/docs/build.mjs for what it takes.
import { join } from 'node:path';
import { inForeground, runCommand } from './command.mjs';
import { root, setUpPackages } from './setup.mjs';
import { ensurePackages } from './setup/packages.mjs';
import { say } from './setup/step.mjs';

const folder = join(root, 'tools/docs');

await runCommand(async () => {
  await setUpPackages();
  say('What builds the site');
  await ensurePackages(folder, [root]);
  return inForeground(process.execPath, [join(folder, 'build.mjs'), ...process.argv.slice(2)], { cwd: root });
});

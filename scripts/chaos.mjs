// npm run chaos: everything that can go wrong, and checkers that look. See tools/chaos/options.ts for what it takes.
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { inForeground, runCommand } from './command.mjs';
import { root, setUp } from './setup.mjs';
import { environmentOf } from './setup/find-redis.mjs';

await runCommand(async () => {
  const redis = await setUp({ ownServer: true });
  const env = {
    ...process.env,
    ...environmentOf(redis),
  };
  const loader = pathToFileURL(join(root, 'test/support/process/typescript-loader.mjs')).href;
  const args = ['--import', loader, join(root, 'tools/chaos/chaos-main.ts'), ...process.argv.slice(2)];
  return inForeground(process.execPath, args, { cwd: root, env });
});

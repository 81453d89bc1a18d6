// npm run bench: how fast locks are, beside others, on a private Redis. See tools/bench/options.mjs for what it takes.
import { join } from 'node:path';
import { inForeground, runCommand } from './command.mjs';
import { startRedisServer } from './redis-server.mjs';
import { root, setUp } from './setup.mjs';
import { ensurePackages } from './setup/packages.mjs';
import { say } from './setup/step.mjs';

const folder = join(root, 'tools/bench');

await runCommand(async () => {
  const redis = await setUp({ ownServer: true });
  say('What is compared with');
  await ensurePackages(folder, [root]);
  // Nothing on disk: a save in the middle of a run would be part of a result.
  const server = await startRedisServer({ source: redis, args: ['--save', '', '--appendonly', 'no'] });
  try {
    const env = { ...process.env, REDIS_URL: server.url, NODE_ENV: 'production' };
    return await inForeground(process.execPath, [join(folder, 'run.mjs'), ...process.argv.slice(2)], { env });
  } finally {
    await server.stop();
  }
});

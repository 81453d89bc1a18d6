// npm run demo: the sample app as several processes on a real Redis.
import { join } from 'node:path';
import { inForeground, runCommand } from './command.mjs';
import { startRedisServer } from './redis-server.mjs';
import { root, setUp } from './setup.mjs';
import { runStep } from './setup/step.mjs';

await runCommand(async () => {
  const redis = await setUp({ ownServer: false });
  const nest = join(root, 'node_modules/@nestjs/cli/bin/nest.js');
  await runStep('Building the sample app', process.execPath, [nest, 'build', 'sample-app'], { cwd: root });

  const server = redis.kind === 'url' ? undefined : await startRedisServer({ source: redis });
  try {
    const env = { ...process.env, REDIS_URL: redis.url ?? server.url };
    return await inForeground(process.execPath, [join(root, 'sample-app/demo/run.mjs'), ...process.argv.slice(2)], {
      env,
    });
  } finally {
    await server?.stop();
  }
});

// Once before the tests of this folder, which start the built shop as a user would.
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ensureBuilt } from '../../scripts/setup/dist.mjs';
import { runStep } from '../../scripts/setup/step.mjs';

const root = fileURLToPath(new URL('../..', import.meta.url));

export default async function buildSampleApp() {
  await ensureBuilt(root);
  const nest = join(root, 'node_modules/@nestjs/cli/bin/nest.js');
  const env = { ...process.env, NODE_OPTIONS: '' };
  await runStep('Building the sample app', process.execPath, [nest, 'build', 'sample-app'], { cwd: root, env });
}

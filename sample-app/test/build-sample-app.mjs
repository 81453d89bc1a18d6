// Once before the tests of this folder, which start the built shop as a user would.
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ensureBuilt } from '../../scripts/setup/dist.mjs';
import { runStep } from '../../scripts/setup/step.mjs';

const root = fileURLToPath(new URL('../..', import.meta.url));
const env = { ...process.env, NODE_OPTIONS: '' };

export default async function buildSampleApp() {
  await ensureBuilt(root);
  if (process.env.TEST_SPEED === 'long')
    return build([join(root, 'node_modules/@nestjs/cli/bin/nest.js'), 'build', 'sample-app']);
  const output = join(root, 'dist/sample-app');
  rmSync(output, { recursive: true, force: true });
  return build(compilerArgs(output));
}

/**
 * The arguments of Node that produce the same files as `nest build`, in a tenth of the time: tutorial.test.ts compares
 * them in the long form.
 *
 * @param {string} output
 */
export function compilerArgs(output) {
  const compiler = join(root, 'node_modules/typescript-native/bin/tsc');
  return [compiler, '--project', join(root, 'sample-app/tsconfig.app.json'), '--outDir', output];
}

/** @param {string[]} args */
const build = (args) => runStep('Building the sample app', process.execPath, args, { cwd: root, env });

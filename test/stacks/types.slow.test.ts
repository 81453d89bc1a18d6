import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { root } from '../../scripts/setup.mjs';

it('the stacks compile, as strictly as the library', async () => {
  const compiler = join(root, 'node_modules/typescript-native/bin/tsc');
  // In one thread: several check much of the packages each.
  const args = [compiler, '--noEmit', '--singleThreaded', '--project', import.meta.dirname];
  const { stdout } = await promisify(execFile)(process.execPath, args, {
    // The compiler keeps nearly all that it makes: to look for what it does not need is a quarter of its work.
    env: { ...process.env, NODE_OPTIONS: '', GOGC: 'off' },
  }).catch((error: { stdout: string }) => error);
  expect(stdout).toBe('');
}, 240_000);

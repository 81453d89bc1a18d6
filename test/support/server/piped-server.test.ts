import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { isRunning } from '../../../scripts/setup/claimed-file.mjs';
import { eventually } from '../expect/eventually.js';
import { unbundled } from '../process/run-typescript.js';

it('a server ends and its folder is removed when the process of the test is killed', async () => {
  const main = new URL('piped-server-main.ts', import.meta.url);
  const child = spawn(process.execPath, unbundled(main), {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, NODE_OPTIONS: '' },
  });
  const [line] = (await once(child.stdout, 'data')) as [Buffer];
  const { pid, folder } = JSON.parse(line.toString()) as { pid: number; folder: string };
  expect([isRunning(pid), existsSync(folder)]).toEqual([true, true]);

  child.kill('SIGKILL');
  await eventually(() => expect([isRunning(pid), existsSync(folder)]).toEqual([false, false]));
});

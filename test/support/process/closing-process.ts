import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import type { RedisLockModuleOptions } from '../../../lib/nest/module/module-options.js';
import { programOf } from './program.js';

const main = programOf(new URL('closing-process-main.ts', import.meta.url));

/**
 * Starts an application in a process of its own, locks, and closes it.
 *
 * @param hangingPid a server that is stopped before it closes
 * @returns the sockets and timers that `app.close()` left open, and how long that took
 */
export async function closeInProcess(
  options: RedisLockModuleOptions,
  hangingPid?: number,
): Promise<{ left: string[]; closedInMs: number }> {
  const args = [main, JSON.stringify(options), ...(hangingPid ? [String(hangingPid)] : [])];
  const { stdout } = await promisify(execFile)(process.execPath, args, {
    env: { ...process.env, NODE_OPTIONS: '' },
    timeout: 30_000,
  });
  return JSON.parse(stdout) as { left: string[]; closedInMs: number };
}

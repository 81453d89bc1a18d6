import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { programOf } from './program.js';

const main = programOf(new URL('crowd-main.ts', import.meta.url));

export interface CrowdOptions {
  readonly processes: number;
  /** Lock services in each of them. */
  readonly inEach: number;
  /** Of each lock service, which also has one call that waits. */
  readonly leases: number;
}

/** Starts many instances, spread over some processes, and ends them after each test. */
export function useCrowds(url: () => string): (options: CrowdOptions) => Promise<void> {
  const running: ChildProcess[] = [];
  afterEach(() => running.splice(0).forEach((child) => child.kill('SIGKILL')));
  return async ({ processes, inEach, leases }) => {
    const ready = Array.from({ length: processes }, async (_, index) => {
      const child = fork(main, [url(), `crowd-${index}`, String(inEach), String(leases)], {
        execArgv: [],
        env: { ...process.env, NODE_OPTIONS: '' },
      });
      running.push(child);
      await once(child, 'message');
    });
    await Promise.all(ready);
  };
}

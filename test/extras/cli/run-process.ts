import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { programOf } from '../../support/process/program.js';
import type { CliResult } from './run-cli.js';

/** The command line as one file, made of the sources. */
export const BIN = programOf(new URL('../../../lib/extras/cli/bin.ts', import.meta.url));

/** The command line as a process of its own, out of the sources. */
export interface CliChild {
  readonly child: ChildProcess;
  readonly ended: Promise<CliResult & { readonly signal: NodeJS.Signals | null }>;
}

export function startCli(argv: readonly string[], env: Readonly<Record<string, string>>): CliChild {
  const { PATH = '', HOME = '' } = process.env;
  const child = spawn(process.execPath, [BIN, ...argv], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { PATH, HOME, ...env },
  });
  const ended = Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')]).then(
    ([stdout, stderr, [code, signal]]) => ({
      code: code as number,
      signal: signal as NodeJS.Signals | null,
      stdout,
      stderr,
    }),
  );
  return { child, ended };
}

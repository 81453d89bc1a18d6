import { PassThrough } from 'node:stream';
import { text } from 'node:stream/consumers';
import { runCli } from '../../../lib/extras/cli/main.js';
import type { CliProcess } from '../../../lib/extras/cli/frame/terminal.js';

export interface CliResult {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

export interface CliSurroundings {
  readonly env?: Readonly<Record<string, string>>;
  /** Input typed at a terminal; `undefined` without one. */
  readonly typed?: string;
  /** `true` if stdout is a terminal. */
  readonly isTerminal?: boolean;
  readonly load?: CliProcess['load'];
}

/** Runs a command line in this process. */
export async function runHere(argv: readonly string[], surroundings: CliSurroundings = {}): Promise<CliResult> {
  const { env = {}, typed, isTerminal = false, load = () => Promise.reject(new Error('no module')) } = surroundings;
  const isInteractive = typed !== undefined;
  const stdin = Object.assign(new PassThrough(), { isTTY: isInteractive });
  if (isInteractive) stdin.write(`${typed}\n`);
  else stdin.end();
  const stdout = Object.assign(new PassThrough(), { isTTY: isTerminal });
  const stderr = Object.assign(new PassThrough(), { isTTY: isInteractive });
  const texts = Promise.all([text(stdout), text(stderr)]);
  const code = await runCli({ argv, env, stdin, stdout, stderr, version: '1.2.3', load });
  for (const stream of [stdin, stdout, stderr]) stream.end();
  const [out, err] = await texts;
  return { code, stdout: out, stderr: err };
}

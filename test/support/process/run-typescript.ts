import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { programOf } from './program.js';

/** The end of a process, and its output. */
export interface Ended {
  /** `null`: it was killed, because it did not end by itself. */
  readonly code: number | null;
  /** From its last output to its end. */
  readonly endedAfterMs: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** The time that a process may live after its last output. */
const END_WITHIN_MS = 5_000;

/**
 * Runs a TypeScript file in a process of its own until that ends by itself. It uses the package by its name: from `dist/`.
 *
 * @param nodeOptions such as `--expose-gc`
 */
export function runTypescript(
  file: URL,
  args: readonly (string | number)[] = [],
  nodeOptions: readonly string[] = [],
): Promise<Ended> {
  return run([...nodeOptions, programOf(file), ...args.map(String)]);
}

/** Like {@link runTypescript}, but each package stays a file of its own: what patches packages needs that. */
export function runUnbundled(file: URL, args: readonly (string | number)[] = []): Promise<Ended> {
  return run([...unbundled(file), ...args.map(String)]);
}

/** The arguments of `node` that start a TypeScript file without making one file of the program. */
export function unbundled(file: URL): string[] {
  return ['--import', new URL('typescript-loader.mjs', import.meta.url).href, fileURLToPath(file)];
}

async function run(command: readonly string[]): Promise<Ended> {
  const child = spawn(process.execPath, command, {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, NODE_OPTIONS: '' },
  });
  let saidAt = NaN;
  let timer: NodeJS.Timeout | undefined;
  child.stdout.on('data', () => {
    saidAt = performance.now();
    clearTimeout(timer);
    timer = setTimeout(() => child.kill('SIGKILL'), END_WITHIN_MS);
  });
  const exited = once(child, 'exit').then(() => performance.now());
  const [stdout, stderr, endedAt] = await Promise.all([text(child.stdout), text(child.stderr), exited]);
  clearTimeout(timer);
  return { code: child.exitCode, endedAfterMs: endedAt - saidAt, stdout, stderr };
}

// Runs a program in the foreground, and ends with its exit code. Shared by the commands (test.mjs, demo.mjs).
import { spawn } from 'node:child_process';
import { SetupError } from './setup/setup-error.mjs';

/** Runs the body of a command; sets the exit code, and prints a SetupError without its stack. */
export async function runCommand(body) {
  try {
    process.exitCode = await body();
  } catch (error) {
    console.error(error instanceof SetupError ? `\n${error.message}` : error);
    process.exitCode = 1;
  }
}

/** @returns {Promise<number>} the exit code; signals that reach only us are passed on */
export async function inForeground(command, args, { cwd, env = process.env } = {}) {
  const child = spawn(command, args, { cwd, env, stdio: 'inherit' });
  const passOn = (signal) => child.kill(signal);
  // In a terminal, Ctrl-C reaches the child by itself; a second one would cut its clean-up short.
  const onInterrupt = process.stdin.isTTY ? () => undefined : passOn;
  process.on('SIGINT', onInterrupt).on('SIGTERM', passOn).on('SIGHUP', passOn);
  try {
    return await new Promise((resolve, reject) => {
      child.on('error', reject);
      child.on('close', (code) => resolve(code ?? 1));
    });
  } finally {
    process.off('SIGINT', onInterrupt).off('SIGTERM', passOn).off('SIGHUP', passOn);
  }
}

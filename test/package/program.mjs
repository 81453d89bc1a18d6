import { spawn } from 'node:child_process';

/** Longer than any program takes on a busy machine: it hangs. */
export const HANGS_MS = 300_000;

const groups = new Set();
process.once('exit', () => groups.forEach((pid) => signalGroup(pid, 'SIGKILL')));

/** Starts a program in a process group of its own: npm and test runners have children, which outlive them otherwise. */
export function startGroup(command, args, { cwd, env = {} }) {
  const child = spawn(command, args, {
    cwd,
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  });
  if (child.pid !== undefined) {
    groups.add(child.pid);
    // At "close", no process of the group has the pipes any more.
    child.on('close', () => groups.delete(child.pid));
  }
  return child;
}

export function signalGroup(pid, signal) {
  try {
    process.kill(-pid, signal);
  } catch (error) {
    if (error.code !== 'ESRCH') throw error;
  }
}

/** @returns {Promise<{ code: number, output: string }>} never rejects: what takes too long is ended, and has failed */
export function runProgram(command, args, options) {
  return new Promise((resolve) => {
    let output = '';
    let isLate = false;
    const child = startGroup(command, args, options);
    const timer = setTimeout(() => {
      isLate = true;
      signalGroup(child.pid, 'SIGKILL');
    }, HANGS_MS);
    const end = (code, note = '') => {
      clearTimeout(timer);
      resolve({ code, output: output + note });
    };
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (output += chunk));
    child.on('error', (error) => end(1, error.message));
    child.on('close', (code) => end(code ?? 1, isLate ? `\nended after ${HANGS_MS / 1000} s` : ''));
  });
}

/** Runs a program to its end. @returns {Promise<string>} what it printed. Rejects with that if it fails */
export async function succeed(command, args, options) {
  const { code, output } = await runProgram(command, args, options);
  if (code !== 0) throw new Error(`${[command, ...args].join(' ')} failed:\n${output}`);
  return output;
}

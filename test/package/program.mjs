import { spawn } from 'node:child_process';

/** @returns {Promise<{ code: number, output: string }>} never rejects: what takes too long is ended, and has failed */
export function runProgram(command, args, { cwd, env = {}, timeoutMs = 300_000 }) {
  return new Promise((resolve) => {
    let output = '';
    const child = spawn(command, args, {
      cwd,
      env: { ...process.env, ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
      timeout: timeoutMs,
    });
    child.stdout.on('data', (chunk) => (output += chunk));
    child.stderr.on('data', (chunk) => (output += chunk));
    child.on('error', (error) => resolve({ code: 1, output: error.message }));
    child.on('close', (code, signal) => {
      resolve({
        code: code ?? 1,
        output: signal ? `${output}\nended by ${signal} after ${timeoutMs / 1000} s` : output,
      });
    });
  });
}

/** Runs a program to its end. @returns {Promise<string>} what it printed. Rejects with that if it fails */
export async function succeed(command, args, options) {
  const { code, output } = await runProgram(command, args, options);
  if (code !== 0) throw new Error(`${[command, ...args].join(' ')} failed:\n${output}`);
  return output;
}

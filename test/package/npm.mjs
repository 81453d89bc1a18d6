import { spawn } from 'node:child_process';

/** @returns {Promise<{ code: number, output: string }>} never rejects: what takes too long is ended, and has failed */
export function npm(args, { cwd, env = {}, timeoutMs = 300_000 }) {
  return new Promise((resolve) => {
    let output = '';
    const child = spawn('npm', args, {
      cwd,
      env: { ...process.env, npm_config_update_notifier: 'false', ...env },
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

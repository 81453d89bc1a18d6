// A redis-server (or valkey-server) as a child process.
import { spawn } from 'node:child_process';
import { join } from 'node:path';

/** @returns {{ child: import('node:child_process').ChildProcess, signal(name: string): void }} */
export function launchProcess({ path, port, configFile, args, env }, { dataFolder, log }) {
  const base = ['--port', `${port}`, '--bind', '127.0.0.1', '--dir', dataFolder, '--save', '', '--appendonly', 'no'];
  const file = configFile === undefined ? [] : [join(dataFolder, configFile)];
  const child = spawn(path, [...file, ...base, ...args], {
    cwd: dataFolder,
    env: { ...process.env, ...env },
    stdio: ['ignore', log, log],
  });
  return { child, signal: (name) => child.kill(name) };
}

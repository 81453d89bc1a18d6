// The same as a container, for machines that have Docker and no redis-server.
import { execFile, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { promisify } from 'node:util';

const run = promisify(execFile);

// `docker kill` refuses a paused container, `docker unpause` a running one: that refusal is ignored.
const COMMANDS = {
  SIGSTOP: [['pause']],
  SIGCONT: [['unpause']],
  SIGTERM: [['kill', '--signal', 'SIGTERM']],
  SIGKILL: [['unpause'], ['kill']],
};

/** @returns {{ child: import('node:child_process').ChildProcess, signal(name: string): Promise<void> }} */
export function launchContainer({ image, port, configFile, args, env }, { dataFolder, log }) {
  const name = `nestjs-redis-lock-${randomUUID()}`;
  const container = ['--rm', '--name', name, '-p', `127.0.0.1:${port}:6379`, '-v', `${dataFolder}:/data`];
  // As ourselves: else the files in dataFolder belong to root and cannot be removed.
  const user = process.getuid ? ['--user', `${process.getuid()}:${process.getgid()}`] : [];
  const variables = Object.entries(env).flatMap(([key, value]) => ['-e', `${key}=${value}`]);
  // Unprotected, because the connections arrive from Docker's bridge; the port is published on the loopback only.
  const file = configFile === undefined ? [] : [`/data/${configFile}`];
  const server = [...file, '--dir', '/data', '--protected-mode', 'no', '--save', '', '--appendonly', 'no', ...args];
  const child = spawn('docker', ['run', ...container, ...user, ...variables, image, ...server], {
    stdio: ['ignore', log, log],
  });
  const signal = async (signalName) => {
    for (const command of COMMANDS[signalName]) await run('docker', [...command, name]).catch(() => undefined);
  };
  return { child, signal };
}

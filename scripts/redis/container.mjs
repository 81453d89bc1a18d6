// The same as a container, for machines that have Docker and no redis-server.
import { execFile } from 'node:child_process';
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

/** See process.mjs. `$server` is Docker's client. */
export function inContainer({ image, port, configFile, args, env }, dataFolder) {
  const name = `nestjs-redis-lock-${randomUUID()}`;
  const container = ['--rm', '--name', name, '-p', `127.0.0.1:${port}:6379`, '-v', `${dataFolder}:/data`];
  // As ourselves: else the files in dataFolder belong to root and cannot be removed.
  const user = process.getuid ? ['--user', `${process.getuid()}:${process.getgid()}`] : [];
  const variables = Object.entries(env).flatMap(([key, value]) => ['-e', `${key}=${value}`]);
  // Unprotected, because the connections arrive from Docker's bridge; the port is published on the loopback only.
  const file = configFile === undefined ? [] : [`/data/${configFile}`];
  const server = [...file, '--dir', '/data', '--protected-mode', 'no', '--save', '', '--appendonly', 'no', ...args];
  return {
    command: ['docker', 'run', ...container, ...user, ...variables, image, ...server],
    env: process.env,
    // And again: one that is just being created cannot be killed yet.
    kill: `while kill -0 "$server"; do docker unpause ${name}; docker kill ${name}; sleep 0.5; done`,
    signal: () => async (signalName) => {
      for (const command of COMMANDS[signalName])
        await run('docker', [...command, name], { env: process.env }).catch(() => undefined);
    },
  };
}

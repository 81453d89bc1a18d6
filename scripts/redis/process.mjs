// A redis-server (or valkey-server) as a process.
import { join } from 'node:path';

/** Returns the commands that start it, kill it (`$server` is its process id), and send signals to it. */
export function asProcess({ path, port, configFile, args, env }, dataFolder) {
  const base = ['--port', `${port}`, '--bind', '127.0.0.1', '--dir', dataFolder, '--save', '', '--appendonly', 'no'];
  const file = configFile === undefined ? [] : [join(dataFolder, configFile)];
  return {
    command: [path, ...file, ...base, ...args],
    env: { ...process.env, ...env },
    kill: 'kill -KILL "$server"',
    signal: (pid) => (name) => {
      try {
        process.kill(pid, name);
      } catch (error) {
        if (error.code !== 'ESRCH') throw error; // it has just ended
      }
    },
  };
}

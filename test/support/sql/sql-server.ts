import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chownSync, closeSync, mkdtempSync, openSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { findFreePort } from '../../../scripts/redis/free-port.mjs';
import { findTools, MARIADB, POSTGRES } from '../process/toolchain.mjs';

export interface SqlServer {
  readonly url: string;
  stop(): Promise<void>;
}

/** How one kind of server is made ready, in a folder of its own. */
interface Kind {
  readonly program: string;
  readonly url: (port: number) => string;
  /** Whose files and process these are. undefined: this process's user. */
  readonly user?: { readonly uid: number; readonly gid: number };
  readonly prepare: (data: string) => readonly [program: string, ...args: string[]];
  readonly args: (data: string, port: number) => readonly string[];
  readonly ready: RegExp;
}

/** A private PostgreSQL: on the loopback, in a temporary folder, gone when this process is. */
export function startPostgres(): Promise<SqlServer> {
  const [program] = findTools([POSTGRES]) as [string];
  return start({
    program,
    url: (port) => `postgres://postgres@127.0.0.1:${port}/postgres`,
    user: process.getuid?.() === 0 ? userNamed('postgres') : undefined, // it refuses to run as root
    prepare: (data) => [besides(program, 'initdb'), '-D', data, '-U', 'postgres', '-A', 'trust', '--no-sync'],
    args: (data, port) => [
      '-D',
      data,
      '-p',
      `${port}`,
      '-c',
      'listen_addresses=127.0.0.1',
      '-c',
      'unix_socket_directories=',
      '-c',
      'fsync=off',
    ],
    ready: /database system is ready to accept connections/,
  });
}

/** A private MariaDB, in the same way. */
export function startMariadb(): Promise<SqlServer> {
  const [program] = findTools([MARIADB]) as [string];
  const asRoot = process.getuid?.() === 0 ? ['--user=root'] : [];
  return start({
    program,
    url: (port) => `mysql://root@127.0.0.1:${port}/mysql`,
    prepare: (data) => [
      'mariadb-install-db',
      '--no-defaults',
      `--datadir=${data}`,
      '--auth-root-authentication-method=normal',
      '--skip-test-db',
      ...asRoot,
    ],
    args: (data, port) => [
      '--no-defaults',
      `--datadir=${data}`,
      `--port=${port}`,
      '--bind-address=127.0.0.1',
      ...asRoot,
      `--socket=${data}/socket`,
      `--pid-file=${data}/pid`,
    ],
    ready: /ready for connections/,
  });
}

const READY_MS = 30_000;
const PORT_ATTEMPTS = 5;

/**
 * Its standard input is a pipe to the process of the test. The pipe closes when that process ends, whatever ended it, and then the
 * server is killed and its folder removed.
 */
const UNTIL_THE_PIPE_CLOSES = `
  folder="$1"; shift
  "$@" & server=$!
  cat > /dev/null
  kill -QUIT $server; for i in 1 2 3 4 5 6 7 8 9 10; do kill -0 $server || break; sleep 0.2; done
  kill -KILL $server; wait $server; rm -rf "$folder"`;

async function start(kind: Kind): Promise<SqlServer> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await startOn(await findFreePort(), kind);
    } catch (error) {
      // Another process took the port between our look at it and the start.
      if (attempt === PORT_ATTEMPTS || !/already in use/i.test((error as Error).message)) throw error;
    }
  }
}

async function startOn(port: number, { program, url, user, prepare, args, ready }: Kind): Promise<SqlServer> {
  const folder = mkdtempSync(join(tmpdir(), 'sql-server-'));
  if (user) chownSync(folder, user.uid, user.gid);
  const data = join(folder, 'data');
  const [first, ...rest] = prepare(data);
  const prepared = spawnSync(first, rest, { encoding: 'utf8', cwd: folder, ...user });
  if (prepared.status !== 0) throw new Error(`${first} failed: ${prepared.error ?? prepared.stdout + prepared.stderr}`);

  const logFile = join(folder, 'log');
  const log = openSync(logFile, 'w');
  const child = spawn('sh', ['-c', UNTIL_THE_PIPE_CLOSES, 'sh', folder, program, ...args(data, port)], {
    stdio: ['pipe', log, log],
    cwd: folder,
    detached: true, // Ctrl-C in a terminal goes to the whole group
    ...user,
  });
  closeSync(log);
  const exited = once(child, 'exit');
  const stop = async () => {
    child.stdin!.end();
    await exited;
  };
  const isReady = () => ready.test(readFileSync(logFile, 'utf8'));
  for (const deadline = Date.now() + READY_MS; !isReady(); await sleep(20)) {
    const text = readFileSync(logFile, 'utf8');
    if (Date.now() < deadline && !/already in use|shutting down|Aborting/i.test(text)) continue;
    await stop();
    throw new Error(`${program} on port ${port} is not ready. Its log:\n${text}`);
  }
  return { url: url(port), stop };
}

function userNamed(name: string): { uid: number; gid: number } {
  const idOf = (flag: string) => Number(spawnSync('id', [flag, name], { encoding: 'utf8' }).stdout);
  return { uid: idOf('-u'), gid: idOf('-g') };
}

function besides(program: string, other: string): string {
  return program.includes('/') ? join(dirname(program), other) : other;
}

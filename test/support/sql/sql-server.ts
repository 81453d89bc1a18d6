import { spawnSync } from 'node:child_process';
import { chownSync, mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { findFreePort } from '../../../scripts/redis/free-port.mjs';
import { findTools, MARIADB, POSTGRES } from '../process/toolchain.mjs';
import { PipedServer } from '../server/piped-server.js';

export interface SqlServer {
  readonly url: string;
  stop(): Promise<void>;
}

/** The setup of one kind of server, in a folder of its own. */
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

  const server = new PipedServer({ command: [program, ...args(data, port)], folder, signal: 'QUIT', user });
  for (const deadline = Date.now() + READY_MS; !ready.test(server.log); await sleep(20)) {
    const text = server.log;
    if (Date.now() < deadline && !/already in use|shutting down|Aborting/i.test(text)) continue;
    await server.stop();
    throw new Error(`${program} on port ${port} is not ready. Its log:\n${text}`);
  }
  return { url: url(port), stop: () => server.stop() };
}

function userNamed(name: string): { uid: number; gid: number } {
  const idOf = (flag: string) => Number(spawnSync('id', [flag, name], { encoding: 'utf8' }).stdout);
  return { uid: idOf('-u'), gid: idOf('-g') };
}

function besides(program: string, other: string): string {
  return program.includes('/') ? join(dirname(program), other) : other;
}

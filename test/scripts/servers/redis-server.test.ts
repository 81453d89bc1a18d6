import { fork, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { findFreePort, reservePort } from '../../../scripts/redis/free-port.mjs';
import { isRunning } from '../../../scripts/setup/claimed-file.mjs';
import { eventually } from '../../support/expect/eventually.js';
import { askRedis } from './ask-redis.js';
import { startRedis, useRedis, type RedisServer } from '../../support/redis/redis-server.js';

const owner = fileURLToPath(new URL('owner.mjs', import.meta.url));

describe('a private Redis server', () => {
  const redis = useRedis();

  it('listens on the loopback only and keeps nothing on disk', async () => {
    expect(await askRedis(redis().url, 'CONFIG', 'GET', 'bind')).toEqual(['bind', '127.0.0.1']);
    expect(await askRedis(redis().url, 'CONFIG', 'GET', 'save')).toEqual(['save', '']);
  });

  it('answers nothing while paused, and again once resumed', async () => {
    await redis().pause();
    await expect(askRedis(redis().url, 'PING')).rejects.toThrow('timed out');
    await redis().resume();
    expect(await askRedis(redis().url, 'PING')).toBe('PONG');
  });

  it('comes back empty on the same port after it was killed', async () => {
    const before = redis().url;
    await askRedis(before, 'SET', 'key', 'value');
    await redis().kill();
    await expect(askRedis(before, 'PING')).rejects.toThrow('Connection is closed');
    await redis().restart();
    expect(redis().url).toBe(before);
    expect(await askRedis(before, 'GET', 'key')).toBeNull();
  });

  it('keeps what it wrote to disk over a restart, when asked', async () => {
    await using server = await startRedis({ args: ['--appendonly', 'yes'] });
    await askRedis(server.url, 'SET', 'key', 'value');
    await server.restart({ keepData: true });
    expect(await askRedis(server.url, 'GET', 'key')).toBe('value');
    await server.restart();
    expect(await askRedis(server.url, 'GET', 'key')).toBeNull();
  });

  it('shows the end of the log when the server cannot start', async () => {
    await expect(startRedis({ args: ['--no-such-option', '1'] })).rejects.toThrow(/FATAL CONFIG FILE ERROR/);
  });

  it('says so when there is no such program', async () => {
    await expect(startRedis({ source: { kind: 'binary', path: '/no/such/server' } })).rejects.toThrow(/ENOENT/);
  });

  it('refuses a port that is taken rather than talk to the server there', async () => {
    await expect(startRedis({ port: redis().port })).rejects.toThrow(/address already in use/i);
  });

  it('can be restarted after a pause', async () => {
    await using server = await startRedis();
    await server.pause();
    await server.restart();
    expect(await askRedis(server.url, 'PING')).toBe('PONG');
  });

  it('is gone after stop(), which may be called again', async () => {
    const server = await startRedis();
    await server.stop();
    await server.stop();
    expectGone(server);
    await expect(server.restart()).rejects.toThrow('was stopped');
  });
});

it('keeps its port for its owner while it is away, and until that has ended', async () => {
  const port = await findFreePort();
  expect(reservePort(port)).toBe(false);
  const url = new URL('../../../scripts/redis/free-port.mjs', import.meta.url).href;
  const program = `process.send((await import('${url}')).reservePort(${port}))`;
  const answerOfAnother = async () => {
    const child = spawn(process.execPath, ['--input-type=module', '-e', program], {
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    });
    const [[answer]] = await Promise.all([once(child, 'message'), once(child, 'exit')]);
    return answer as boolean;
  };
  expect(await answerOfAnother()).toBe(false);
  await rm(join(tmpdir(), 'redis-lock-test-ports', String(port)));
  expect(await answerOfAnother()).toBe(true);
  // That one has ended.
  expect(reservePort(port)).toBe(true);
});

describe('a private Redis server is gone after its owner', () => {
  it.each([
    ['ended normally', 'exit'],
    ['threw', 'throw'],
    ['got SIGINT', 'SIGINT'],
    ['got SIGTERM', 'SIGTERM'],
    ['was killed with SIGKILL', 'SIGKILL'],
  ] as const)('%s', async (_name, end) => {
    const { child, server } = await startOwner();
    await endOwner(child, end);
    await expectGoneSoon(server);
  });

  it('was killed with SIGKILL while the server was paused', async () => {
    const { child, server } = await startOwner('paused');
    await endOwner(child, 'SIGKILL');
    await expectGoneSoon(server);
  });

  it('was killed with SIGKILL while the server was being started', async () => {
    const temporary = await mkdtemp(join(tmpdir(), 'owner-'));
    const endAfter = async (delayMs: number) => {
      const child = fork(owner, { execArgv: [], silent: true, env: { ...process.env, TMPDIR: temporary } });
      await sleep(delayMs);
      await endOwner(child, 'SIGKILL');
    };
    await Promise.all([40, 80, 120, 160, 200, 240].map(endAfter));
    await sleep(1_000); // whatever they had begun
    // The shell of a server removes its folder last. Which process has which port is known from files that stay.
    const folders = async () => (await readdir(temporary)).filter((name) => name.startsWith('nestjs-redis-lock-'));
    await eventually(async () => expect(await folders()).toEqual([]));
    await rm(temporary, { recursive: true });
  });
});

type Started = Pick<RedisServer, 'pid' | 'folder'>;

async function startOwner(...args: string[]): Promise<{ child: ChildProcess; server: Started }> {
  const child = fork(owner, args, { execArgv: [], silent: true });
  const [server] = (await once(child, 'message')) as [Started];
  expect(isRunning(server.pid)).toBe(true);
  return { child, server };
}

async function endOwner(child: ChildProcess, end: 'exit' | 'throw' | NodeJS.Signals): Promise<void> {
  const exited = once(child, 'exit');
  if (end === 'exit' || end === 'throw') child.send(end);
  else child.kill(end);
  await exited;
}

function expectGoneSoon(server: Started): Promise<void> {
  return eventually(() => expectGone(server));
}

function expectGone(server: Started): void {
  expect({ alive: isRunning(server.pid), folder: existsSync(server.folder) }).toEqual({ alive: false, folder: false });
}

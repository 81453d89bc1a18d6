import { type ChildProcess, spawn } from 'node:child_process';
import type { RedisLockModuleOptions } from 'nestjs-redis-lock';
import { eventually } from '../../support/expect/eventually.js';
import { programOf } from '../../support/process/program.js';
import { useRedis } from '../../support/redis/redis-server.js';

const main = programOf(new URL('boot-process-main.ts', import.meta.url));

/** An address without a server. */
const NOWHERE = { host: '127.0.0.1', port: 1 };
const NO_SENTINEL = { sentinels: [NOWHERE], name: 'mymaster' };

describe('a process whose application does not get as far as being started', () => {
  const redis = useRedis();
  const running: ChildProcess[] = [];
  afterEach(() => running.splice(0).forEach((child) => child.kill('SIGKILL')));

  const run = async (how: 'factory' | 'init' | 'compiled', ...options: RedisLockModuleOptions[]): Promise<string> => {
    let output = '';
    const child = spawn(process.execPath, [main, JSON.stringify(options), how], {
      env: { ...process.env, NODE_OPTIONS: '' },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    running.push(child);
    for (const stream of [child.stdout!, child.stderr!]) stream.on('data', (text: Buffer) => (output += String(text)));
    const result = (): string => `${output}exit ${child.exitCode}`;
    await eventually(() => expect(result()).not.toContain('exit null'));
    return result();
  };

  const connections: [string, () => RedisLockModuleOptions | RedisLockModuleOptions[]][] = [
    ['a Redis', () => ({ connection: redis().url })],
    ['a Redis whose replicas have to have it', () => ({ connection: redis().url, durability: { replicas: 1 } })],
    ['a quorum', () => ({ quorum: { connections: [redis().url] } })],
    ['no Redis that answers', () => ({ connection: NOWHERE })],
    ['no sentinel that answers', () => ({ connection: NO_SENTINEL })],
    [
      'no sentinel that answers to either of two services',
      () => [{ connection: NO_SENTINEL }, { service: 'other', connection: NO_SENTINEL }],
    ],
    ['no cluster that answers', () => ({ connection: { cluster: [NOWHERE] } })],
  ];
  it.each(connections)('exits by itself, for the connections are no reason to stay: with %s', async (_, connection) => {
    const options = [connection()].flat();
    // compile() rejects, and onModuleInit that has locked.
    expect(await Promise.all([run('factory', ...options), run('init', ...options)])).toEqual([
      'a factory failed\nexit 0',
      'a migration failed\nexit 0',
    ]);
  });

  it('stays as long as a call is under way, of a module that is compiled and not started', async () => {
    expect(await run('compiled', { connection: redis().url })).toBe('waited: true\nexit 0');
  });
});

import { jest } from '@jest/globals';
import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer, type AddressInfo, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ensureRedis } from '../../scripts/setup/redis.mjs';

/** PATH is one folder of small shell scripts, each standing for a program the machine has. */
describe('the Redis that the set-up chooses', () => {
  let bin: string;
  let env: Record<string, string>;

  beforeEach(async () => {
    bin = await mkdtemp(join(tmpdir(), 'programs-'));
    env = { PATH: bin, BIN: bin };
    jest.spyOn(process.stderr, 'write').mockReturnValue(true);
    as({ root: true });
  });
  afterEach(async () => {
    jest.restoreAllMocks();
    await rm(bin, { recursive: true, force: true });
  });

  const as = ({ root }: { root: boolean }) => jest.spyOn(process, 'getuid').mockReturnValue(root ? 0 : 1000);

  async function machineHas(program: string, script = 'exit 0') {
    await writeFile(join(bin, program), `#!/bin/sh\necho "${program} $*" >> "$BIN/calls"\n${script}\n`);
    await chmod(join(bin, program), 0o755);
  }
  const installs = (program: string) => `case "$*" in *install*) /bin/cp /bin/true "$BIN/${program}";; esac`;
  const calls = async () => (await readFile(join(bin, 'calls'), 'utf8').catch(() => '')).trim().split('\n');

  describe('with REDIS_URL', () => {
    let server: Server;

    beforeEach(async () => {
      server = createServer();
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
      env['REDIS_URL'] = `redis://user:secret@127.0.0.1:${(server.address() as AddressInfo).port}`;
    });
    afterEach(() => server.close());

    it('is that one', async () => {
      await machineHas('redis-server');
      expect(await ensureRedis({ ownServer: false, env })).toEqual({ kind: 'url', url: env['REDIS_URL'] });
    });

    it('is never that one for a caller that pauses and kills its server', async () => {
      await machineHas('redis-server');
      expect(await ensureRedis({ ownServer: true, env })).toEqual({ kind: 'binary', path: join(bin, 'redis-server') });
    });

    it('fails at once, naming the host but no password, when nothing listens there', async () => {
      await new Promise((resolve) => server.close(resolve));
      const failure = ensureRedis({ ownServer: false, env });
      await expect(failure).rejects.toThrow(/^REDIS_URL: 127\.0\.0\.1:\d+ cannot be reached \(ECONNREFUSED\)$/);
    });

    it.each(['localhost:6379', 'http://localhost', 'nonsense'])('refuses %s', async (url) => {
      await expect(ensureRedis({ ownServer: false, env: { ...env, REDIS_URL: url } })).rejects.toThrow(/^REDIS_URL/);
    });
  });

  it('is REDIS_SERVER_BIN before what is on PATH', async () => {
    await machineHas('redis-server');
    await machineHas('my-redis');
    const path = join(bin, 'my-redis');
    expect(await ensureRedis({ ownServer: true, env: { ...env, REDIS_SERVER_BIN: path } })).toEqual({
      kind: 'binary',
      path,
    });
  });

  it('is not a REDIS_SERVER_BIN that cannot be run', async () => {
    await expect(ensureRedis({ ownServer: true, env: { ...env, REDIS_SERVER_BIN: '/nowhere' } })).rejects.toThrow(
      'REDIS_SERVER_BIN: /nowhere is not a program that can be run',
    );
  });

  it('is redis-server before valkey-server', async () => {
    await machineHas('valkey-server');
    expect(await ensureRedis({ ownServer: true, env })).toMatchObject({ path: join(bin, 'valkey-server') });
    await machineHas('redis-server');
    expect(await ensureRedis({ ownServer: true, env })).toMatchObject({ path: join(bin, 'redis-server') });
  });

  it('is installed with apt-get by root, without starting a service', async () => {
    await machineHas('env', 'exec /usr/bin/env "$@"');
    await machineHas('apt-get', `echo "RUNLEVEL=$RUNLEVEL" >> "$BIN/calls"\n${installs('redis-server')}`);
    expect(await ensureRedis({ ownServer: true, env })).toEqual({ kind: 'binary', path: join(bin, 'redis-server') });
    expect(await calls()).toEqual(
      expect.arrayContaining([
        'apt-get update',
        'apt-get install -y --no-install-recommends redis-server',
        'RUNLEVEL=1',
      ]),
    );
  });

  it('is installed through a sudo that asks for no password', async () => {
    as({ root: false });
    await machineHas('env', 'exec /usr/bin/env "$@"');
    await machineHas('apt-get', installs('redis-server'));
    await machineHas('sudo', 'shift; [ "$1" = true ] || exec "$@"');
    expect(await ensureRedis({ ownServer: true, env })).toEqual({ kind: 'binary', path: join(bin, 'redis-server') });
    expect(await calls()).toContain('sudo -n true');
  });

  it('is installed with brew', async () => {
    as({ root: false });
    await machineHas('brew', installs('redis-server'));
    expect(await ensureRedis({ ownServer: true, env })).toEqual({ kind: 'binary', path: join(bin, 'redis-server') });
    expect(await calls()).toEqual(['brew install redis']);
  });

  it('is a Docker image, fetched at once, when nothing can be installed', async () => {
    as({ root: false });
    await machineHas('docker', '[ "$1" != image ]');
    expect(await ensureRedis({ ownServer: true, env })).toEqual({ kind: 'image', image: 'redis:8-alpine' });
    expect(await calls()).toEqual([
      'docker info',
      'docker image inspect redis:8-alpine',
      'docker pull --quiet redis:8-alpine',
    ]);
  });

  it('is a message that says why and what to do, when there is no way', async () => {
    as({ root: false });
    await machineHas('apt-get');
    await machineHas('sudo', 'exit 1');
    await machineHas('docker', 'exit 1');
    const failure = await ensureRedis({ ownServer: false, env }).catch((error: Error) => error.message);
    expect(failure).toContain('apt-get: needs root or a sudo that asks for no password');
    expect(failure).toContain('brew: not on this machine');
    expect(failure).toContain('docker: no daemon answers');
    expect(failure).toContain('sudo apt-get install redis-server');
    expect(failure).toContain('REDIS_URL=');
  });

  it('is a message with the end of what apt-get said, when that failed', async () => {
    await machineHas('env', 'exec /usr/bin/env "$@"');
    await machineHas('apt-get', 'echo "E: no route to host" >&2; exit 100');
    await expect(ensureRedis({ ownServer: true, env })).rejects.toThrow(/exit code 100[^]*E: no route to host/);
  });
});

import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { useInstances } from '../../../support/redis/lock-instances.js';
import { useRedis } from '../../../support/redis/redis-server.js';
import { BIN, startCli } from '../run-process.js';

describe('the command line as a process', () => {
  const redis = useRedis();
  const start = useInstances(() => redis().url);
  const env = () => ({ REDIS_URL: redis().url });
  const folder = mkdtempSync(join(tmpdir(), 'nestjs-redis-lock-cli-'));
  afterAll(() => rmSync(folder, { recursive: true }));

  it('ends by itself, with the exit code, and says nothing else', async () => {
    const { locks, instanceId } = await start();
    await locks.acquire('order:7');
    const { code, signal, stdout, stderr } = await startCli(['ls'], env()).ended;
    expect({ code, signal, stderr }).toEqual({ code: 0, signal: null, stderr: '' });
    expect(stdout.split('\t').slice(0, 3)).toEqual(['order:7', 'exclusive', instanceId]);
    expect(await startCli(['release', 'order:7'], env()).ended).toMatchObject({ code: 2, stdout: '' });
    expect(await startCli(['lss'], env()).ended).toMatchObject({ code: 2 });
  });

  it('reads --config, with the connection and the prefix in it', async () => {
    const { locks } = await start({ keyPrefix: 'shop' });
    await locks.acquire('order:7');
    const file = join(folder, 'locks.config.mjs');
    const { port } = redis();
    writeFileSync(
      file,
      `await null;\nexport default { host: '127.0.0.1', port: ${port} };\nexport const keyPrefix = 'shop';\n`,
    );
    const { code, stdout } = await startCli(['ls', '--config', file, '--json'], {}).ended;
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({ keyPrefix: 'shop', locks: [{ resource: 'order:7' }] });
  });

  it('ends quietly if the reader of its output closes', async () => {
    const { locks } = await start();
    for (let index = 0; index < 300; index++) await locks.acquire(`order:${index}:${'x'.repeat(400)}`);
    const command = [process.execPath, BIN, 'ls', '--scan', '--limit', '1000', '--prefix', 'lock']
      .map((each) => `'${each}'`)
      .join(' ');
    const { stdout, stderr } = await promisify(execFile)('sh', ['-c', `${command} | head -c 5`], {
      env: { ...process.env, ...env(), NODE_OPTIONS: '' },
    });
    // On a busy machine, this process may answer too late.
    const said = stderr.replace(/^Connected but silent .*\n/, '');
    expect({ stdout, said }).toEqual({ stdout: 'order', said: '' });
  });

  it.each([
    ['SIGINT', 130],
    ['SIGTERM', 143],
  ] as const)('ends at %s with %d', async (name, code) => {
    const { locks } = await start();
    // The test before has left its lease.
    await locks.acquire(`order:${name}`);
    const { child, ended } = startCli(['why', `order:${name}`, '--watch', '--prefix', 'lock'], env());
    await new Promise((resolve) => child.stdout!.once('data', resolve));
    child.kill(name);
    expect(await ended).toMatchObject({ code, signal: null, stderr: '' });
  });

  it.each([
    ['ls', ['ls', '--timeout', '10m']],
    ['exec', ['exec', 'order:7', '--timeout', '10m', '--', 'true']],
  ])('ends at SIGINT while it connects to a Redis that does not answer: %s', async (_, argv) => {
    const silent = createServer(() => {}).listen(0, '127.0.0.1');
    const isConnected = once(silent, 'connection');
    await once(silent, 'listening');
    const { port } = silent.address() as AddressInfo;
    const { child, ended } = startCli(argv, { REDIS_URL: `redis://127.0.0.1:${port}` });
    await isConnected;
    child.kill('SIGINT');
    expect(await ended).toMatchObject({ code: 130, stdout: '' });
    silent.close();
  });

  it('exits with 3 within the time limit if Redis hangs', async () => {
    await redis().pause();
    const hanging = await startCli(['ls', '--timeout', '500ms'], env()).ended;
    await redis().resume();
    expect(hanging).toMatchObject({ code: 3, stdout: '' });
    expect(hanging.stderr.trimEnd().split('\n')).toHaveLength(1);
  });
});

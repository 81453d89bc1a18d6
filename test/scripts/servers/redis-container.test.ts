import { delimiter } from 'node:path';
import { fileURLToPath } from 'node:url';
import { askRedis } from './ask-redis.js';
import { startRedis } from '../../support/redis/redis-server.js';

/** The server as a container, with Docker's client played by fake-docker/docker. CI runs all tests on the real one. */
describe('a private Redis server in Docker', () => {
  const path = process.env['PATH'];

  beforeAll(() => {
    process.env['PATH'] = [fileURLToPath(new URL('fake-docker', import.meta.url)), path].join(delimiter);
  });
  afterAll(() => {
    process.env['PATH'] = path;
  });

  const start = (args: string[] = []) => startRedis({ source: { kind: 'image', image: 'redis:8-alpine' }, args });

  it('answers on the port that was published', async () => {
    await using server = await start();
    expect(await askRedis(server.url, 'PING')).toBe('PONG');
  });

  it('pauses and resumes', async () => {
    await using server = await start();
    await server.pause();
    await expect(askRedis(server.url, 'PING')).rejects.toThrow(/timed out/i);
    await server.resume();
    expect(await askRedis(server.url, 'PING')).toBe('PONG');
  });

  it('comes back with its data after it was killed while paused', async () => {
    await using server = await start(['--appendonly', 'yes']);
    await askRedis(server.url, 'SET', 'key', 'value');
    await server.pause();
    await server.kill();
    await expect(askRedis(server.url, 'PING')).rejects.toThrow('Connection is closed');
    await server.restart({ keepData: true });
    expect(await askRedis(server.url, 'GET', 'key')).toBe('value');
  });

  it('shows the end of the log when it cannot start', async () => {
    await expect(start(['--no-such-option', '1'])).rejects.toThrow(/FATAL CONFIG FILE ERROR/);
  });
});

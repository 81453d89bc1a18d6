import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { Redis } from 'ioredis';
import { useRedis } from '../../test/support/redis-server.js';

const redis = useRedis();
const runner = fileURLToPath(new URL('../demo/run.mjs', import.meta.url));
const environment = () => ({ ...process.env, NODE_OPTIONS: '', FORCE_COLOR: '0', REDIS_URL: redis().url });

async function keysLeft(): Promise<string[]> {
  const client = new Redis(redis().url);
  const keys = await client.keys('*');
  client.disconnect();
  return keys;
}

it('keeps every promise, shows it as a table, and leaves nothing behind', async () => {
  const demo = spawn(process.execPath, [runner], { env: environment() });
  let stdout = '';
  for (const stream of [demo.stdout, demo.stderr]) stream.on('data', (text) => (stdout += text));
  const [code] = await once(demo, 'close');
  // All of it, so that a failure shows what was not kept.
  expect(`exit code ${code}: ${stdout}`).toContain('exit code 0: ');
  const rows = stdout.split('\n');
  const row = (start: string) => rows.find((line) => line.trim().startsWith(start));
  expect(row('Units oversold without the lock')).toMatch(/ [1-9]\d* +some$/);
  expect(row('Units oversold with the lock')).toMatch(/ 0 +0 +ok$/);
  expect(row('Ticks missed')).toMatch(/ 0 +0 +ok$/);
  expect(row('Ticks run twice')).toMatch(/ 0 of \d+ +0 +ok$/);
  expect(row('Report of shop-')).toMatch(/shop-\d took over after \d+\.\d s .* ok$/);
  expect(row('Stale write of a paused holder')).toMatch(/ refused +refused +ok$/);
  expect(stdout).toContain('Everything as promised');
  expect(stdout).not.toContain('\x1b');
  expect(await keysLeft()).toEqual([]);
}, 110_000);

it('is gone at once, with all its instances, when it is interrupted', async () => {
  const demo = spawn(process.execPath, [runner], { env: environment() });
  let said = '';
  const isRushing = new Promise((resolve) => {
    demo.stdout.on('data', (text) => {
      said += text;
      if (said.includes('1. A rush')) resolve(undefined);
    });
  });
  await isRushing;
  const pids = [...said.matchAll(/ pid (\d+)/g)].map(([, pid]) => Number(pid));
  expect(pids).toHaveLength(3);
  demo.kill('SIGINT');
  const [code] = await once(demo, 'close');
  expect(code).toBe(130);
  for (const pid of pids) expect(() => process.kill(pid, 0)).toThrow('ESRCH');
  expect(await keysLeft()).toEqual([]);
});

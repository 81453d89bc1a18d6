import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Redis } from 'ioredis';
import { ROOT } from '../../test/docs/guides.js';
import { useRedis } from '../../test/support/redis/redis-server.js';
import { emptyPglite } from '../../test/support/sql/pglite.mjs';
import { rowsOf } from './svg.js';

const redis = useRedis();
const runner = fileURLToPath(new URL('../demo/run.mjs', import.meta.url));
const environment = async () => ({
  ...process.env,
  NODE_OPTIONS: '',
  FORCE_COLOR: '0',
  REDIS_URL: redis().url,
  POSTGRES_DATA: await emptyPglite(),
});

async function keysLeft(): Promise<string[]> {
  const client = new Redis(redis().url);
  const keys = await client.keys('*');
  client.disconnect();
  return keys;
}

it('keeps every promise, shows it as a table, and leaves nothing behind', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'demo-'));
  const picture = join(folder, 'demo.svg');
  const demo = spawn(process.execPath, [runner, '--picture', picture], { env: await environment() });
  let stdout = '';
  let stderr = '';
  demo.stdout.on('data', (text) => (stdout += text));
  demo.stderr.on('data', (text) => (stderr += text));
  const [code] = await once(demo, 'close');
  const rows = stdout.split('\n');
  const broken = rows.filter((line) => line.endsWith('BROKEN'));
  // Broken promises come first: a long message may be cut.
  if (code !== 0) throw new Error([`The demo ended with exit code ${code}`, ...broken, stderr, stdout].join('\n'));
  const row = (start: string) => rows.find((line) => line.trim().startsWith(start));
  expect(row('Units oversold without the lock')).toMatch(/ [1-9]\d* +some$/);
  expect(row('Units oversold with the lock')).toMatch(/ 0 +0 +ok$/);
  expect(row('Half-done editions read without the lock')).toMatch(/ [1-9]\d* of 60 +some$/);
  expect(row('Half-done editions read with the lock')).toMatch(/ 0 of 60 +0 +ok$/);
  expect(row('Readers at once')).toMatch(/ \d+ +> 1 +ok$/);
  expect(row('Exports at once without the semaphore')).toMatch(/ ([4-9]|1[0-2]) of 12 +more than 3$/);
  expect(row('Exports at once with the semaphore')).toMatch(/ [1-3] of 12 +<= 3 +ok$/);
  expect(row('Queries by five cold instances, each for itself')).toMatch(/ 50 for 50 requests +some$/);
  expect(row('Queries by five cold instances, @Once')).toMatch(/ 1 for 50 requests +1 +ok$/);
  expect(row('Queries by the next requests, @Once')).toMatch(/ 0 for 50 requests +0 +ok$/);
  expect(row('Messages lost, without turns')).toMatch(/ [1-9] of 9 +some$/);
  expect(row('Messages lost, one turn at a time')).toMatch(/ 0 of 9, [1-9] told a place in line +0 +ok$/);
  expect(row('Answers that a newer message aborted')).toMatch(
    / \d of 4, the newest answered +the newest answered +ok$/,
  );
  expect(row('shop-1 explains customer:carol')).toMatch(
    / has been held by shop-2:\d+ \(CheckoutService\.checkOut\) for /,
  );
  expect(rows).toContainEqual(
    expect.stringMatching(
      /^ +\d+ calls? of LoyaltyService\.credit waited \S+ m?s in total for CheckoutService\.checkOut$/,
    ),
  );
  expect(row('Credits that waited for the checkout')).toMatch(/ 10 of 10 +all +ok$/);
  expect(row('Mails sent again, without a leader')).toMatch(/ [1-9]\d* for 20 mails +some$/);
  expect(row('Mails sent again, leader killed')).toMatch(/ \d for 20 mails, 0 lost .* ok$/);
  expect(row('Leader after shop-')).toMatch(/shop-\d after \d+\.\d s .* ok$/);
  expect(row('Ticks missed')).toMatch(/ 0 +0 +ok$/);
  expect(row('Ticks run twice')).toMatch(/ 0 of \d+ +0 +ok$/);
  expect(row('Draws while the draw was paused')).toMatch(/ 0 by the schedule, 1 by hand +0 and 1 +ok$/);
  expect(row('Ticks that the till of shop-')).toMatch(/ [1-9]\d*, made up for in [1-9] counts? +each once +ok$/);
  expect(row('Report of shop-')).toMatch(/shop-\d took over after \d+\.\d s .* ok$/);
  expect(row('Stale COMMIT of a paused holder')).toMatch(/ refused +refused +ok$/);
  expect(row('Paused holder named by `status`')).toMatch(/shop-\d after \d+\.\d s +by name +ok$/);
  expect(row('Migrations run by 5 deploys at once')).toMatch(/ 1 +1 +ok$/);
  expect(stdout).toContain('Everything as promised');
  expect(stdout).not.toContain('\x1b');
  expect(await keysLeft()).toEqual([]);

  const shown = rowsOf(await readFile(picture, 'utf8'));
  for (const [what] of shown.slice(2, -1)) expect(row(what!)).toBeDefined();
  // The one in the README has the same rows and the same promises.
  const withoutNames = (cells: string[]) =>
    [cells[0], cells[2], cells[3]].map((cell) => cell?.replace(/shop-\d/, 'shop'));
  const committed = rowsOf(await readFile(join(ROOT, 'docs/demo.svg'), 'utf8'));
  expect(committed.slice(1, -1).map(withoutNames)).toEqual(shown.slice(1, -1).map(withoutNames));
  await rm(folder, { recursive: true, force: true });
}, 300_000);

it('is gone at once, with all its instances, when it is interrupted', async () => {
  const demo = spawn(process.execPath, [runner], { env: await environment() });
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
}, 150_000);

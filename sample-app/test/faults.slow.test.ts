import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { ShopProcess } from '../demo/shop-process.mjs';
import { waitUntil } from '../demo/wait-until.mjs';
import { startRedis, useRedis } from '../../test/support/redis/redis-server.js';
import { useFleet } from './use-fleet.js';

const redis = useRedis();
const fleet = useFleet(redis, [{ name: 'shop-1' }, { name: 'shop-2' }], { SHELF_MS: '400' });

it('a stocktaking whose lease is lost stops, and answers 503', async () => {
  const sleeper = fleet().other();
  const other = fleet().other(sleeper);
  await other.put('/stock/tea', { units: 3 });
  const count = sleeper.post('/stock/tea/counts');
  // The sleeper is asked: Redis has granted the lock before the sleeper has read that.
  await waitUntil('the stocktaking runs', async () => (await sleeper.lock('count:tea')).holders.length > 0);
  sleeper.pause();
  await waitUntil('its lease ends', async () => (await other.lock('count:tea')).holders.length === 0);
  sleeper.resume();
  const { status, headers, body } = await count;
  expect({ status, code: body.code }).toEqual({ status: 503, code: 'LEASE_LOST' });
  expect(headers.get('retry-after')).toBe('1');
});

it('a shop that is told to stop finishes what it does under a lock, and exits', async () => {
  // The lease outlasts a machine that is paused for a second.
  const env = { REDIS_URL: redis().url, SHELF_MS: '200', COUNT_LEASE_MS: '10000' };
  await using shop = await ShopProcess.start('shop-9', env);
  await shop.put('/stock/oil', { units: 1 });
  const count = shop.post('/stock/oil/counts');
  const isHeldFor = async (asked: ShopProcess) => (await asked.lock('count:oil')).holders.length > 0;
  // It is asked itself, as above: a call that still waits when the shop stops is refused.
  await waitUntil('the stocktaking runs', () => isHeldFor(shop));
  const exitCode = shop.stop();
  expect((await count).body).toEqual({ sku: 'oil', units: 1, shelves: 5 });
  await exitCode;
  expect(await isHeldFor(fleet().other())).toBe(false);
});

describe('Redis away', () => {
  it('is 503 with Retry-After, and over when it is back', async () => {
    await using ownRedis = await startRedis();
    await using shop = await ShopProcess.start('shop-8', { REDIS_URL: ownRedis.url, LOCK_WAIT_MS: '500' });
    await shop.put('/stock/tea', { units: 2 });
    await ownRedis.kill();
    const order = await shop.post('/stock/tea/orders');
    expect({ status: order.status, code: order.body.code }).toEqual({ status: 503, code: 'LOCK_UNAVAILABLE' });
    expect(order.headers.get('retry-after')).toBe('1');
    const away = { locks: 'down', problems: [{ code: 'ECONNREFUSED' }] };
    expect(await shop.get('/health')).toMatchObject({ status: 503, body: away });

    await ownRedis.restart();
    await waitUntil('the shop is healthy again', async () => (await shop.get('/health')).status === 200);
    await shop.put('/stock/tea', { units: 2 });
    expect((await shop.post('/stock/tea/orders')).status).toBe(201);
  });

  it('is reported in one line when the shop starts', async () => {
    const main = fileURLToPath(new URL('../../dist/sample-app/main.js', import.meta.url));
    const url = 'redis://user:secret@127.0.0.1:1';
    const child = spawn(process.execPath, [main], { env: { ...process.env, NODE_OPTIONS: '', REDIS_URL: url } });
    let said = '';
    child.stderr.on('data', (text) => (said += text));
    const [code] = await once(child, 'close');
    expect(code).toBe(1);
    expect(said).toMatch(/^Redis at 127\.0\.0\.1:1 cannot be used \(.*ECONNREFUSED.*\)\.\n.*set REDIS_URL/);
    expect(said).not.toContain('secret');
  });
});

import { useRedis } from '../../test/support/redis/redis-server.js';
import { waitUntil } from '../demo/wait-until.mjs';
import { rush, useFleet } from './use-fleet.js';

const redis = useRedis();
const fleet = useFleet(redis, undefined, { LOCK_WAIT_MS: '20000' });
const anyShop = () => fleet().other();

describe('orders, at three instances at once', () => {
  it('never sell more than there is', async () => {
    await anyShop().put('/stock/tea', { units: 15 });
    const answers = await rush(fleet(), 45, (shop) => shop.post('/stock/tea/orders'));
    expect(answers).toEqual({ 201: 15, 409: 30 });
    expect((await anyShop().get('/stock/tea')).body).toEqual({ units: 0, sold: 15 });
  });

  it('oversell without the lock', async () => {
    let sold = 0;
    for (let attempt = 0; attempt < 5 && sold <= 15; attempt++) {
      await anyShop().put('/stock/coffee', { units: 15 });
      await rush(fleet(), 45, (shop) => shop.post('/stock/coffee/orders-without-lock'));
      sold = (await anyShop().get('/stock/coffee')).body.sold;
    }
    expect(sold).toBeGreaterThan(15);
  });

  it('of an article that does not exist stay a 404', async () => {
    const { status, body } = await anyShop().post('/stock/nothing/orders');
    expect({ status, message: body.message }).toEqual({ status: 404, message: 'There is no article nothing' });
  });
});

it('transfers in opposite directions keep the sum and do not deadlock', async () => {
  await anyShop().put('/accounts/alice', { balance: 1_000 });
  await anyShop().put('/accounts/bob', { balance: 1_000 });
  const answers = await rush(fleet(), 40, (shop, i) => {
    const [from, to] = i % 2 === 0 ? ['alice', 'bob'] : ['bob', 'alice'];
    return shop.post(`/accounts/${from}/transfers`, { to, amount: 10 + i });
  });
  expect(answers).toEqual({ 204: 40 });
  const { body: alice } = await anyShop().get('/accounts/alice');
  const { body: bob } = await anyShop().get('/accounts/bob');
  // Each of alice's transfers was 1 less than the one of bob after it.
  expect([alice.balance, bob.balance]).toEqual([1_020, 980]);
});

describe('a basket', () => {
  it('loses nothing that is put in from several tabs (@LockHandler)', async () => {
    const answers = await rush(fleet(), 12, (shop, i) => shop.post('/baskets/tabs/items', { sku: `sku-${i}` }));
    expect(answers).toEqual({ 201: 12 });
    expect((await anyShop().get('/baskets/tabs')).body.skus).toHaveLength(12);
  });

  it('is bought once, however often the button is pressed, through services that lock again', async () => {
    await anyShop().put('/stock/mug', { units: 10 });
    for (const sku of ['mug', 'mug']) await anyShop().post('/baskets/b1/items', { sku });
    const answers = await rush(fleet(), 6, (shop) => shop.post('/baskets/b1/checkout', { customer: 'carol' }));
    expect(answers).toEqual({ 201: 6 });
    expect((await anyShop().get('/stock/mug')).body).toEqual({ units: 8, sold: 2 });
    expect((await anyShop().get('/customers/carol/points')).body).toEqual({ points: 20 });
  });

  it('is paid for while its customer gets points elsewhere, and no point is lost', async () => {
    await anyShop().put('/stock/pot', { units: 10 });
    for (let i = 0; i < 6; i++) await anyShop().post(`/baskets/pots-${i}/items`, { sku: 'pot' });
    const answers = await rush(fleet(), 12, (shop, i) =>
      i < 6
        ? shop.post(`/baskets/pots-${i}/checkout`, { customer: 'dave' })
        : shop.post('/customers/dave/points', { points: 1 }),
    );
    expect(answers).toEqual({ 201: 12 });
    expect((await anyShop().get('/customers/dave/points')).body).toEqual({ points: 66 });
  });

  it('keeps what could not be bought', async () => {
    await anyShop().put('/stock/cup', { units: 1 });
    for (const sku of ['cup', 'cup']) await anyShop().post('/baskets/b2/items', { sku });
    expect((await anyShop().post('/baskets/b2/checkout', { customer: 'erin' })).status).toBe(409);
    expect((await anyShop().get('/baskets/b2')).body).toEqual({ skus: ['cup'] });
  });
});

describe('a stocktaking', () => {
  const holders = async (resource: string) => (await anyShop().lock(resource)).holders;

  it('is 423 Locked with Retry-After while another one runs, on whatever instance', async () => {
    await anyShop().put('/stock/jam', { units: 7 });
    const first = anyShop().post('/stock/jam/counts');
    await waitUntil('the stocktaking runs', async () => (await holders('count:jam')).length > 0);
    const second = await fleet().other(anyShop()).post('/stock/jam/counts');
    expect(second.status).toBe(423);
    expect(Number(second.headers.get('retry-after'))).toBeGreaterThanOrEqual(1);
    expect(second.body).toMatchObject({ error: 'Locked', code: 'LOCK_BUSY' });
    expect((await first).body).toEqual({ sku: 'jam', units: 7, shelves: 5 });
  });

  it('is shown to whoever asks who holds the lock', async () => {
    await anyShop().put('/stock/salt', { units: 1 });
    const count = anyShop().post('/stock/salt/counts');
    const seen = await waitUntil('the stocktaking runs', async () => {
      const found = await holders('count:salt');
      return found.length > 0 && found;
    });
    expect(seen).toEqual([
      {
        instanceId: `shop-1:${anyShop().pid}`,
        isThisProcess: true,
        mode: 'exclusive',
        fencingToken: expect.any(Number),
        ttlMs: expect.any(Number),
        leaseMs: expect.any(Number),
        heldMs: expect.any(Number),
        depth: 1,
        label: { group: 'StocktakingService.count' },
      },
    ]);
    await count;
  });
});

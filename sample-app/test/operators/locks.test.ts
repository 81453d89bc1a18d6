import type { Contention } from 'nestjs-redis-lock';
import { useRedis } from '../../../test/support/redis/redis-server.js';
import { waitUntil } from '../../demo/wait-until.mjs';
import { useFleet } from '../use-fleet.js';

const redis = useRedis();
const fleet = useFleet(redis, [{ name: 'shop-1' }, { name: 'shop-2', env: { OPERATOR_KEY: '' } }], {
  SHELF_MS: '1000',
  PAYMENT_MS: '200',
});
const shop = () => fleet().named('shop-1')!;

const PATHS = [
  '/operators/contention',
  '/operators/locks',
  '/operators/locks/count:tea',
  '/operators/locks/count:tea/explain',
];

it.each(PATHS)('nobody without the key sees %s', async (path) => {
  expect((await shop().get(path)).status).toBe(403);
  expect((await shop().request('GET', path, undefined, { 'x-operator-key': 'guessed' })).status).toBe(403);
  expect((await fleet().named('shop-2')!.request('GET', path, undefined, { 'x-operator-key': '' })).status).toBe(403);
});

it('an operator sees who holds what, and ends the lease that he saw and no other one', async () => {
  await shop().put('/stock/tea', { units: 3 });
  const count = shop().post('/stock/tea/counts');
  const [seen] = await waitUntil('the stocktaking runs', async () => {
    const { body } = await shop().operate('GET', '/locks?prefix=count:');
    return body.length > 0 && body;
  });
  expect(seen).toMatchObject({
    resource: 'count:tea',
    mode: 'exclusive',
    holders: [{ instanceId: `shop-1:${shop().pid}` }],
  });
  expect((await shop().operate('GET', '/locks?prefix=nothing')).body).toEqual([]);

  const { fencingToken } = seen.holders[0];
  const older = await shop().operate('DELETE', `/locks/count:tea/leases/${fencingToken - 1_000}`);
  expect(older.status).toBe(404);
  expect((await shop().lock('count:tea')).holders).toHaveLength(1);

  expect((await shop().operate('DELETE', `/locks/count:tea/leases/${fencingToken}`)).status).toBe(204);
  const { status, body } = await count;
  expect({ status, code: body.code }).toEqual({ status: 503, code: 'LEASE_LOST' });
  expect((await shop().lock('count:tea')).holders).toEqual([]);
});

it('an operator reads why a request waits, and afterwards for which work of another instance it has waited', async () => {
  const [CHECKOUT, CREDIT] = ['CheckoutService.checkOut', 'LoyaltyService.credit'];
  const busy = fleet().named('shop-2')!;
  await shop().put('/stock/mug', { units: 8 });
  for (let i = 0; i < 8; i++) await shop().post('/baskets/b1/items', { sku: 'mug' });

  const checkout = busy.post('/baskets/b1/checkout', { customer: 'gil' });
  await waitUntil('the checkout runs', async () => (await shop().lock('customer:gil')).holders.length > 0);
  const credits = Promise.all([1, 2, 3].map((points) => shop().post('/customers/gil/points', { points })));
  const contention = async () => (await shop().operate('GET', '/contention')).body as Contention;
  await waitUntil('the credits wait', async () =>
    (await contention()).groups.some(({ group, waiting }) => group === CREDIT && waiting === 3),
  );
  const { status, body: explanation } = await shop().operate('GET', '/locks/customer:gil/explain');
  expect({ status, cause: explanation.cause }).toEqual({ status: 200, cause: 'inUse' });
  expect(explanation.text).toContain(`"customer:gil" has been held by shop-2:${busy.pid} (${CHECKOUT}) for `);
  expect(explanation.text).toContain('3 calls of this process are waiting');
  expect(explanation.sentences.join(' ')).toBe(explanation.text);

  expect((await checkout).status).toBe(201);
  expect((await credits).map((answer) => answer.status)).toEqual([201, 201, 201]);
  const { instanceId, groups, blockers } = await contention();
  expect(instanceId).toBe(`shop-1:${shop().pid}`);
  expect(groups.find(({ group }) => group === CREDIT)).toMatchObject({ waiting: 0, waited: 3 });
  const [longest, own] = blockers.filter(({ waiter }) => waiter === CREDIT);
  expect(longest).toMatchObject({ holder: CHECKOUT, calls: 3 });
  expect(longest!.text).toMatch(
    /^3 calls of LoyaltyService\.credit waited \S+ m?s in total for CheckoutService\.checkOut$/,
  );
  // After the first of them, the others have waited for it.
  expect(own).toMatchObject({ holder: CREDIT, calls: 2 });
  expect(own!.waitedMs).toBeGreaterThan(500);
});

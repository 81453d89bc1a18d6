import { useRedis } from '../../test/support/redis/redis-server.js';
import { waitUntil } from '../demo/wait-until.mjs';
import { useFleet } from './use-fleet.js';

const redis = useRedis();
const fleet = useFleet(redis, [{ name: 'shop-1' }, { name: 'shop-2', env: { OPERATOR_KEY: '' } }], {
  SHELF_MS: '1000',
});
const shop = () => fleet().named('shop-1')!;

it.each(['/operators/locks', '/operators/locks/count:tea'])('nobody without the key sees %s', async (path) => {
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

import { rejection } from '../../test/support/expect/eventually.js';
import { useRedis } from '../../test/support/redis/redis-server.js';
import { mostAtOnce } from '../demo/most-at-once.mjs';
import { waitUntil } from '../demo/wait-until.mjs';
import type { Stamp } from '../src/time-clock/time-clock.js';
import { rush, useFleet } from './use-fleet.js';

const redis = useRedis();
const fleet = useFleet(redis, [
  { name: 'shop-1', env: { EXPORT_MS: '60000' } },
  { name: 'shop-2', env: { EXPORT_MS: '100' } },
  { name: 'shop-3', env: { EXPORT_MS: '100' } },
]);
const shop = (name: string) => fleet().named(name)!;
const run = (name: string) => shop(name).post('/exports', { customer: 'alice' });
const free = async () => (await shop('shop-2').get('/exports')).body.free;
const stamps = async (): Promise<Stamp[]> => (await shop('shop-2').get('/time-clock/exports')).body;

it('are three at once over all instances, and go on after a lease when an instance with permits is killed', async () => {
  const killed = shop('shop-1');
  const hanging = [rejection(run('shop-1')), rejection(run('shop-1'))];
  await waitUntil('two of three permits are taken', async () => (await stamps()).length === 2);
  expect(await free()).toBe(1);

  const others = [shop('shop-2'), shop('shop-3')];
  const beside = await Promise.all(others.map((other) => other.post('/exports', { customer: 'bob' })));
  expect(beside.map(({ status }) => status)).toEqual([201, 201]);
  // One after the other: the third permit was all that there was for them.
  expect(mostAtOnce(await stamps())).toBe(3);

  const before = (await stamps()).length;
  const third = rejection(run('shop-1'));
  await waitUntil('all permits are taken', async () => (await stamps()).length === before + 1);
  expect(await free()).toBe(0);
  const waiting = others.flatMap((other) => [1, 2].map(() => other.post('/exports', { customer: 'carol' })));
  await waitUntil('both instances wait', async () => (await shop('shop-2').lock('exports')).waiters.length === 2);
  expect((await stamps()).length).toBe(before + 1);
  await killed.kill();
  await Promise.all([...hanging, third]);
  expect((await Promise.all(waiting)).map(({ status }) => status)).toEqual([201, 201, 201, 201]);
  await fleet().replace(killed);
  expect(await free()).toBe(3);
});

it('never exceed three in a rush on the instances that are left', async () => {
  const before = (await stamps()).length;
  const others = [shop('shop-2'), shop('shop-3')];
  expect(await rush(fleet(), 16, (_, i) => others[i % 2]!.post('/exports', { customer: 'dave' }))).toEqual({ 201: 16 });
  expect(mostAtOnce((await stamps()).slice(before))).toBeLessThanOrEqual(3);
});

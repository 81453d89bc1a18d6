import { useRedis } from '../../test/support/redis/redis-server.js';
import { waitUntil } from '../demo/wait-until.mjs';
import { useFleet } from './use-fleet.js';

const redis = useRedis();
const fleet = useFleet(
  redis,
  [{ name: 'counter', env: { IMPORTS_WORK: 'no' } }, { name: 'worker-1' }, { name: 'worker-2' }],
  { PAYMENT_MS: '30', LOCK_WAIT_MS: '20000' },
);
const counter = () => fleet().named('counter')!;
const begin = (batch: string, file: string, orders: number, files: number) =>
  counter().post(`/imports/${batch}/files/${file}`, { orders, files });
const result = async (batch: string, files: number) => (await counter().get(`/imports/${batch}?files=${files}`)).body;
const holders = async (batch: string) => (await counter().lock(`import:${batch}`)).holders;

it('are booked by others than took them in, one file at a time, and the total waits for the last one', async () => {
  const total = result('spring', 4);
  const begun = await Promise.all(['a', 'b', 'c', 'd'].map((file) => begin('spring', file, 10, 4)));
  expect(begun.map(({ status }) => status)).toEqual([202, 202, 202, 202]);
  const { finished, ...rest } = await total;
  expect(rest).toEqual({ total: 40 });
  expect(finished).toHaveLength(4);
  for (const { begunBy, finishedBy } of finished) {
    expect(begunBy).toBe('counter');
    expect(finishedBy).toMatch(/^worker-/);
  }
  const tokens: number[] = finished.map(({ token }: { token: number }) => token);
  expect(tokens).toEqual([...new Set(tokens)].toSorted((a, b) => a - b));
});

it('stay locked in the queue, until a worker has time', async () => {
  const workers = [fleet().named('worker-1')!, fleet().named('worker-2')!];
  for (const worker of workers) worker.pause();
  await begin('summer', 'a', 5, 2);
  const second = begin('summer', 'b', 5, 2);
  await waitUntil('the second one waits', async () => {
    const { waiters, holders: found } = await counter().lock('import:summer');
    return waiters.length === 1 && found.length === 1;
  });
  for (const worker of workers) worker.resume();
  expect((await second).status).toBe(202);
  expect(await result('summer', 2)).toMatchObject({ total: 10 });
});

it('are booked to the end, each order once, when a worker is killed and the file is sent again', async () => {
  await begin('autumn', 'a', 40, 1);
  const [holder] = await waitUntil('a worker books', async () => {
    const { body } = await counter().get('/imports/autumn/progress');
    return body.total >= 3 && holders('autumn');
  });
  const worker = fleet().named(holder!.instanceId.split(':')[0]!)!;
  await worker.kill();
  const { body: left } = await counter().get('/imports/autumn/progress');
  expect(left.total).toBeLessThan(40);
  // Waits until the lease of the dead one has ended.
  expect((await begin('autumn', 'a', 40, 1)).status).toBe(202);
  const { total, finished } = await result('autumn', 1);
  expect(total).toBe(40);
  expect(finished).toHaveLength(1);
  expect(finished[0].token).toBeGreaterThan(holder!.fencingToken);
  await fleet().replace(worker);
});

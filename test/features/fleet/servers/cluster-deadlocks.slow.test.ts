import type { LockTimeoutError } from '../../../../lib/kernel/api/busy-errors.js';
import { rejection } from '../../../support/expect/eventually.js';
import { describeOnMachine } from '../../../support/redis/describe-on-machine.js';
import { type LockInstance, untilQueued, useInstances } from '../../../support/redis/lock-instances.js';
import { useRedisCluster } from '../../../support/redis/redis-cluster.js';

/** Longer than both need to begin to wait on a busy machine. */
const WAIT_MS = 5_000;

describeOnMachine('instances that wait for each other on a cluster of three', () => {
  const cluster = useRedisCluster();
  const start = useInstances(() => cluster().connection);

  it('are named, though their locks are on different nodes', async () => {
    const [a, b] = await Promise.all([start(), start()]);
    let isOver!: () => void;
    const over = new Promise<void>((resolve) => (isOver = resolve));
    const crossing = ({ locks }: LockInstance, outer: string, inner: string, meet: () => Promise<unknown>) =>
      locks.using(outer, {}, async () => {
        await meet();
        const error = await rejection(locks.using(inner, { waitMs: WAIT_MS }, () => {}));
        // So that the other one is not granted it.
        await over;
        return error as LockTimeoutError;
      });
    const entered = { a: false, b: false };
    const meet = (name: 'a' | 'b') => async () => {
      entered[name] = true;
      while (!entered.a || !entered.b) await new Promise(setImmediate);
    };
    const both = [crossing(a, 'x', 'y', meet('a')), crossing(b, 'y', 'x', meet('b'))];
    await Promise.all([untilQueued(a, 'y', a), untilQueued(b, 'x', b)]);
    setTimeout(isOver, WAIT_MS + 1_000);
    const [first, second] = await Promise.all(both);
    const cycle = ({ heldByCaller }: LockTimeoutError) =>
      heldByCaller?.deadlock?.map(({ instanceId, holds, wants }) => `${instanceId}: ${holds} > ${wants}`);
    const ofA = `${a.store.instanceId}: x > y`;
    const ofB = `${b.store.instanceId}: y > x`;
    expect([cycle(first!), cycle(second!)]).toEqual([
      [ofA, ofB],
      [ofB, ofA],
    ]);
  });
});

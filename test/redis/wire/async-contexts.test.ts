import { AsyncLocalStorage } from 'node:async_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { eventually } from '../../support/expect/eventually.js';
import { useAdmin, useInstances } from '../../support/redis/lock-instances.js';
import { useRedis } from '../../support/redis/redis-server.js';

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

/** Stands for the AsyncLocalStorage of an application. */
const request = new AsyncLocalStorage<{ readonly of: string }>();

describe('connections that are made while a request is served', () => {
  const redis = useRedis();
  const instance = useInstances(() => redis().url);
  const admin = useAdmin(() => redis().url);

  /** An instance whose connections are made in the context of a request, then and again. */
  const bootInRequest = async () => {
    const data = { of: 'the request that loaded the module' };
    const booted = await request.run(data, async () => {
      const made = await instance();
      const { store } = made;
      const seen: unknown[] = [];
      const look = (): void => void seen.push(request.getStore());
      store.listen({ granted: look, reconnected: look });
      return { ...made, seen };
    });
    return { ...booted, data: new WeakRef(data) };
  };

  it('deliver messages outside of any context, even after a reconnect', async () => {
    const { locks, seen } = await bootInRequest();
    const other = await instance();
    for (let round = 0; round < 2; round++) {
      const held = await other.locks.acquire('stock');
      const waiting = request.run({ of: 'a request that waits' }, () => locks.acquire('stock'));
      await eventually(async () => expect((await other.locks.inspect('stock')).waiters).toHaveLength(1));
      await held.release();
      await (await waiting).release();
      const heard = seen.length;
      const lost = request.run({ of: 'a request that asks' }, () => locks.inspect('stock')).catch(() => {});
      await admin().call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
      await admin().call('CLIENT', 'KILL', 'TYPE', 'pubsub');
      await lost;
      await eventually(() => expect(seen.length).toBeGreaterThan(heard));
      await eventually(() => other.locks.inspect('stock'));
    }
    expect(seen.filter((store) => store !== undefined)).toEqual([]);
  });

  it('keep nothing of that request in memory', async () => {
    const { locks, data } = await bootInRequest();
    await (await locks.acquire('stock')).release();
    await expectCollected(data);
  });

  it("run outside of any request's context, and keep nothing of it", async () => {
    const { store } = await instance();
    const seen: unknown[] = [];
    const look = (): void => void seen.push(request.getStore());
    store.listen({ granted: look, deliveryUncertain: look, reconnected: look });
    const relied = ((): WeakRef<object> => {
      const data = { of: 'a request that waits' };
      request.run(data, () => store.hearing.setNeeded(true));
      return new WeakRef(data);
    })();
    await eventually(async () => expect(await admin().info('commandstats')).toMatch(/cmdstat_publish:calls=[3-9]/));
    await expectCollected(relied);
    await admin().call('CLIENT', 'KILL', 'TYPE', 'pubsub');
    await eventually(() => expect(seen.length).toBeGreaterThan(1));
    expect(seen.filter((context) => context !== undefined)).toEqual([]);
  });

  async function expectCollected(data: WeakRef<object>): Promise<void> {
    for (let round = 0; round < 50 && data.deref(); round++) {
      await sleep(10);
      collect();
    }
    expect(data.deref()).toBeUndefined();
  }
});

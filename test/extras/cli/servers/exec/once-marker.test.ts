import { OnceMarker } from '../../../../../lib/extras/cli/exec/once-marker.js';
import type { LockMode } from '../../../../../lib/kernel/api/lock-mode.js';
import { rejection } from '../../../../support/expect/eventually.js';
import { useAdmin, useInstances } from '../../../../support/redis/lock-instances.js';
import { useRedis } from '../../../../support/redis/redis-server.js';

const LONG_MS = 60_000;

describe('the marker of exec --once', () => {
  const redis = useRedis();
  const admin = useAdmin(() => redis().url);
  const start = useInstances(() => redis().url);

  it.each(['exclusive', 'write'] as LockMode[])('is set by the holder of the lock only (%s)', async (mode) => {
    const { store, locks } = await start();
    const marker = new OnceMarker(store, 'migrate', 'v1');
    const owner = { resource: 'migrate', id: `${store.clientId}/holder`, mode };
    await store.acquire(owner, LONG_MS);
    expect(await marker.set(`${store.clientId}/other`, LONG_MS, LONG_MS)).toBe(false);
    expect(await marker.doneAgoMs(LONG_MS)).toBeNull();
    expect(await marker.set(owner.id, LONG_MS, LONG_MS)).toBe(true);
    expect(await marker.doneAgoMs(LONG_MS)).toBeGreaterThanOrEqual(0);
    await store.release(owner);
    expect(await marker.set(owner.id, LONG_MS, LONG_MS)).toBe(false);
    // A marker is no lock and blocks nobody.
    expect(await locks.operators.list()).toEqual([]);
    await (await locks.acquire('migrate', { waitMs: 0 })).release();
    expect(await new OnceMarker(store, 'migrate', 'v2').doneAgoMs(LONG_MS)).toBeNull();
  });

  it('is set as soon as Redis accepts it, if it was refused for a while', async () => {
    await admin().call('ACL', 'SETUSER', 'app', 'reset', 'on', '>pw', '~*', '&*', '+@all');
    const { store } = await start({ connection: redis().url.replace('://', '://app:pw@') });
    const marker = new OnceMarker(store, 'migrate', 'v1');
    const owner = { resource: 'migrate', id: `${store.clientId}/holder`, mode: 'exclusive' as const };
    await store.acquire(owner, LONG_MS);
    await admin().call('ACL', 'SETUSER', 'app', '-evalsha');
    const setting = marker.set(owner.id, LONG_MS, LONG_MS);
    await rejection(marker.doneAgoMs(LONG_MS));
    await admin().call('ACL', 'SETUSER', 'app', '+evalsha');
    expect(await setting).toBe(true);
  });

  it('is retried while Redis is down, and then reports the failed step', async () => {
    const { store } = await start();
    const marker = new OnceMarker(store, 'migrate', 'v1');
    await redis().kill();
    const error = await rejection(marker.doneAgoMs(300));
    expect(error).toMatchObject({ code: 'LOCK_UNAVAILABLE', resource: 'migrate' });
    expect(error.message).toContain('Redis could not read the --once marker of "migrate": ');
    const reading = marker.doneAgoMs(LONG_MS);
    await redis().restart();
    expect(await reading).toBeNull();
    expect(await admin().exists('lock:{migrate}:done:v1')).toBe(0);
  });
});

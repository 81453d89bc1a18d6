import { Redis } from 'ioredis';
import { sealOf } from '../../../lib/redis/grant-seal.js';
import { CriticalSections } from '../../support/expect/critical-sections.js';
import { eventually, rejection } from '../../support/expect/eventually.js';
import { GrantLog } from '../../contract/grant-log.js';
import { expectNothingLeft, untilQueued, useAdmin, useInstances } from '../../support/redis/lock-instances.js';
import { useRedis } from '../../support/redis/redis-server.js';
import { TcpProxy } from '../../support/network/tcp-proxy.js';
import { gate, track } from '../../support/expect/tracked.js';

const LONG = { leaseMs: 60_000, waitMs: 60_000 };

describe('a grant that comes late, twice, or from nobody', () => {
  const redis = useRedis();
  const admin = useAdmin(() => redis().url);
  const start = useInstances(() => redis().url);

  const scene = async () => {
    const proxy = await TcpProxy.start(redis().port);
    const [a, b] = [await start(), await start()];
    return { proxy, a, b, far: await start({ connection: proxy.url }) };
  };
  const holder = async (): Promise<string | undefined> => (await admin().get('lock:{x}'))?.split('/')[0];

  it('a message for a call that gave up while it could not reach Redis is answered with a release', async () => {
    const { proxy, a, b, far } = await scene();
    await using _ = proxy;
    const lease = await a.locks.acquire('x', LONG);
    const controller = new AbortController();
    const leaving = rejection(far.locks.acquire('x', { ...LONG, signal: controller.signal }));
    await untilQueued(a, 'x', far);
    proxy.blackHole('toServer', 'commands');
    const waiting = b.locks.acquire('x', LONG);
    await untilQueued(a, 'x', far, b);
    controller.abort();
    await leaving;
    await lease.release();
    expect(await holder()).toBe(far.instanceId);
    proxy.cut('commands'); // and its withdrawal with it
    proxy.heal();
    await (await waiting).release();
    await expectNothingLeft(admin(), a, b, far);
  });

  it('the message of a lease that is over by then does not grant the next one, nor end it', async () => {
    const { proxy, a, b, far } = await scene();
    await using _ = proxy;
    const sections = new CriticalSections();
    const lease = await a.locks.acquire('x', LONG);
    proxy.blackHole('toClient', 'subscriber');
    const first = sections.call(far, LONG);
    await untilQueued(a, 'x', far);
    await lease.release();
    await first; // found by a heartbeat
    const hold = gate();
    const second = sections.call(b, LONG, () => hold.opened);
    await eventually(async () => expect(await holder()).toBe(b.instanceId));
    const third = track(sections.call(far, LONG));
    await untilQueued(a, 'x', far);
    proxy.heal(); // the message of the first one arrives
    await eventually(() => expect(far.locks.stats().orphanReleases).toBe(0));
    await untilQueued(a, 'x', far);
    expect(third.state).toBe('pending');
    expect(await holder()).toBe(b.instanceId);
    hold.open();
    await second;
    await eventually(() => expect(third.state).toBe('fulfilled'));
    sections.expectSound(3);
    await expectNothingLeft(admin(), a, b, far);
  });

  it('a message that is repeated grants nothing again', async () => {
    const [a, b] = [await start(), await start()];
    const channel = b.store.keys.inbox(b.store.clientId);
    const listener = new Redis(redis().url);
    await listener.subscribe(channel);
    const message = new Promise<string>((resolve) => listener.on('message', (_, text: string) => resolve(text)));
    const lease = await a.locks.acquire('x', LONG);
    const waiting = b.locks.acquire('x', LONG);
    await untilQueued(a, 'x', b);
    await lease.release();
    const granted = await waiting;
    const repeat = async (): Promise<void> => void (await admin().publish(channel, await message));
    await repeat(); // while it is held,
    expect(await granted.verify()).toBe(true);
    await granted.release();
    await repeat(); // while it is free,
    const other = await a.locks.acquire('x', LONG);
    const again = track(b.locks.acquire('x', LONG));
    await untilQueued(a, 'x', b);
    await repeat(); // and while another call of the same process waits
    await untilQueued(a, 'x', b);
    expect(await other.verify()).toBe(true);
    expect(again.state).toBe('pending');
    await other.release();
    await eventually(() => expect(again.value.isHeld()).toBe(true));
    await again.value.release();
    listener.disconnect();
    await expectNothingLeft(admin(), a, b);
  });

  it('a message that nobody could write who does not know the secret of the waiter is no grant', async () => {
    const [a, b] = [await start(), await start()];
    const lease = await a.locks.acquire('x', LONG);
    const waiting = track(b.locks.acquire('x', LONG));
    await untilQueued(a, 'x', b);
    const heard = new GrantLog(b.store);
    const token = lease.fencingToken + 32;
    const forged = [
      `${sealOf(`${token} 1`, `${b.store.clientId}/guess`)} ${token} 1 x`,
      `${sealOf(`${token} 1`, `${b.store.clientId}/`)} ${token} 1 x`,
      `${sealOf(`${token} 999999999`, b.instanceId)} ${token} 999999999 x`,
      `${sealOf(`${token} 1`, `${a.store.clientId}/guess`)} ${token} 1 x`,
      `${sealOf(`${token} 1`, `${b.store.clientId}/guess`)} ${token} 1 y`,
      `${sealOf(`${token} 1`, 'undefined')} ${token} 1 x`,
    ];
    const garbage = [
      '',
      ' ',
      'x',
      '{}',
      `${b.store.clientId}/guess x`,
      `${b.store.clientId}/guess ${token} 1 x`,
      `${'0'.repeat(40)} -1 -1 x`,
      '\0\n\r 1 1 %',
      'é',
    ];
    for (const text of [...forged, ...garbage]) {
      expect(await admin().publish(b.store.keys.inbox(b.store.clientId), text)).toBe(1);
    }
    await eventually(() => expect(heard.size).toBeGreaterThanOrEqual(forged.length));
    await eventually(() => expect(b.locks.stats().orphanReleases).toBe(0));
    expect(waiting.state).toBe('pending');
    expect(await lease.verify()).toBe(true);
    await untilQueued(a, 'x', b);
    await lease.release();
    await eventually(() => expect(waiting.value.isHeld()).toBe(true));
    await waiting.value.release();
    await expectNothingLeft(admin(), a, b);
  });
});

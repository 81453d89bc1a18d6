import { CriticalSections } from '../../support/expect/critical-sections.js';
import { eventually } from '../../support/expect/eventually.js';
import {
  expectNothingLeft,
  type LockInstance,
  untilQueued,
  useAdmin,
  useInstances,
} from '../../support/redis/lock-instances.js';
import { useRedis } from '../../support/redis/redis-server.js';
import { TcpProxy } from '../../support/network/tcp-proxy.js';
import { gate } from '../../support/expect/tracked.js';

/** A heartbeat is due after 1 to 1.25 s; the rest is for a busy machine. The lease of the holder is a minute. */
const HEARTBEAT_MS = 1_250 + 15_000;
const LONG = { leaseMs: 60_000 };

describe('messages that do not come', () => {
  const redis = useRedis();
  const admin = useAdmin(() => redis().url);
  const start = useInstances(() => redis().url);

  const startBehindProxy = async () => {
    const proxy = await TcpProxy.start(redis().port);
    return { proxy, far: await start({ connection: proxy.url }) };
  };
  /** `true` if its inbox has a listener, as a release sees it. */
  const listeners = async ({ store }: LockInstance) => {
    return ((await admin().pubsub('NUMSUB', store.keys.inbox(store.clientId))) as [string, number])[1];
  };

  it.each([
    ['nothing comes from Redis', ['toClient']],
    ['nothing goes to Redis', ['toServer']],
    ['nothing passes', ['toClient', 'toServer']],
  ] as const)('where %s on the connection that listens, the waiter is granted by a heartbeat', async (_what, held) => {
    const near = await start();
    const { proxy, far } = await startBehindProxy();
    await using _ = proxy;
    const lease = await near.locks.acquire('x', LONG);
    for (const direction of held) proxy.blackHole(direction, 'subscriber');
    const sections = new CriticalSections();
    const waiting = sections.calls(2, far, LONG);
    await untilQueued(near, 'x', far);
    const from = performance.now();
    await lease.release();
    await waiting;
    expect(performance.now() - from).toBeLessThan(HEARTBEAT_MS);
    sections.expectSound(2);
    proxy.heal();
    await expectNothingLeft(admin(), near, far);
  });

  it('an instance that does not listen when its turn comes is passed over, and goes to the end of the queue', async () => {
    const [a, b, c] = [await start(), await start(), await start()];
    const { proxy, far } = await startBehindProxy();
    await using _ = proxy;
    const sections = new CriticalSections();
    const lease = await a.locks.acquire('x', LONG);
    // Its new connections come up, and their SUBSCRIBE does not arrive.
    proxy.blackHole('toServer', 'subscriber');
    proxy.cut('subscriber');
    await eventually(async () => expect(await listeners(far)).toBe(0));
    const farCall = sections.call(far, LONG);
    await untilQueued(a, 'x', far);
    const hold = gate();
    const nearCall = sections.call(b, LONG, () => hold.opened);
    await untilQueued(a, 'x', far, b);
    const thirdCall = sections.call(c, LONG);
    await untilQueued(a, 'x', far, b, c);
    await lease.release();
    await eventually(() => expect(sections.order(far, b)).toEqual([1]));
    await untilQueued(a, 'x', c, far);
    proxy.heal();
    await eventually(async () => expect(await listeners(far)).toBe(1));
    const last = sections.call(a, LONG);
    await untilQueued(b, 'x', c, far, a);
    hold.open();
    await Promise.all([farCall, nearCall, thirdCall, last]);
    expect(sections.order(far, b, c, a)).toEqual([1, 2, 0, 3]);
    sections.expectSound(4);
    await expectNothingLeft(admin(), a, b, c, far);
  });

  it('a connection that comes back is a reason to ask at once', async () => {
    const near = await start();
    const { proxy, far } = await startBehindProxy();
    await using _ = proxy;
    const lease = await near.locks.acquire('x', LONG);
    const waiting = far.locks.acquire('x', { ...LONG, waitMs: 60_000 });
    await untilQueued(near, 'x', far);
    proxy.blackHole('toClient', 'subscriber');
    await lease.release();
    const from = performance.now();
    proxy.cut('subscriber');
    proxy.heal();
    await (await waiting).release();
    // By itself it would keep its place, and hear that it is gone, a third of a lease after it came.
    expect(performance.now() - from).toBeLessThan(LONG.leaseMs / 6);
    await expectNothingLeft(admin(), near, far);
  });

  it('repeated CLIENT KILL of all subscribers delays no call for long', async () => {
    const instances = await Promise.all([start(), start(), start()]);
    const sections = new CriticalSections();
    let killed = 0;
    const calls = instances.map((instance) =>
      sections.calls(12, instance, { ...LONG, strictOrder: true }, async () => {
        if (sections.tokens.length % 4 === 0)
          killed += (await admin().call('CLIENT', 'KILL', 'TYPE', 'pubsub')) as number;
      }),
    );
    await Promise.all(calls);
    expect(killed).toBeGreaterThan(3);
    sections.expectSound(36);
    await expectNothingLeft(admin(), ...instances);
  });

  it('without any subscription, each waiter is still served', async () => {
    const { proxy, far } = await startBehindProxy();
    await using _ = proxy;
    const instances = [far, await start({ connection: proxy.url }), await start({ connection: proxy.url })];
    proxy.blackHole('toClient', 'subscriber');
    const sections = new CriticalSections();
    await Promise.all(instances.map((instance) => sections.calls(3, instance, LONG)));
    sections.expectSound(9);
    expect(new Set(sections.order(...instances))).toEqual(new Set([0, 1, 2]));
    proxy.heal();
    await expectNothingLeft(admin(), ...instances);
  });
});

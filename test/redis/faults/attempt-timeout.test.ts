import { LockUnavailableError } from '../../../lib/kernel/api/errors.js';
import type { Lease } from '../../../lib/kernel/api/lease.js';
import { ACQUIRE } from '../../../lib/redis/script/scripts.js';
import { eventually, rejection } from '../../support/expect/eventually.js';
import { resetCounts, untilQueued, useAdmin, useInstances } from '../../support/redis/lock-instances.js';
import { useRedis } from '../../support/redis/redis-server.js';
import { TcpProxy } from '../../support/network/tcp-proxy.js';

const ATTEMPT_MS = 300;

/** Blocks the process like synchronous work, or like a container with too little CPU. */
function block(ms = 2 * ATTEMPT_MS): void {
  for (const from = performance.now(); performance.now() < from + ms;);
}

describe('an attempt that times out leaves no orphan lock', () => {
  const redis = useRedis();
  const admin = useAdmin(() => redis().url);
  const start = useInstances(() => redis().url);

  const throughProxy = async () => {
    const proxy = await TcpProxy.start(redis().port);
    const instance = await start({ connection: proxy.url, defaults: { leaseMs: 60_000, attemptTimeoutMs: 500 } });
    await (await instance.locks.acquire('warm-up')).release();
    await resetCounts(admin());
    return { proxy, ...instance };
  };
  const expectNoLock = () =>
    eventually(async () => expect(await admin().exists('lock:{a}', 'lock:{a}:waiters')).toBe(0));

  it('when the reply comes too late: the attempt was executed, and is withdrawn', async () => {
    const { proxy, locks } = await throughProxy();
    await using _ = proxy;
    proxy.blackHole('toClient', 'commands');
    const error = await rejection<LockUnavailableError>(locks.acquire('a', { waitMs: 0 }));
    expect(error).toBeInstanceOf(LockUnavailableError);
    expect(error.lastAttempt).toBe('timeout');
    proxy.heal();
    await expectNoLock();
  });

  it('when the reply is lost with its connection', async () => {
    const { proxy, locks } = await throughProxy();
    await using _ = proxy;
    const lost = proxy.loseReplyTo(ACQUIRE.sha);
    const error = await rejection<LockUnavailableError>(locks.acquire('a', { waitMs: 0 }));
    await lost;
    expect(error.lastAttempt).toBe('failed');
    await expectNoLock();
  });
});

describe('a process that is blocked for longer than attemptTimeoutMs, while Redis answers', () => {
  const redis = useRedis();
  const admin = useAdmin(() => redis().url);
  const start = useInstances(() => redis().url);
  const patient = { leaseMs: 60_000, attemptTimeoutMs: ATTEMPT_MS };

  it('has its answers, and does not say that Redis gave none', async () => {
    const { locks, events } = await start({ defaults: patient });
    const callAll = async (round: string, meanwhile: () => void) => {
      const acquire = (number: number): Promise<Lease> => locks.acquire(`${round} ${number}`);
      const [released, extended, verified] = await Promise.all([acquire(1), acquire(2), acquire(3)]);
      const calls = [
        released.release(),
        extended.extend(30_000),
        verified.verify(),
        locks.inspect(`${round} 1`),
        locks.tryAcquire(`${round} tried`),
        locks.acquire(`${round} at once`, { waitMs: 0 }),
        locks.acquire(`${round} soon`, { waitMs: ATTEMPT_MS }),
        locks.acquire([`${round} several`, `${round} of them`], { waitMs: 0 }),
      ];
      meanwhile();
      return Promise.allSettled(calls);
    };
    // A script that Redis does not know is sent a second time, and its answer comes later.
    await callAll('before', () => undefined);
    events.length = 0;
    const outcomes = await callAll('then', block);
    expect(outcomes.filter(({ status }) => status === 'rejected')).toEqual([]);
    expect(outcomes[4]).toMatchObject({ value: { resource: 'then tried' } });
    const told = new Set(events.map(({ type }) => type));
    expect([...told].sort()).toEqual(['acquired', 'released']);
    expect(await admin().exists('lock:{then 1}')).toBe(0);
  });

  it('is granted what it waited for, though its time was over when it went on', async () => {
    const [holder, waiter] = [await start({ defaults: patient }), await start({ defaults: patient })];
    const lease = await holder.locks.acquire('stock');
    const waiting = waiter.locks.acquire('stock', { waitMs: 2 * ATTEMPT_MS });
    await untilQueued(holder, 'stock', waiter);
    const released = lease.release();
    block(4 * ATTEMPT_MS);
    expect((await waiting).isHeld()).toBe(true);
    await released;
  });
});

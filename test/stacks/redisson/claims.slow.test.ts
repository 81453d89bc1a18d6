import { randomUUID } from 'node:crypto';
import { Redis } from 'ioredis';
import type { ForeignClaim, ForeignClient, ForeignLock } from '../../../lib/core/api/foreign-lock.js';
import type { LockStoreError } from '../../../lib/core/store/store-error.js';
import { redisson } from '../../../lib/migration/redisson.js';
import { eventually, rejection } from '../../support/expect/eventually.js';
import { useRedis } from '../../support/redis/redis-server.js';
import { channelOf, RedissonService, type RedissonThread } from '../../support/redisson/redisson-service.js';

/** Longer than any of these tests: a waiter that gets the lock was woken. */
const LONG_MS = 600_000;
const NEVER = new AbortController().signal;
/** As docs/migration/from-redisson.md names them. */
const RIGHTS = '+eval +evalsha +pttl +pexpire +hexists +hset +hdel +hkeys +publish +subscribe +unsubscribe'.split(' ');

describe('a claim to an RLock, beside the actor that behaves as RedissonLock', () => {
  const redis = useRedis();
  let admin: Redis;
  let java: RedissonService;
  let thread: RedissonThread;
  let ours: ForeignClient;

  beforeEach(async () => {
    admin = new Redis(redis().url);
    await admin.flushall();
    java = RedissonService.connect(redis().port, { watchdogMs: LONG_MS });
    thread = java.thread(1);
    ours = open();
  });

  afterEach(async () => {
    java.close();
    await ours.close();
    admin.disconnect();
  });

  it('each excludes the other, and two claims of ours exclude each other', async () => {
    const claim = ours.claim('stock');
    expect(await claim.tryAcquire(LONG_MS, NEVER)).toEqual({ status: 'held' });
    expect(await thread.tryLock('stock')).toBe(false);
    expect((await ours.claim('stock').tryAcquire(LONG_MS, NEVER)).status).toBe('busy');
    expect(await claim.release(0)).toBe(true);

    expect(await thread.tryLock('stock', 0, 5_000)).toBe(true);
    const reply = await claim.tryAcquire(LONG_MS, NEVER);
    expect(reply).toEqual({ status: 'busy', ttlMs: expect.any(Number) as number });
    expect(reply.status === 'busy' && reply.ttlMs).toBeGreaterThan(4_000);
    expect(await claim.renew(LONG_MS)).toBe(false);
    expect(await claim.release(0)).toBe(false);
    expect(await thread.isLocked('stock')).toBe(true);
  });

  it('is a thread of an application in the hash, and holds once however often it is sent', async () => {
    const claim = ours.claim('stock');
    await claim.tryAcquire(1_000, NEVER);
    await claim.tryAcquire(LONG_MS, NEVER);
    const fields = Object.entries(await admin.hgetall('stock'));
    expect(fields).toEqual([[expect.stringMatching(/^[\w-]+:1$/), '1']]);
    expect(await admin.pttl('stock')).toBeGreaterThan(1_000);
    // Sent before, and executed late.
    await claim.renew(1_000);
    expect(await admin.pttl('stock')).toBeGreaterThan(1_000);
    await claim.release(0);
    expect(await admin.exists('stock')).toBe(0);
  });

  it('a thread that has entered twice and unlocks once still excludes us', async () => {
    await thread.lock('stock');
    await thread.lock('stock');
    const waiting = untilHeld(ours.claim('stock'));
    await untilSubscribed();
    await thread.unlock('stock');
    expect(await thread.holdCount('stock')).toBe(1);
    expect((await ours.claim('stock').tryAcquire(1_000, NEVER)).status).toBe('busy');
    await thread.unlock('stock');
    await waiting;
  });

  it('an unlock wakes our waiter: it asks three times, and listens only while it waits', async () => {
    await thread.lock('stock');
    const before = await scriptsRun();
    const claim = ours.claim('stock');
    const waiting = untilHeld(claim);
    await untilSubscribed();
    // At first, and when it listens.
    await eventually(async () => expect(await scriptsRun()).toBe(before + 2));
    await thread.unlock('stock');
    await waiting;
    // The unlock, and the question after it.
    expect(await scriptsRun()).toBe(before + 4);
    await eventually(async () => expect(await subscribers()).toBe(0));
  });

  it('our release wakes a thread that waits', async () => {
    const claim = ours.claim('stock');
    await claim.tryAcquire(LONG_MS, NEVER);
    const waiting = thread.lock('stock');
    await untilSubscribed();
    await claim.release(0);
    await waiting;
    expect(await thread.holdCount('stock')).toBe(1);
  });

  it('a lock that is kept for a time frees itself, and a repeated release knows that it was executed', async () => {
    const claim = ours.claim('stock');
    await claim.tryAcquire(LONG_MS, NEVER);
    expect(await claim.release(2_000)).toBe(true);
    expect(await claim.release(2_000)).toBe(true);
    // A command of its owner that comes late does not take it again.
    expect((await claim.tryAcquire(LONG_MS, NEVER)).status).toBe('busy');
    expect(await claim.renew(LONG_MS)).toBe(false);
    await thread.lock('stock');
  });

  it('a forced unlock wakes our waiter, and a claim that is forced out knows at its next renewal', async () => {
    const [holder, waiter] = [ours.claim('stock'), ours.claim('stock')];
    await holder.tryAcquire(LONG_MS, NEVER);
    const waiting = untilHeld(waiter);
    await untilSubscribed();
    expect(await thread.forceUnlock('stock')).toBe(true);
    await waiting;
    expect(await holder.renew(LONG_MS)).toBe(false);
    expect(await holder.release(0)).toBe(false);
    expect((await thread.tryLock('stock')) || (await waiter.renew(LONG_MS))).toBe(true);
  });

  it('an unlock between the question and the subscription is not missed', async () => {
    await thread.lock('stock');
    const claim = ours.claim('stock');
    expect((await claim.tryAcquire(LONG_MS, NEVER)).status).toBe('busy');
    await thread.unlock('stock');
    await claim.whenFree!(LONG_MS, NEVER);
    expect((await claim.tryAcquire(LONG_MS, NEVER)).status).toBe('held');
  });

  it.each(['while it waits', 'between two questions'])('a call that gives up %s listens no more', async (when) => {
    await thread.lock('stock');
    const giveUp = new AbortController();
    const claim = ours.claim('stock');
    await claim.tryAcquire(LONG_MS, giveUp.signal);
    // Ends when it listens.
    await claim.whenFree!(LONG_MS, giveUp.signal);
    await claim.tryAcquire(LONG_MS, giveUp.signal);
    const pause = new AbortController();
    const waiting = when === 'while it waits' ? claim.whenFree!(LONG_MS, pause.signal) : undefined;
    expect(await subscribers()).toBe(1);
    giveUp.abort();
    pause.abort();
    await waiting;
    await eventually(async () => expect(await subscribers()).toBe(0));
    expect((await rejection(claim.tryAcquire(LONG_MS, giveUp.signal))).message).toContain('given up');
  });

  it('asks again when its connection for messages is new: an unlock may have been missed', async () => {
    await thread.lock('stock');
    const waiting = untilHeld(ours.claim('stock'));
    await untilSubscribed();
    await admin.del('stock');
    await admin.call('CLIENT', 'KILL', 'TYPE', 'pubsub');
    await waiting;
    expect(await thread.tryLock('stock')).toBe(false);
  });

  it('the name of the channel has braces unless the name of the lock has one', async () => {
    for (const name of ['order:7', 'order:{7}']) {
      await thread.lock(name);
      const waiting = untilHeld(ours.claim(name));
      await eventually(async () => expect(await admin.pubsub('CHANNELS')).toEqual([channelOf(name)]));
      await thread.unlock(name);
      await waiting;
    }
  });

  it('the rights that the guide names are enough', async () => {
    const limited = openAs('limited', ['&redisson_lock__channel:*', ...RIGHTS]);
    const claim = limited.claim('stock');
    await thread.lock('stock');
    const waiting = untilHeld(claim);
    await untilSubscribed();
    await thread.unlock('stock');
    await waiting;
    await eventually(async () => expect(await subscribers()).toBe(0));
    expect(await claim.renew(LONG_MS)).toBe(true);
    expect(await claim.release(0)).toBe(true);
    await limited.close();
  });

  it('a release that may not wake the waiters is refused, and changes nothing', async () => {
    const limited = openAs('silent', RIGHTS);
    const claim = limited.claim('stock');
    await claim.tryAcquire(LONG_MS, NEVER);
    const error = await rejection<LockStoreError>(claim.release(0));
    expect(error.failure).toBe('refused');
    expect(error.message).toMatch(/NOPERM|ACL/);
    expect(await claim.renew(LONG_MS)).toBe(true);
    await limited.close();
  });

  it('a key of another kind is an error that names it as such', async () => {
    await admin.set('stock', 'a string');
    expect((await rejection(ours.claim('stock').tryAcquire(1_000, NEVER))).message).toContain('WRONGTYPE');
  });

  function open(): ForeignClient {
    return openBy(redisson({ client: redis().url }));
  }

  /** With no other rights than these. */
  function openAs(username: string, rights: string[]): ForeignClient {
    void admin.acl('SETUSER', username, 'reset', 'on', '>secret', '~stock', ...rights);
    return openBy(redisson({ client: { port: redis().port, username, password: 'secret' } }));
  }

  function openBy(lock: ForeignLock): ForeignClient {
    return lock.open({ instanceId: 'test', now: () => performance.now(), randomId: () => randomUUID() });
  }

  async function subscribers(): Promise<number> {
    return Number((await admin.pubsub('NUMSUB', channelOf('stock')))[1]);
  }

  function untilSubscribed(): Promise<void> {
    return eventually(async () => expect(await subscribers()).toBe(1));
  }

  /** How many scripts the server has run, or was asked to run. */
  async function scriptsRun(): Promise<number> {
    const stats = await admin.info('commandstats');
    const calls = [...stats.matchAll(/cmdstat_eval(?:sha)?:calls=(\d+),.*failed_calls=(\d+)/g)];
    return calls.reduce((sum, [, all, failed]) => sum + Number(all) - Number(failed), 0);
  }
});

/** What a call does that waits for a lock. */
async function untilHeld(claim: ForeignClaim): Promise<void> {
  for (;;) {
    const reply = await claim.tryAcquire(LONG_MS, NEVER);
    if (reply.status === 'held') return;
    const pause = new AbortController();
    await claim.whenFree!(reply.ttlMs, pause.signal);
    pause.abort();
  }
}

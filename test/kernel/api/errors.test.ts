import { LockBusyError, LockQueueFullError, LockTimeoutError } from '../../../lib/kernel/api/busy-errors.js';
import * as errors from '../../../lib/kernel/api/errors.js';
import type { Holder, Holders } from '../../../lib/kernel/api/holder.js';
import { LeaseLostError, LockReentryError } from '../../../lib/kernel/api/lease-errors.js';
import { gate, track } from '../../support/expect/tracked.js';
import { settle } from '../../support/world/fake-clock.js';
import { type Instance, LockWorld } from '../../support/world/lock-world.js';
import { repliedWhen } from '../../support/world/scripted-store.js';

describe('errors', () => {
  const all = [
    new LockBusyError('stock', { attempts: 1, retryAfterMs: 900 }),
    new LockTimeoutError('stock', { waitedMs: 500, attempts: 3, retryAfterMs: 900 }),
    new LockQueueFullError('stock', { maxWaiters: 8, where: 'redis', attempts: 1, retryAfterMs: 900 }),
    new errors.LockAbortedError('stock', undefined),
    new LeaseLostError('stock', 'expired', 32),
    LockReentryError.waitingForItself('stock', 'exclusive', 'exclusive'),
    LockReentryError.foreignRelease('stock'),
    LockReentryError.upgrade('stock'),
    LockReentryError.waitingForOwnPermits('stock', 2, 2, 3),
    LockReentryError.sharedByOthers('stock'),
    new errors.LockUnavailableError('stock', 'acquire', 'failed', new Error('READONLY')),
    new errors.LockShutdownError('stock'),
  ];

  it.each(all.map((error) => [error.name, error] as const))(
    '%s names the resource, its code and itself',
    (name, error) => {
      expect(error).toBeInstanceOf(errors.LockError);
      expect(error).toBeInstanceOf(Error);
      expect(error.resource).toBe('stock');
      expect(error.message).toContain('"stock"');
      expect(error.code).toMatch(/^(LOCK|LEASE)_[A-Z_]+$/);
      expect(error.constructor.name).toBe(name);
      expect(error.stack).toContain(name);
    },
  );

  it('have one code for each class', () => {
    const codes = new Map(all.map((error) => [error.code, error.name]));
    expect(new Set(codes.values()).size).toBe(codes.size);
  });

  it('use one class for "busy", for every call whose resource is held or waited for', () => {
    const busy = all.filter((error) => error instanceof LockBusyError);
    expect(busy.map(({ name, code }) => [name, code])).toEqual([
      ['LockBusyError', 'LOCK_BUSY'],
      ['LockTimeoutError', 'LOCK_TIMEOUT'],
      ['LockQueueFullError', 'LOCK_QUEUE_FULL'],
    ]);
    for (const error of busy) expect(error).toMatchObject({ lastAttempt: 'busy', retryAfterMs: 900, holderCount: 0 });
    expect(busy.filter((error) => error instanceof LockTimeoutError)).toHaveLength(1);
    expect(busy.filter((error) => error instanceof LockQueueFullError)).toHaveLength(1);
  });

  it('explain every reason of a loss', () => {
    const reasons = ['expired', 'takenOver', 'notRenewed', 'maxHold', 'shutdown', 'released'] as const;
    const messages = reasons.map((reason) => new LeaseLostError('stock', reason, 1).message);
    expect(new Set(messages).size).toBe(reasons.length);
    for (const message of messages) expect(message).not.toContain('undefined');
  });

  it('quote hostile names on one line, and cut long ones', () => {
    const { message } = new LockBusyError(`evil\n\u001b[31m${'x'.repeat(500)}`, { attempts: 1, retryAfterMs: 0 });
    expect(message).not.toMatch(/[\n\u001b]/);
    expect(message.length).toBeLessThan(300);
  });

  describe('name the holders', () => {
    const holder = (instanceId: string, more: Partial<Holder> = {}): Holder => ({
      instanceId,
      isThisProcess: false,
      mode: 'exclusive',
      fencingToken: 32,
      ttlMs: 27_000,
      leaseMs: 30_000,
      heldMs: 42_000,
      depth: 1,
      ...more,
    });
    const seen = (...holders: Holder[]) => ({ holders, holderCount: holders.length });
    const busy = (of: Holders, attempts = 1) =>
      new LockBusyError('order:7', { attempts, retryAfterMs: 27_000, seen: of });
    const timeout = (of: Holders, attempts = 3) =>
      new LockTimeoutError('order:7', { waitedMs: 301, attempts, retryAfterMs: 900, seen: of });

    it('one in another process', () => {
      expect(busy(seen(holder('api-3:4711'))).message).toBe(
        '"order:7" has been held by api-3:4711 for 42 s (its lease has 27 s left unless renewed). ' +
          'Set waitMs to wait for it, or try again later.',
      );
      expect(timeout(seen(holder('api-3:4711'))).message).toBe(
        '"order:7" has been held by api-3:4711 for 42 s; waited 301 ms (3 attempts). ' +
          'Raise waitMs, hold the lock for less time, or try again later.',
      );
    });

    it('one in this process, and a wait behind others of it', () => {
      const own = seen(holder('api-3:4711', { isThisProcess: true, heldMs: 1_810 }));
      expect(timeout(own, 0).message).toMatch(
        /^"order:7" has been held by another call of this process for 1\.8 s; waited 301 ms behind other calls of this process\. /,
      );
    });

    it.each([
      [['a', 'b'], 2, '2 holders: a and b'],
      [['a', 'b', 'c'], 3, '3 holders: a, b and 1 more'],
      [['a', 'b', 'c'], 30, '30 holders: a, b and 28 more'],
      [['a', 'a', 'b'], 3, '3 holders: a (2) and b'],
      [['a', 'a'], 2, '2 holders: a (2)'],
      [['a'], 5, '5 holders: a and 4 more'],
      [['this', 'b'], 2, '2 holders: this process and b'],
    ])('several: %j of %d', (names, holderCount, text) => {
      const holders = names.map((name) =>
        holder(name, { mode: 'semaphore', permits: 1, isThisProcess: name === 'this' }),
      );
      expect(busy({ holders, holderCount }).message).toContain(`"order:7" is held by ${text}. Set waitMs`);
      expect(timeout({ holders, holderCount }, 1).message).toContain(`"order:7" is held by ${text}; waited 301 ms.`);
      expect(timeout({ holders, holderCount })).toMatchObject({ holders, holderCount });
    });

    it('as readers', () => {
      const readers = [holder('a', { mode: 'read' }), holder('b', { mode: 'read' })];
      expect(timeout(seen(...readers)).message).toContain('is held by 2 readers: a and b; waited');
    });

    it('of a full queue', () => {
      const full = (where: 'process' | 'redis', most: number, of?: Holders) =>
        new LockQueueFullError('order:7', {
          maxWaiters: most,
          where,
          attempts: 1,
          retryAfterMs: 900,
          seen: of,
        }).message.split('. ')[0];
      expect(full('process', 1)).toBe(
        'The queue for "order:7" is full: 1 call of this process is already waiting (maxWaiters)',
      );
      expect(full('process', 2, seen(holder('a')))).toBe(
        'The queue for "order:7" is full: 2 calls of this process are already waiting (maxWaiters), ' +
          'and the resource has been held by a for 42 s',
      );
      expect(full('redis', 3)).toBe('The queue for "order:7" is full: 3 processes are already waiting (maxWaiters)');
    });

    it('unless none is known', () => {
      const unknown = { holders: [], holderCount: 0 };
      expect(busy(unknown, 2).message).toMatch(/^"order:7" is held by another holder \(2 attempts\)\. Set waitMs/);
      expect(timeout(unknown, 0).message).toMatch(
        /^"order:7" was not free within 301 ms: this call waited behind other calls of this process\. Raise/,
      );
      expect(timeout(unknown)).toMatchObject({ holders: [], holderCount: 0 });
      expect(new LockBusyError('order:7', { attempts: 1, retryAfterMs: 0 })).toMatchObject({
        holders: [],
        holderCount: 0,
      });
    });

    it('quoted and cut, if another program has written the name', () => {
      const evil = holder(`evil\n\u001b[31m\u202e${'x'.repeat(500)}`);
      for (const { message } of [busy(seen(evil)), timeout(seen(evil, evil))]) {
        expect(message).not.toMatch(/[\n\u001b\u202e]/);
        expect(message.length).toBeLessThan(400);
        expect(message).toContain('"evil\\n');
      }
    });
  });
});

/** Tests the promises of docs/reference/events.md about the order of events. */
describe('the order of events', () => {
  let world: LockWorld;
  let a: Instance;
  let b: Instance;
  /** The events of all observers, in order. */
  let told: string[];

  beforeEach(() => {
    world = new LockWorld();
    told = [];
    [a, b] = ['a', 'b'].map((name) => {
      const instance = world.instance(name);
      instance.locks.observers.add(({ type }) => void told.push(`${name} ${type}`));
      return instance;
    }) as [Instance, Instance];
  });

  it('observers get a lease before acquire() resolves, and its end before release() resolves', async () => {
    const lease = await a.locks.acquire('stock').finally(() => told.push('acquire() resolves'));
    await lease.release().finally(() => told.push('release() resolves'));
    expect(told).toEqual(['a acquired', 'acquire() resolves', 'a released', 'release() resolves']);
  });

  it('release() resolves before the event with backgroundRelease', async () => {
    const lease = await a.locks.acquire('stock', { backgroundRelease: true });
    await lease.release().finally(() => told.push('release() resolves'));
    await settle();
    expect(told).toEqual(['a acquired', 'release() resolves', 'a released']);
  });

  it('a lost lease ends once: its release emits another type', async () => {
    const lease = await a.locks.acquire('stock', { leaseMs: 1_000, watchdog: false });
    await world.clock.advance(1_000);
    await lease.release();
    expect(told).toEqual(['a acquired', 'a lost', 'a releasedAfterLoss']);
  });

  it('in memory, the former lease ends before the next one begins', async () => {
    const first = await a.locks.acquire('stock');
    const second = track(a.locks.acquire('stock'));
    await first.release();
    await settle();
    expect(second.state).toBe('fulfilled');
    expect(a.store.sent('rotate')).toEqual([]);
    expect(told).toEqual(['a acquired', 'a waiting', 'a released', 'a acquired']);
  });

  it('the next lease of the same process may begin first if it takes a command', async () => {
    const first = await a.locks.acquire('stock', { strictOrder: true });
    const second = track(a.locks.acquire('stock', { strictOrder: true }));
    await first.release();
    await settle();
    expect(second.value.fencingToken).toBeGreaterThan(first.fencingToken);
    expect(told).toEqual(['a acquired', 'a waiting', 'a acquired', 'a released']);
  });

  it('the next lease of another process may begin first; its token is larger in any order', async () => {
    const first = await a.locks.acquire('stock');
    const second = track(b.locks.acquire('stock'));
    await settle();
    const reply = gate();
    a.store.next('release', repliedWhen(reply.opened));
    const releasing = first.release();
    await settle();
    expect(told).toEqual(['a acquired', 'b waiting', 'b acquired']);
    reply.open();
    await releasing;
    expect(told).toEqual(['a acquired', 'b waiting', 'b acquired', 'a released']);
    expect(second.value.fencingToken).toBeGreaterThan(first.fencingToken);
  });
});

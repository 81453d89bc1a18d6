import { LockReentryError } from '../../../lib/kernel/api/lease-errors.js';
import type { Lease } from '../../../lib/kernel/api/lease.js';
import type { AcquireMode } from '../../../lib/kernel/api/lock-options.js';
import { gate, track } from '../../support/expect/tracked.js';
import { settle } from '../../support/world/fake-clock.js';
import { eventsOf, type Instance, LockWorld } from '../../support/world/lock-world.js';
import { executedWhen, failing, repliedWhen, replyLost } from '../../support/world/scripted-store.js';

const REENTRANT = { mode: 'reentrant' } as const;
/** Nothing but an entry renews it, so an entry waits for the answer. */
const FIXED = { ...REENTRANT, watchdog: false } as const;

describe('reentrant mode', () => {
  let world: LockWorld;
  let a: Instance;
  let b: Instance;

  beforeEach(() => {
    world = new LockWorld();
    a = world.instance('a');
    b = world.instance('b');
  });

  async function depth(): Promise<number | undefined> {
    return (await b.locks.inspect('stock')).holders[0]?.depth;
  }

  it('enters again in the same async context: same token, one level deeper; only the last release frees it', async () => {
    const depths: (number | undefined)[] = [];
    const tokens = new Set<number>();
    await a.locks.using('stock', REENTRANT, async (outer) => {
      tokens.add(outer.fencingToken);
      depths.push(await depth());
      await a.locks.using('stock', REENTRANT, async (middle) => {
        tokens.add(middle.fencingToken);
        depths.push(await depth());
        await a.locks.using('stock', REENTRANT, async (inner) => {
          tokens.add(inner.fencingToken);
          depths.push(await depth());
        });
        depths.push(await depth());
      });
      depths.push(await depth());
      expect(outer.isHeld()).toBe(true);
    });
    expect(depths).toEqual([1, 2, 3, 2, 1]);
    expect(tokens.size).toBe(1);
    expect(world.server.isEmpty).toBe(true);
    expect(a.store.sent('acquire')).toHaveLength(1);
    expect(new Set(a.store.commands.map(({ owner }) => owner)).size).toBe(1);
  });

  it('keeps other contexts of the same process out', async () => {
    const done = gate();
    const holder = track(a.locks.using('stock', REENTRANT, () => done.opened));
    await settle();
    const other = track(a.locks.using('stock', REENTRANT, async () => 'entered'));
    await world.clock.advance(1_000);
    expect(other.state).toBe('pending');
    done.open();
    await settle();
    expect([holder.state, other.state]).toEqual(['fulfilled', 'fulfilled']);
  });

  it('lets siblings in Promise.all share the ownership of their parent', async () => {
    await a.locks.using('stock', REENTRANT, async (parent) => {
      const siblings = await Promise.all(
        [1, 2, 3].map(() =>
          a.locks.using('stock', REENTRANT, async (lease) => {
            await settle();
            return lease.fencingToken;
          }),
        ),
      );
      expect(siblings).toEqual(Array(3).fill(parent.fencingToken));
      expect(await depth()).toBe(1);
    });
    expect(world.server.isEmpty).toBe(true);
  });

  it('does not let an un-awaited child re-enter after the release: it waits like any other call', async () => {
    const late = gate();
    let child!: Promise<number>;
    let parentToken = 0;
    await a.locks.using('stock', REENTRANT, async (lease) => {
      parentToken = lease.fencingToken;
      child = late.opened.then(() => a.locks.using('stock', REENTRANT, async (own) => own.fencingToken));
    });
    const other = await b.locks.acquire('stock');
    late.open();
    const waiting = track(child);
    await world.clock.advance(500);
    expect(waiting.state).toBe('pending');
    await other.release();
    await settle();
    expect(waiting.value).toBeGreaterThan(parentToken);
  });

  it('keeps the lock for an un-awaited child that has entered', async () => {
    const work = gate();
    let child!: Promise<void>;
    await a.locks.using('stock', REENTRANT, async () => {
      child = a.locks.using('stock', REENTRANT, () => work.opened);
      await settle();
    });
    expect(await depth()).toBe(1);
    work.open();
    await child;
    expect(world.server.isEmpty).toBe(true);
  });

  it('refuses a release by a foreign context, and nothing is released', async () => {
    const done = gate();
    let lease!: Lease;
    const holder = track(
      a.locks.using('stock', REENTRANT, async (own) => {
        lease = own;
        await done.opened;
      }),
    );
    await settle();
    await expect(lease.release()).rejects.toBeInstanceOf(LockReentryError);
    await expect(lease.release()).rejects.toThrow(/Nothing was released/);
    expect(await depth()).toBe(1);
    expect(lease.isHeld()).toBe(true);
    done.open();
    await settle();
    expect(holder.state).toBe('fulfilled');
    expect(world.server.isEmpty).toBe(true);
  });

  it('does not let a child re-enter whose own lease has ended, even while a sibling still keeps the lock', async () => {
    const [late, work] = [gate(), gate()];
    let child!: Promise<string>;
    let sibling!: Promise<void>;
    await a.locks.using('stock', REENTRANT, async () => {
      sibling = a.locks.using('stock', REENTRANT, () => work.opened);
      child = late.opened.then(() => a.locks.using('stock', REENTRANT, async () => 'entered'));
      await settle();
    });
    const entering = track(child);
    late.open();
    await settle();
    expect(entering.state).toBe('pending');
    work.open();
    await sibling;
    await world.clock.advance(1_000);
    expect(entering.value).toBe('entered');
  });

  it('does nothing if a lease is released a second time, from whatever context', async () => {
    let lease!: Lease;
    await a.locks.using('stock', REENTRANT, async (own) => void (lease = own));
    await lease.release();
    expect(a.store.sent('release')).toHaveLength(1);
  });

  it('counts an entry whose reply was lost no more than once', async () => {
    await a.locks.using('stock', FIXED, async () => {
      a.store.next('setDepth', replyLost);
      const entering = track(a.locks.using('stock', REENTRANT, async () => 'entered'));
      await world.clock.advance(1_000);
      expect(entering.error).toMatchObject({ code: 'LOCK_UNAVAILABLE', operation: 'record the re-entry of' });
      await settle();
      expect(await depth()).toBe(1);
    });
    expect(world.server.isEmpty).toBe(true);
  });

  it('refuses an entry that Redis fails, and the outer lease continues', async () => {
    await a.locks.using('stock', FIXED, async (outer) => {
      a.store.next('setDepth', failing('refused'));
      await expect(a.locks.acquire('stock', REENTRANT)).rejects.toMatchObject({ code: 'LOCK_UNAVAILABLE' });
      expect(outer.isHeld()).toBe(true);
    });
    expect(world.server.isEmpty).toBe(true);
  });

  it('refuses to enter a lock that Redis has lost, and ends the outer lease', async () => {
    const work = track(
      a.locks.using('stock', FIXED, async (outer) => {
        world.server.lose('stock');
        await expect(a.locks.acquire('stock', REENTRANT)).rejects.toMatchObject({ code: 'LEASE_LOST' });
        expect(outer.signal.reason).toMatchObject({ reason: 'takenOver' });
      }),
    );
    await settle();
    expect(work.error).toMatchObject({ code: 'LEASE_LOST', reason: 'takenOver', workFinished: true });
  });

  it('sends depth commands one after another, so that they cannot arrive in another order', async () => {
    await a.locks.using('stock', FIXED, async () => {
      const arrival = gate();
      a.store.next('setDepth', async (execute) => {
        await arrival.opened;
        return execute();
      });
      const entering = [1, 2].map(() => track(a.locks.acquire('stock', REENTRANT)));
      await settle();
      expect(a.store.sent('setDepth')).toHaveLength(1);
      arrival.open();
      await settle();
      expect(await depth()).toBe(3);
      for (const { value } of entering) await value.release();
      await settle();
      expect(await depth()).toBe(1);
    });
  });

  describe('with a renewed lease', () => {
    it('enters and leaves without waiting for Redis, which shows the depth of the last reply', async () => {
      const arrival = gate();
      await a.locks.using('stock', REENTRANT, async () => {
        a.store.next('setDepth', executedWhen(arrival.opened));
        const entered = await Promise.all([1, 2, 3].map(() => a.locks.acquire('stock', REENTRANT)));
        for (let loop = 0; loop < 100; loop++) await a.locks.using('stock', REENTRANT, async () => {});
        await entered[0]!.release();
        expect(a.store.sent('setDepth')).toHaveLength(1);
        arrival.open();
        await settle();
        expect(await depth()).toBe(3);
        expect(a.store.sent('setDepth')).toHaveLength(2);
        for (const lease of entered) await lease.release();
        await settle();
        expect(await depth()).toBe(1);
      });
      expect(world.server.isEmpty).toBe(true);
    });

    it.each(['refused', 'unknown'] as const)(
      'enters where the answer is: %s. The next command tells the depth',
      async (failure) => {
        await a.locks.using('stock', REENTRANT, async (outer) => {
          a.store.next('setDepth', failing(failure));
          const inner = await a.locks.acquire('stock', REENTRANT);
          await settle();
          expect(outer.isHeld()).toBe(true);
          const innermost = await a.locks.acquire('stock', REENTRANT);
          await settle();
          expect(await depth()).toBe(3);
          a.store.next('setDepth', failing(failure));
          await innermost.release();
          await inner.release();
        });
        expect(world.server.isEmpty).toBe(true);
      },
    );

    it('enters a lock that Redis has lost, and is lost with the reply', async () => {
      const work = track(
        a.locks.using('stock', REENTRANT, async (outer) => {
          world.server.lose('stock');
          const inner = await a.locks.acquire('stock', REENTRANT);
          await settle();
          for (const { signal } of [outer, inner]) expect(signal.reason).toMatchObject({ reason: 'takenOver' });
        }),
      );
      await world.clock.advance(0);
      await settle();
      expect(work.error).toMatchObject({ code: 'LEASE_LOST', reason: 'takenOver', workFinished: true });
    });

    it('waits for the reply once less than half of the lease is left', async () => {
      const leaseMs = 3_000;
      await a.locks.using('stock', { ...REENTRANT, leaseMs }, async (outer) => {
        for (let times = 0; times < 10; times++) a.store.next('renew', failing('unknown'));
        await world.clock.advance(leaseMs * 0.55);
        expect(outer.remainingMs()).toBeLessThan(leaseMs / 2);
        const arrival = gate();
        a.store.next('setDepth', executedWhen(arrival.opened));
        const entering = track(a.locks.acquire('stock', REENTRANT));
        await settle();
        expect(entering.state).toBe('pending');
        arrival.open();
        await settle();
        expect(entering.value.remainingMs()).toBeGreaterThan(leaseMs * 0.9);
        await entering.value.release();
      });
    });

    it('leaves the correct depth to the next call of this process, to which it is passed on', async () => {
      const [arrival, done] = [gate(), gate()];
      const holder = track(
        a.locks.using('stock', REENTRANT, async () => {
          a.store.next('setDepth', repliedWhen(arrival.opened));
          await a.locks.using('stock', REENTRANT, () => done.opened);
        }),
      );
      await settle();
      const waiting = track(a.locks.acquire('stock', REENTRANT));
      await settle();
      done.open();
      await settle();
      expect([holder.state, waiting.state]).toEqual(['fulfilled', 'fulfilled']);
      expect(await depth()).toBe(1);
      arrival.open();
      await settle();
      expect(await depth()).toBe(1);
      await waiting.value.release();
    });
  });

  it('reports one lease to the observers, however often it is entered', async () => {
    await a.locks.using('stock', REENTRANT, () => a.locks.using('stock', REENTRANT, async () => {}));
    expect(eventsOf(a, 'acquired')).toHaveLength(1);
    expect(eventsOf(a, 'released')).toHaveLength(1);
  });
});

describe('a lock that waits for itself', () => {
  let world: LockWorld;
  let a: Instance;

  beforeEach(() => {
    world = new LockWorld();
    a = world.instance('a');
  });

  it.each([
    ['exclusive', 'exclusive'],
    ['exclusive', 'reentrant'],
    ['reentrant', 'exclusive'],
  ] as const)('is a LockReentryError at once (held %s, wanted %s)', async (held, wanted) => {
    const done = track(
      a.locks.using('stock', { mode: held }, async () => {
        await expect(a.locks.acquire('stock', { mode: wanted })).rejects.toMatchObject({
          code: 'LOCK_REENTRY',
          resource: 'stock',
          message: expect.stringContaining(`mode ${held}`),
        });
      }),
    );
    await settle();
    expect(done.state).toBe('fulfilled');
    expect(a.store.sent('acquire')).toHaveLength(1);
  });

  it.each([0, 1_000])(
    'is reported to tryAcquire too, with waitMs: %d: it is a mistake, and not busy',
    async (waitMs) => {
      await a.locks.using('stock', undefined, async () => {
        await expect(a.locks.tryAcquire('stock', { waitMs })).rejects.toMatchObject({ code: 'LOCK_REENTRY' });
        await expect(a.locks.tryUsing('stock', { waitMs }, () => {})).rejects.toMatchObject({ code: 'LOCK_REENTRY' });
      });
    },
  );

  it('is rejected before anything is taken when it is one of several', async () => {
    await a.locks.using('stock', undefined, async () => {
      await expect(a.locks.acquire(['account', 'stock'])).rejects.toMatchObject({ code: 'LOCK_REENTRY' });
      expect(a.store.sent('acquire')).toHaveLength(1);
    });
  });

  it('is no error in another application of the same process', async () => {
    const other = new LockWorld().instance('a');
    await a.locks.using('stock', undefined, async () => {
      expect(await other.locks.tryAcquire('stock')).not.toBeNull();
      expect(other.locks.current('stock')).toBeUndefined();
    });
  });
});

const MODES: AcquireMode[] = ['exclusive', 'reentrant', 'read', 'write'];
const ENTERS = new Set(['reentrant in reentrant', 'read in read', 'write in write', 'read in write']);

const pairs = MODES.flatMap((held) => MODES.map((wanted) => [wanted, held] as const));
const allowed = pairs.filter(([wanted, held]) => ENTERS.has(`${wanted} in ${held}`));
const refused = pairs.filter(([wanted, held]) => !ENTERS.has(`${wanted} in ${held}`));

describe('an async context that holds a resource already', () => {
  let world: LockWorld;
  let a: Instance;

  beforeEach(() => {
    world = new LockWorld();
    a = world.instance('a');
  });

  afterEach(async () => {
    await settle();
    expect(world.server.isEmpty).toBe(true);
  });

  it.each(allowed)('may enter it %s in %s: same token, and the lease around it stays', async (wanted, held) => {
    await a.locks.using('stock', { mode: held }, async (outer) => {
      await a.locks.using('stock', { mode: wanted }, (inner) => {
        expect([inner.mode, inner.fencingToken]).toEqual([wanted, outer.fencingToken]);
      });
      const tried = await a.locks.tryAcquire('stock', { mode: wanted });
      const both = await a.locks.acquire(['stock', 'other'], { mode: wanted });
      expect([tried!.fencingToken, both.fencingTokenOf('stock')]).toEqual([outer.fencingToken, outer.fencingToken]);
      await both.release();
      await tried!.release();
      expect([outer.isHeld(), await outer.verify(), outer.mode]).toEqual([true, true, held]);
    });
    expect(a.store.sent('acquire').filter(({ resource }) => resource === 'stock')).toHaveLength(1);
  });

  it.each(refused)('may not enter it %s in %s: refused at once, with nothing sent', async (wanted, held) => {
    await a.locks.using('stock', { mode: held }, async (outer) => {
      const sent = a.store.commands.length;
      const names = ['stock', ['other', 'stock']];
      for (const name of names) {
        await expect(a.locks.acquire(name, { mode: wanted })).rejects.toThrow(LockReentryError);
        await expect(a.locks.using(name, { mode: wanted }, () => {})).rejects.toThrow(LockReentryError);
        await expect(a.locks.tryAcquire(name, { mode: wanted })).rejects.toThrow(LockReentryError);
      }
      expect(a.store.commands).toHaveLength(sent);
      expect(await outer.verify()).toBe(true);
    });
  });

  it('suggests a way out of an upgrade', async () => {
    await a.locks.using('stock', { mode: 'read' }, async () => {
      await expect(a.locks.acquire('stock', { mode: 'write' })).rejects.toThrow(
        "Use mode: 'write' from the start and call downgrade()",
      );
    });
  });

  it('cannot upgrade inside a downgraded writer either', async () => {
    await a.locks.using('stock', { mode: 'write' }, async (lease) => {
      await lease.downgrade();
      await expect(a.locks.acquire('stock', { mode: 'write' })).rejects.toThrow(LockReentryError);
      await a.locks.using('stock', { mode: 'read' }, (inner) => expect(inner.fencingToken).toBe(lease.fencingToken));
    });
  });

  it('reads again past a waiting writer: it would wait for itself', async () => {
    const b = world.instance('b');
    const isWaitedFor = gate();
    const reading = a.locks.using('stock', { mode: 'read' }, async () => {
      await isWaitedFor.opened;
      await a.locks.using('stock', { mode: 'read' }, () => {});
    });
    await settle();
    const writers = [a, b].map(({ locks }) => track(locks.acquire('stock', { mode: 'write', waitMs: Infinity })));
    await settle();
    isWaitedFor.open();
    await reading;
    for (const writer of writers) {
      await settle();
      expect(writer.value.mode).toBe('write');
      await writer.value.release();
    }
  });
});

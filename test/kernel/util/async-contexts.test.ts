import { AsyncLocalStorage } from 'node:async_hooks';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { SystemClock } from '../../../lib/kernel/util/clock.js';
import { MemoryLockStore } from '../../../lib/memory/memory-lock-store.js';
import { LockClient } from '../../../lib/kernel/lock-client.js';
import type { CampaignOptions } from '../../../lib/features/leader/core/leadership.js';
import { settle } from '../../support/world/fake-clock.js';
import { type Instance, LockWorld } from '../../support/world/lock-world.js';
import { lostOnTheWay } from '../../support/world/scripted-store.js';

const LEASE_MS = 3_000;

/** Stands for the AsyncLocalStorage of an application: which request the running code belongs to. */
const request = new AsyncLocalStorage<string>();

function here(): string {
  return request.getStore() ?? 'none';
}

describe('the async context of a callback', () => {
  let world: LockWorld;
  let a: Instance;
  let seen: string[];
  const look = (): void => void seen.push(here());

  beforeEach(() => {
    world = new LockWorld();
    a = world.instance('a');
    seen = [];
  });

  describe('of a listener of a lease’s signal is the context of the call that acquired it', () => {
    it('when another request finds that the lease is lost', async () => {
      const lease = await request.run('holder', () => a.locks.acquire('stock', { leaseMs: LEASE_MS }));
      lease.signal.addEventListener('abort', look);
      world.clock.block(LEASE_MS);
      expect(request.run('other', () => lease.isHeld())).toBe(false);
      expect(seen).toEqual(['holder']);
    });

    it('when the timer finds it, in whatever context the test moves the clock', async () => {
      const lease = await request.run('holder', () => a.locks.acquire('stock', { leaseMs: LEASE_MS }));
      lease.signal.addEventListener('abort', look);
      a.store.all(lostOnTheWay);
      await request.run('other', () => world.clock.advance(LEASE_MS));
      expect(seen).toEqual(['holder']);
    });

    it('when Redis reports it to another request', async () => {
      const lease = await request.run('holder', () => a.locks.acquire('stock', { leaseMs: LEASE_MS }));
      lease.signal.addEventListener('abort', look);
      await a.locks.operators.forceRelease('stock', { fencingToken: lease.fencingToken });
      expect(await request.run('other', () => lease.verify())).toBe(false);
      expect(seen).toEqual(['holder']);
    });

    it('when it was granted by the release of another request', async () => {
      const first = await request.run('first', () => a.locks.acquire('stock', { leaseMs: LEASE_MS }));
      const waiting = request.run('second', () => a.locks.acquire('stock', { leaseMs: LEASE_MS }));
      await settle();
      await request.run('first', () => first.release());
      const second = await waiting;
      second.signal.addEventListener('abort', look);
      world.clock.block(LEASE_MS);
      request.run('other', () => second.isHeld());
      expect(seen).toEqual(['second']);
    });

    it('of several resources, too', async () => {
      const lease = await request.run('holder', () => a.locks.acquire(['stock', 'price'], { leaseMs: LEASE_MS }));
      lease.signal.addEventListener('abort', look);
      world.clock.block(LEASE_MS);
      request.run('other', () => lease.isHeld());
      expect(seen).toEqual(['holder']);
    });

    it('at a shutdown', async () => {
      const lease = await request.run('holder', () => a.locks.acquire('stock', { leaseMs: LEASE_MS }));
      lease.signal.addEventListener('abort', look);
      const down = request.run('other', () => a.locks.shutdown(0));
      await world.clock.advance(10_000);
      await down;
      expect(seen).toEqual(['holder']);
    });

    it('in which the lease itself is the current one, if work runs under it', async () => {
      let current: unknown;
      let own: unknown;
      const work = request.run('holder', () =>
        a.locks.using('stock', { leaseMs: LEASE_MS, onLost: 'ignore' }, async (lease) => {
          own = lease;
          lease.signal.addEventListener('abort', () => {
            look();
            current = a.locks.current('stock');
          });
          await new Promise((resolve) => lease.signal.addEventListener('abort', resolve));
        }),
      );
      await settle();
      await request.run('other', () =>
        a.locks.using('other', { leaseMs: 2 * LEASE_MS }, async () => {
          world.clock.block(LEASE_MS);
          (own as { isHeld(): boolean }).isHeld();
        }),
      );
      await work;
      expect(seen).toEqual(['holder']);
      expect(current).toBe(own);
    });
  });

  describe('of callbacks outside of calls is empty', () => {
    it('observers', async () => {
      a.locks.observers.add(look);
      const lease = await request.run('holder', () => a.locks.acquire('stock'));
      await request.run('other', () => lease.release());
      await request.run('third', () => a.locks.acquire('stock', { waitMs: -1 as never }).catch(() => {}));
      await request.run('third', () => a.locks.acquire('stock', { signal: AbortSignal.abort() }).catch(() => {}));
      expect(seen).toEqual(['none', 'none', 'none']);
    });

    it('callbacks of a leader, though a request has begun the campaign', async () => {
      const callbacks: CampaignOptions = {
        onElected: async (term) => {
          look();
          term.signal.addEventListener('abort', () => look());
        },
        onDemoted: look,
      };
      const leadership = request.run('beginner', () => a.locks.campaign('mailer', callbacks));
      await leadership.whenElected();
      request.run('joiner', () => a.locks.campaign('mailer', callbacks));
      await settle();
      await request.run('resigner', () => leadership.resign());
      expect(seen).toEqual(Array(6).fill('none'));
    });

    it('acquisitions of a leader after its lease was lost', async () => {
      const leadership = request.run('beginner', () =>
        a.locks.campaign('mailer', { leaseMs: LEASE_MS, onElected: look }),
      );
      await leadership.whenElected();
      world.clock.block(LEASE_MS);
      request.run('other', () => leadership.isLeader());
      await world.clock.advance(2 * LEASE_MS);
      expect(leadership.isLeader()).toBe(true);
      expect(seen).toEqual(['none', 'none']);
    });
  });

  it('of a retry strategy and of the work is the caller’s own', async () => {
    const holder = await request.run('holder', () => a.locks.acquire('stock'));
    const retry = { next: () => (look(), seen.length < 3 ? 100 : 10) };
    const working = request.run('caller', () =>
      a.locks.using('stock', { waitMs: 1_000, retry }, async () => {
        await settle();
        look();
      }),
    );
    await request.run('other', () => world.clock.advance(150));
    await request.run('holder', () => holder.release());
    await request.run('other', () => world.clock.advance(1_000));
    await working;
    expect(seen).toEqual(['caller', 'caller', 'caller']);
  });
});

describe('the timers that all calls share', () => {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  const stores = new AsyncLocalStorage<object>();

  it('keep no request’s data in memory', async () => {
    const locks = new LockClient({ store: new MemoryLockStore({ instanceId: 'a' }) });
    // In a function of its own, so that no variable keeps it either.
    const serve = async (): Promise<WeakRef<object>> => {
      const data = { of: 'a request' };
      await stores.run(data, async () => {
        const lease = await locks.acquire('stock');
        await lease.verify();
        const waiting = locks.acquire('stock', { waitMs: 60_000 });
        await lease.release();
        await (await waiting).release();
      });
      return new WeakRef(data);
    };
    const data = await serve();
    for (let round = 0; round < 10 && data.deref(); round++) {
      await settle();
      collect();
    }
    expect(data.deref()).toBeUndefined();
    await locks.shutdown(0);
  });

  it('run in the context of no caller', async () => {
    const seen = await stores.run({ of: 'a request' }, async () => {
      const clock = new SystemClock();
      return new Promise((resolve) => clock.setTimer(() => resolve(stores.getStore()), 1));
    });
    expect(seen).toBeUndefined();
  });
});

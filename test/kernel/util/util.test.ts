import { AsyncLocalStorage } from 'node:async_hooks';
import { createHash } from 'node:crypto';
import { getEventListeners } from 'node:events';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import type { CampaignOptions } from '../../../lib/features/leader/core/leadership.js';
import { LockClient } from '../../../lib/kernel/lock-client.js';
import { applicationSiteOf } from '../../../lib/kernel/util/call-site.js';
import { backoff, jitter, SystemClock, SystemRandom } from '../../../lib/kernel/util/clock.js';
import { sweep } from '../../../lib/kernel/util/objects.js';
import { mergeSignals } from '../../../lib/kernel/util/signals.js';
import { MemoryLockStore } from '../../../lib/memory/memory-lock-store.js';
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

/** A signal that counts who listens to it. */
function countedSignal(): { controller: AbortController; listeners: () => number } {
  const controller = new AbortController();
  const { signal } = controller;
  const add = signal.addEventListener.bind(signal);
  const remove = signal.removeEventListener.bind(signal);
  let count = 0;
  signal.addEventListener = (...args: Parameters<typeof add>) => {
    count++;
    add(...args);
  };
  signal.removeEventListener = (...args: Parameters<typeof remove>) => {
    count--;
    remove(...args);
  };
  return { controller, listeners: () => count };
}

describe('two signals merged', () => {
  it.each(['lasting', 'own'] as const)('abort with the %s one, and its reason', (which) => {
    const both = { lasting: new AbortController(), own: new AbortController() };
    const { signal } = mergeSignals(both.lasting.signal, both.own.signal);
    expect(signal.aborted).toBe(false);
    both[which].abort('enough');
    expect(signal.aborted).toBe(true);
    expect(signal.reason).toBe('enough');
  });

  it('have aborted if one of them has', () => {
    const { signal } = mergeSignals(new AbortController().signal, AbortSignal.abort('before'));
    expect(signal.reason).toBe('before');
  });

  it('are the lasting one if there is no other', () => {
    const { signal } = new AbortController();
    expect(mergeSignals(signal, undefined).signal).toBe(signal);
  });

  it('leave no listener on signals that live longer than the call', () => {
    const lasting = countedSignal();
    const own = countedSignal();
    for (let call = 0; call < 10; call++) {
      const merged = mergeSignals(lasting.controller.signal, own.controller.signal);
      expect([lasting.listeners(), own.listeners()]).toEqual([1, 1]);
      merged.dispose();
    }
    expect([lasting.listeners(), own.listeners()]).toEqual([0, 0]);
  });
});

const CALLS = 20;

/** The result of `events.getMaxListeners`, which does not recognize Jest's AbortSignal. */
function limitOf(signal: AbortSignal): unknown {
  const names = Object.getOwnPropertySymbols(signal);
  const name = names.find(({ description }) => description === 'events.maxEventTargetListeners');
  return (signal as unknown as Record<symbol, unknown>)[name!];
}

describe('one signal for more than ten calls', () => {
  let world: LockWorld;
  let a: Instance;
  let given: AbortController;

  beforeEach(() => {
    world = new LockWorld();
    a = world.instance('a');
    given = new AbortController();
  });

  const listeners = (): number => getEventListeners(given.signal, 'abort').length;
  const calls = <T>(call: (index: number) => Promise<T>) => Array.from({ length: CALLS }, (_, index) => call(index));

  it.each(['in line', 'polling'] as const)(
    'has one listener while they wait %s, and none when they are over',
    async (how) => {
      const lease = await a.locks.acquire('stock');
      const retry = how === 'polling' ? { next: () => 100 } : undefined;
      const waiting = calls(() => a.locks.acquire('stock', { signal: given.signal, waitMs: 5_000, retry }));
      const outcomes = Promise.allSettled(waiting);
      await settle();
      expect(listeners()).toBe(1);
      await lease.release();
      await world.clock.advance(10);
      given.abort();
      expect(listeners()).toBe(0);
      const states = (await outcomes).map(({ status }) => status);
      expect(new Set(states)).toEqual(how === 'polling' ? new Set(['rejected']) : new Set(['fulfilled', 'rejected']));
    },
  );

  it('ends the calls that use it, and no others', async () => {
    await a.locks.acquire('stock');
    const mine = calls(() => a.locks.acquire('stock', { signal: given.signal, waitMs: 1_000 }));
    const other = a.locks.acquire('stock', { waitMs: 1_000 });
    const outcomes = Promise.allSettled([...mine, other]);
    await settle();
    given.abort();
    await world.clock.advance(1_000);
    const codes = (await outcomes).map((outcome) => (outcome as PromiseRejectedResult).reason.code as string);
    expect(codes).toEqual([...Array(CALLS).fill('LOCK_ABORTED'), 'LOCK_TIMEOUT']);
  });

  it('has one listener for waits until a resource is free and campaigns too', async () => {
    await world.instance('b').locks.acquire('busy');
    const { signal } = given;
    const waits = Promise.allSettled(calls(() => a.locks.watches.waitUntilFree('busy', { signal })));
    const campaigns = calls(async (n) => a.locks.campaign(`leader-${n}`, { signal: given.signal }));
    await settle();
    expect(listeners()).toBe(1);
    given.abort();
    expect(new Set((await waits).map(({ status }) => status))).toEqual(new Set(['rejected']));
    for (const leadership of await Promise.all(campaigns)) expect(leadership.isLeader()).toBe(false);
    expect(listeners()).toBe(0);
  });

  it('of a lease may have any number of listeners', async () => {
    const lease = await a.locks.acquire('stock');
    const several = await a.locks.acquire(['price', 'size']);
    expect([lease, several].map(({ signal }) => limitOf(signal))).toEqual([0, 0]);
  });
});

describe('a pause before the next try', () => {
  it('doubles with each failure, up to the maximum', () => {
    const pauses = [1, 2, 3, 4, 5, 6, 1_000, Infinity].map((failures) =>
      backoff({ first: 20, longest: 200 }, failures),
    );
    expect(pauses).toEqual([20, 40, 80, 160, 200, 200, 200, 200]);
  });

  it('never exceeds the maximum, even the first one', () => {
    expect(backoff({ first: 20, longest: 16 }, 1)).toBe(16);
  });

  it('is up to a quarter longer with jitter', () => {
    expect([0, 0.5].map((fraction) => jitter({ fraction: () => fraction }))).toEqual([1, 1.125]);
  });
});

/** Resumes a copy of a saved machine, with the same random bytes as the other copy. */
function copyThatGoesOnAt(now: number, wallNow: number): SystemRandom {
  let fills = 0;
  let time = 0;
  return new SystemRandom({
    fill: (pool) => {
      fills++;
      for (let from = 0; from < pool.length; from += 32) {
        pool.set(createHash('sha256').update(`${fills} ${from}`).digest(), from);
      }
    },
    // Each moves on a little with each look.
    now: () => now + (time += 0.001),
    wallNow: () => wallNow,
  });
}

describe('the random part of an owner id', () => {
  it('has 128 bits, and is never repeated, however many are requested', () => {
    const random = new SystemRandom();
    const ids = Array.from({ length: 10_000 }, () => random.id());
    expect(new Set(ids).size).toBe(ids.length);
    expect(ids.filter((id) => !/^[\w-]{22}$/.test(id))).toEqual([]);
    // Every bit comes up: none is left at what the buffer began with.
    const seen = Buffer.alloc(16);
    for (const id of ids) Buffer.from(id, 'base64url').forEach((byte, index) => (seen[index]! |= byte));
    expect([...seen]).toEqual(Array(16).fill(255));
  });

  it('differs between two that were made at the same time', () => {
    expect(new SystemRandom().id()).not.toBe(new SystemRandom().id());
  });

  const idsOf = (random: SystemRandom): string[] => Array.from({ length: 600 }, () => random.id(8));

  it.each([
    ['a microsecond later', 1_000.001, 1_800_000_000_000],
    ['in the same nanosecond of its own time, another day', 1_000, 1_800_086_400_000],
  ])('differs in a copy of the machine that continues %s', (_when, now, wallNow) => {
    const original = idsOf(copyThatGoesOnAt(1_000, 1_800_000_000_000));
    const copy = idsOf(copyThatGoesOnAt(now, wallNow));
    expect(new Set([...original, ...copy]).size).toBe(1_200);
  });

  it('is the same if no clock distinguishes the copies', () => {
    expect(idsOf(copyThatGoesOnAt(1_000, 5))).toEqual(idsOf(copyThatGoesOnAt(1_000, 5)));
  });
});

/** Adds an entry with a lifetime of 10 steps, at each of many steps. @returns the maximum number of entries */
function mostOf(entries: Map<string, number>, steps: number): number {
  let most = 0;
  for (let now = 0; now < steps; now++) {
    sweep(entries, (until) => until <= now);
    entries.set(`key ${now}`, now + 10);
    most = Math.max(most, entries.size);
  }
  return most;
}

describe('a map that is swept', () => {
  it('forgets expired entries, even behind one that lives for long', () => {
    const entries = new Map([['lives for long', Infinity]]);
    expect(mostOf(entries, 10_000)).toBeLessThan(50);
    expect(entries.has('lives for long')).toBe(true);
  });

  it('does so while many live, with at most twice the room', () => {
    const entries = new Map(Array.from({ length: 1_000 }, (_, n) => [`lives ${n}`, Infinity] as const));
    expect(mostOf(entries, 20_000)).toBeLessThan(2_000);
    expect(entries.has('lives 0')).toBe(true);
  });

  it('removes each with its own callback', () => {
    const entries = new Map([
      ['over', 0],
      ['alive', 1],
    ]);
    const removed: unknown[] = [];
    const remove = (...entry: unknown[]): void => void removed.push(entry);
    sweep(entries, (until) => until === 0, remove);
    expect(removed).toEqual([
      ['over', 0],
      ['over', 0],
      ['over', 0],
    ]);
  });
});

describe('the site of a call', () => {
  const stackOf = (...lines: string[]) => ({ stack: ['Error', ...lines.map((line) => `    at ${line}`)].join('\n') });

  it('is the first line of the application, and not of a library or of Node', () => {
    const origin = stackOf(
      'Observable._trySubscribe (/app/node_modules/rxjs/dist/cjs/internal/Observable.js:41:25)',
      'async node:internal/process/task_queues:95:5',
      'Orders.ship (/app/dist/orders.js:4:2)',
    );
    expect(applicationSiteOf(origin)).toBe('Orders.ship (/app/dist/orders.js:4:2)');
  });

  it('is not known if only libraries have made it', () => {
    expect(applicationSiteOf(stackOf('file:///app/node_modules/@nestjs/core/router-execution-context.js:9:1'))).toBe(
      undefined,
    );
  });
});

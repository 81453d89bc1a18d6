import { jest } from '@jest/globals';
import {
  explainFromOutside,
  type ExplainOptions,
  explainState,
} from '../../../../../lib/features/fleet/core/explain/explainer.js';
import type { FleetReport } from '../../../../../lib/features/fleet/core/roll/lock-fleet.js';
import { fleetInstance, fleetReport, waitingCall } from '../../fleet-reports.js';
import type { OwnPart } from '../../../../../lib/features/fleet/core/explain/explanation.js';
import type { WantedAccess } from '../../../../../lib/features/fleet/core/explain/likely-cause.js';
import type { Holder } from '../../../../../lib/kernel/api/holder.js';
import type { LockOptions } from '../../../../../lib/kernel/api/lock-options.js';
import type { TransactionHooks } from '../../../../../lib/kernel/api/transactions.js';
import type { LockState, LockWaiter } from '../../../../../lib/kernel/store/lock-state.js';
import { LockStoreError } from '../../../../../lib/kernel/store/store-error.js';
import { gate, track } from '../../../../support/expect/tracked.js';
import { settle } from '../../../../support/world/fake-clock.js';
import { jobsOn } from '../../../../support/world/forgetful.js';
import { type Instance, LockWorld } from '../../../../support/world/lock-world.js';

/** Each story with the store in memory, and a clock that the test moves. */
describe('explain', () => {
  it('is suggested by a message when Redis did not answer', async () => {
    const { locks, store } = new LockWorld().instance('a');
    store.all(() => Promise.reject(new LockStoreError('refused', 'NOPERM')));
    const message = 'Redis could not explain "stock": NOPERM';
    await expect(locks.operators.explain('stock')).rejects.toMatchObject({ operation: 'explain', message });
  });

  let world: LockWorld;
  let a: Instance;
  let b: Instance;

  beforeEach(() => {
    world = new LockWorld();
    a = instance('a');
    b = instance('b');
  });

  const instance = (name: string) => world.instance(name, { defaults: { leaseMs: 30_000 } });
  const explain = ({ locks }: Instance, options?: ExplainOptions) => locks.operators.explain('stock', options);
  const causeSeenBy = async (instance: Instance, options?: ExplainOptions) => (await explain(instance, options)).cause;
  const hold = ({ locks }: Instance, options?: LockOptions) => locks.acquire('stock', options);
  const wait = ({ locks }: Instance, options?: LockOptions) =>
    track(locks.acquire('stock', { waitMs: Infinity, ...options }));

  it('reports a free lock, one in use, and a slow holder', async () => {
    expect(await causeSeenBy(a)).toBe('free');
    const lease = await hold(b);
    await world.clock.advance(1_000);
    expect(await causeSeenBy(a)).toBe('inUse');
    wait(a);
    await world.clock.advance(61_000);
    const { cause, sentences, state } = await explain(a);
    expect(cause).toBe('holderSlow');
    expect(sentences.slice(0, 4)).toEqual([
      `"stock" has been held by b for 62 s (mode exclusive, token ${lease.fencingToken}).`,
      'It was last renewed 2 s ago, in time: the lease has 28 s left.',
      '1 waiter is in its queue: this process (mode exclusive).',
      'One call of this process has been waiting for it for 61 s.',
    ]);
    expect(state.holders).toMatchObject([{ instanceId: 'b', heldMs: 62_000 }]);
    // The holder itself knows more.
    expect((await explain(b)).text).toContain('held by a call of this process (stock) for 62 s');
  });

  it.each(['a time', 'an interval'])(
    'a run of a job that keeps later ticks from running: a tick is %s',
    async (kind) => {
      const jobs = jobsOn(world.server);
      a.locks.jobs.records(jobs);
      const end = gate();
      const lock = { leaseMs: 30_000 };
      const base = { job: 'stock', overlap: 'skip', onCrash: 'skip', claimTtlMs: 600_000, lock } as const;
      const fire = ({ locks }: Instance) => {
        const at = world.clock.wallNow();
        const [run, plan] =
          kind === 'a time'
            ? [{ tick: new Date(at).toISOString(), due: { at, maxClockSkewMs: 60_000 } }, { schedule: 'x' }]
            : [{ tick: 'interval', claimTtlMs: 1_000 }, {}];
        return locks.jobs.runs(jobs).run({ ...base, ...run }, () => end.opened, { ...plan, next: at + 60_000 });
      };
      const explainJob = () => a.locks.operators.explain('cron:stock');
      const call = fire(b);
      await world.clock.advance(30_000);
      expect((await explainJob()).text).toContain('Nothing is wrong');
      const lastAt = world.clock.wallNow();
      await fire(a);
      await world.clock.advance(2_000);
      const { cause, text } = await explainJob();
      expect(cause).toBe('overlap');
      expect(text).not.toContain('Nothing is wrong');
      expect(text).toContain(
        'This run of the job has lasted 32 s. Later ticks were skipped, or wait for its end: the last one was due at ' +
          `${new Date(lastAt).toISOString()}. If the run should have ended, `,
      );
      expect(text).toMatch(/ If its process has died since it last renewed the lease, that shows in \d+ s\.$/);
      expect((await b.locks.operators.explain('cron:stock')).cause).toBe('inUse');
      end.open();
      await call;
      expect((await explainJob()).cause).toBe('free');
    },
  );

  it('reports the run of a job like any other lock, if the jobs are unreachable', async () => {
    const jobs = jobsOn(world.server);
    jest.spyOn(jobs, 'look').mockImplementation(() => Promise.reject(new LockStoreError('refused', 'NOPERM')));
    a.locks.jobs.records(jobs);
    const run = { job: 'x', tick: 'x', overlap: 'skip', onCrash: 'skip', claimTtlMs: 600_000, lock: {} } as const;
    void b.locks.jobs.runs(jobs).run(run, () => new Promise(() => {}));
    await world.clock.advance(100);
    expect((await a.locks.operators.explain('cron:x')).cause).toBe('inUse');
  });

  it('names no group if there is none', async () => {
    const c = world.instance('c', { labelGroups: true });
    await hold(b, { group: '_other' });
    wait(b);
    await world.clock.advance(100);
    expect((await explain(b)).text).not.toContain('_other');
    await c.locks.acquire('order 7');
    expect((await a.locks.operators.explain('order 7')).text).toMatch(/^"order 7" has been held by c for 0 ms \(mode/);
  });

  it('asks the store once about a lease of its own', async () => {
    await hold(a);
    a.store.commands.length = 0;
    await explain(a);
    expect(a.store.commands.map(({ verb }) => verb)).toEqual(['inspect']);
  });

  it.each([
    ['that has not renewed it yet', 1_000, '14 s'],
    ['that has renewed it', 13_000, '12 s'],
  ])('reports the time from which a holder %s counts as dead', async (_, ageMs, inTime) => {
    await hold(b);
    await world.clock.advance(ageMs);
    const { cause, text } = await explain(a);
    expect(cause).toBe('inUse');
    const overdue = `Nothing is wrong: if a holder has died since it last renewed its lease, that shows in ${inTime}.`;
    expect(text).toContain(overdue);
    b.store.all(() => new Promise<never>(() => {}));
    await world.clock.advance(15_000);
    expect(await causeSeenBy(a)).toBe('holderDead');
  });

  it.each([500, 2_000, 30_000, 600_000])('never doubts a lease of %d ms that is renewed', async (leaseMs) => {
    const [c, d] = [world.instance('c'), world.instance('d')];
    await hold(b, { leaseMs });
    // Neither what others ask for, nor what this process asks for, says anything of it.
    wait(c, { leaseMs: 10_000 });
    for (let look = 0; look < 60; look++) {
      await world.clock.advance(leaseMs / 30 + 7);
      const { cause, text } = await explain(d);
      expect([cause, text]).toEqual([
        expect.stringMatching(/^(?:inUse|holderSlow)$/),
        expect.not.stringMatching(/should/),
      ]);
    }
  });

  it('recognizes an extended lease, and one that died after its extension', async () => {
    const lease = await hold(b);
    await world.clock.advance(5_000);
    await lease.extend(120_000);
    await world.clock.advance(39_000);
    expect((await explain(a)).text).toContain('It was last renewed 39 s ago, in time: the lease has 81 s left');
    await world.clock.advance(2_000);
    expect((await explain(a)).text).toContain('It was last renewed 1 s ago, in time: ');
    await lease.extend(10_000);
    b.store.all(() => new Promise<never>(() => {}));
    await world.clock.advance(6_000);
    expect((await explain(a)).text).toContain(
      'It was last renewed 6 s ago, though its process should renew it every 3.3 s: the lease has 4 s left.',
    );
  });

  it.each([
    [2_000, 'which are proven', Infinity],
    [30_000, 'which are proven', Infinity],
    [600_000, 'which are proven', Infinity],
    [30_000, 'which may be lost', 0],
  ])(
    'a waiter of a lease of %d ms that lives is never called dead, with messages %s',
    async (leaseMs, _, trustedForMs) => {
      const [c, d] = [world.instance('c'), world.instance('d')];
      c.store.hearing!.trustedForMs = trustedForMs;
      await hold(b, { leaseMs });
      wait(c, { leaseMs });
      const texts: string[] = [];
      for (let look = 0; look < 100; look++) {
        await world.clock.advance(leaseMs / 30);
        const { cause, text } = await explain(d);
        texts.push(`${cause} ${text}`);
      }
      expect(texts.filter((text) => / kept /.test(text) || !/^(?:inUse|holderSlow) /.test(text))).toEqual([]);
    },
  );

  it('reports a dead holder, ahead of a live waiter', async () => {
    const c = instance('c');
    await hold(b);
    wait(c);
    await world.clock.advance(45_000);
    b.store.all(() => new Promise<never>(() => {}));
    const causes: string[] = [];
    for (let look = 0; look < 22; look++) {
      await world.clock.advance(500);
      const seen = track(causeSeenBy(a));
      // It does not answer the question whether it waits for another one.
      for (let ms = 0; ms < 500; ms += 50) await world.clock.advance(50);
      causes.push(seen.value);
    }
    // Not dead before it is overdue, and then at once.
    expect(causes.join(' ')).toMatch(/^(?:holderSlow ){9,16}(?:holderDead ?){6,}$/);
  });

  it('reports a fixed lease', async () => {
    await hold(b, { watchdog: false, leaseMs: 10_000 });
    await world.clock.advance(8_000);
    expect(await causeSeenBy(b)).toBe('fixedLease');
    expect((await explain(b)).text).toContain('Its lease is fixed and never renewed: the lease has 2 s left.');
    wait(a, { watchdog: false, leaseMs: 10_000 });
    await settle();
    expect(await causeSeenBy(a)).toBe('fixedLease');
  });

  it('reports a lock that is used as a semaphore, and the reverse', async () => {
    await hold(b);
    expect(await causeSeenBy(a, { permits: 2 })).toBe('mismatch');
    expect(await causeSeenBy(a, { mode: 'reentrant' })).toBe('inUse');
    const permit = await a.locks.semaphore('exports', { permits: 3 }).acquire({ count: 2 });
    const cause = async (options: ExplainOptions) => (await a.locks.operators.explain('exports', options)).cause;
    expect([await cause({ mode: 'exclusive' }), await cause({ permits: 4 }), await cause({ permits: 3 })]).toEqual([
      'mismatch',
      'mismatch',
      'inUse',
    ]);
    await permit.release();
  });

  it('reports a lock that a transaction keeps', async () => {
    const transaction = {};
    let end = () => {};
    const transactions: TransactionHooks = {
      current: () => transaction,
      runOnEnd: (_, callback) => void (end = () => void callback()),
    };
    const c = world.instance('c', { transactions });
    await c.locks.using('stock', undefined, async () => {});
    const { cause, text } = await explain(c);
    expect(cause).toBe('transaction');
    expect(text).toContain('keeps the lock until its commit or rollback');
    // Of another process, that is its own affair.
    expect(await causeSeenBy(a)).toBe('inUse');
    end();
    await settle();
    expect(await causeSeenBy(c)).toBe('free');
  });

  it('reports a lock of this call, and one of another call of this process', async () => {
    await a.locks.using('stock', undefined, async () => {
      expect(await causeSeenBy(a)).toBe('heldByThisCall');
    });
    const lease = await hold(a);
    expect(await causeSeenBy(a)).toBe('inUse');
    wait(a);
    await world.clock.advance(700);
    const { cause, sentences } = await explain(a);
    expect(cause).toBe('heldByThisProcess');
    expect(sentences).toContain('One call of this process has been waiting for it for 700 ms.');
    await lease.release();
  });

  it.each([
    [{ leaseMs: 30_000 }, 'leaseMs'],
    [{ mode: 'semaphore' }, 'mode'],
    [{ permits: 0 }, 'permits'],
    [{ permits: 1, mode: 'read' }, 'permits'],
    [{ lookAgainMs: 12_000 }, 'lookAgainMs'],
    [{ verbose: true }, 'verbose'],
  ])('refuses %p', async (options, option) => {
    await expect(explain(a, options as never)).rejects.toMatchObject({ code: 'INVALID_LOCK_OPTIONS', option });
    await expect(a.locks.operators.explain('')).rejects.toMatchObject({
      message: expect.stringContaining('given to explain'),
    });
    expect(a.store.commands).toEqual([]);
  });
});

const TOKEN = 32 * 1_000;

/** A lease of 30 s that shop-3 was granted a while ago, and has renewed since. */
const HOLDER: Holder = {
  instanceId: 'shop-3',
  isThisProcess: false,
  mode: 'exclusive',
  fencingToken: TOKEN,
  ttlMs: 25_000,
  leaseMs: 30_000,
  depth: 1,
  heldMs: 62_000,
};
const WAITER: LockWaiter = { instanceId: 'shop-2', mode: 'exclusive', placeMs: 29_500, leaseMs: 30_000 };
const OWN: OwnPart = {
  instanceId: 'shop-1',
  holds: [],
  waiting: 0,
  longestWaitMs: 0,
  wanted: undefined,
};
const MY_HOLD: OwnPart['holds'][number] = {
  fencingToken: TOKEN,
  group: 'Orders.pay',
  heldMs: 62_000,
  isRenewed: true,
  isOfThisCall: false,
  isKeptByTransaction: false,
};
const MINE: Holder = { ...HOLDER, instanceId: 'shop-1', isThisProcess: true };

function stateOf(state: Partial<LockState>): LockState {
  const { holders = [], waiters = [] } = state;
  const mode = holders.length > 0 ? 'exclusive' : null;
  const ttlMs = Math.max(0, ...holders.map((holder) => holder.ttlMs));
  return { resource: 'order:7', mode, holders, ttlMs, waiters, ...state };
}

function explain(
  state: Partial<LockState>,
  own: Partial<OwnPart> = {},
  wanted: WantedAccess = {},
): [string, ...string[]] {
  const { cause, sentences } = explainState(stateOf(state), { ...OWN, ...own }, wanted);
  return [cause, ...sentences];
}

describe('the explanation of a lock', () => {
  it('for a free lock', () => {
    expect(explain({})).toEqual(['free', '"order:7" is free: no process holds it, and none waits for it.']);
  });

  it('for a lock in use', () => {
    expect(explain({ holders: [{ ...HOLDER, heldMs: 300, ttlMs: 29_700 }] })).toEqual([
      'inUse',
      '"order:7" has been held by shop-3 for 300 ms (mode exclusive, token 32000).',
      'Its first renewal is due in 9.7 s: the lease has 30 s left.',
      'No other process waits for it.',
      'Nothing is wrong: if a holder has died since it last renewed its lease, that shows in 15 s.',
    ]);
  });

  it('for a slow holder that is alive', () => {
    expect(explain({ holders: [HOLDER], waiters: [WAITER] }, { waiting: 3, longestWaitMs: 3_210 })).toEqual([
      'holderSlow',
      '"order:7" has been held by shop-3 for 62 s (mode exclusive, token 32000).',
      'It was last renewed 5 s ago, in time: the lease has 25 s left.',
      '1 waiter is in its queue: shop-2 (mode exclusive).',
      '3 calls of this process are waiting for it, the first of them for 3.2 s.',
      expect.stringMatching(
        /^The holder was alive 5 s ago\. If it still is, it is slow: it does long work under the lock, .* If it has died, that shows in 10 s, and the lock is free in 25 s\. Look at that process/,
      ),
    ]);
    expect(explain({ holders: [{ ...HOLDER, heldMs: 4_000, ttlMs: 26_000 }], waiters: [WAITER] })[0]).toBe('inUse');
    expect(explain({ holders: [HOLDER] })[0]).toBe('inUse');
  });

  it('for a long hold whose first renewal is not due yet: the holder may have died', () => {
    const young = { ...HOLDER, heldMs: 6_000, ttlMs: 24_000 };
    const [cause, ...sentences] = explain({ holders: [young], waiters: [WAITER] });
    expect(cause).toBe('holderSlow');
    expect(sentences[1]).toContain('Its first renewal is due in 4 s');
    expect(sentences.at(-1)).toMatch(
      /^It is not known yet whether the holder is alive\. If it is, it is slow: .* If it has died, that shows in 9 s, and the lock is free in 24 s\. /,
    );
    // Another one has renewed its lease; and this process is alive.
    const readers = { mode: 'read' as const, holders: [young, HOLDER], waiters: [WAITER] };
    expect(explain(readers).at(-1)).toMatch(/^The holder was alive 5 s ago\. If it still is, it is slow: /);
    const mine = { ...MY_HOLD, heldMs: 6_000 };
    const own = { holders: [{ ...MINE, ttlMs: 24_000, heldMs: 6_000 }], waiters: [WAITER] };
    expect(explain(own, { holds: [mine] }).at(-1)).toMatch(/^The holder is alive and slow: (?!.*has died)/);
  });

  it('for a holder whose renewal is overdue: it may have died', () => {
    const late = explain({ holders: [{ ...HOLDER, ttlMs: 17_000 }], waiters: [WAITER] });
    expect(late[0]).toBe('holderSlow');
    expect(late[2]).toBe('It was last renewed 13 s ago: the lease has 17 s left.');
    expect(late.at(-1)).toMatch(
      /^The holder was alive 13 s ago, and should have renewed its lease 2\.9 s ago: it may have died, or be blocked\. If it is alive, its work is slow: .* that shows in 2 s, and the lock is free in 17 s\. /,
    );
  });

  it('for a dead holder, whose lease is running out', () => {
    const [cause, ...sentences] = explain({ holders: [{ ...HOLDER, ttlMs: 8_000 }], waiters: [WAITER] });
    expect(cause).toBe('holderDead');
    expect(sentences[1]).toBe(
      'It was last renewed 22 s ago, though its process should renew it every 10 s: ' + 'the lease has 8 s left.',
    );
    expect(sentences.at(-1)).toMatch(
      /^The holder has most likely died, .* will be free in 8 s unless the holder renews its lease\./,
    );
    expect(explain({ holders: [{ ...HOLDER, ttlMs: 8_000, heldMs: 22_000 }] })[2]).toMatch(/^It was never renewed, /);
  });

  it('uses the length of each lease, whatever this process would request', () => {
    const short = { ...HOLDER, ttlMs: 1_700, leaseMs: 2_000 };
    expect(explain({ holders: [short], waiters: [WAITER] }).slice(0, 3)).toEqual([
      'holderSlow',
      '"order:7" has been held by shop-3 for 62 s (mode exclusive, token 32000).',
      'It was last renewed 300 ms ago, in time: the lease has 1.7 s left.',
    ]);
    // Only the second reader of two has died.
    const readers = { mode: 'read' as const, holders: [short, { ...HOLDER, instanceId: 'shop-4', ttlMs: 1_700 }] };
    const [cause, ...sentences] = explain(readers);
    expect(cause).toBe('holderDead');
    expect(sentences.join(' ')).toMatch(/renewed 300 ms ago, in time: .* last renewed 28 s ago, though /);
  });

  it('for a granted waiter, whose lease began when it last kept its place', () => {
    const granted = { ...HOLDER, ttlMs: 24_000, heldMs: 100 };
    expect(explain({ holders: [granted] })[2]).toBe('Its first renewal is due in 4 s: the lease has 24 s left.');
  });

  it('for a fixed lease of this process, or a process with fixed leases', () => {
    const fixed = { ...MY_HOLD, isRenewed: false };
    expect(explain({ holders: [{ ...MINE, ttlMs: 8_000 }] }, { holds: [fixed] }).slice(0, 3)).toEqual([
      'fixedLease',
      '"order:7" has been held by a call of this process (Orders.pay) for 62 s (mode exclusive, token 32000).',
      'Its lease is fixed and never renewed: the lease has 8 s left.',
    ]);
    const own = { wanted: { watchdog: false }, waiting: 1, longestWaitMs: 900 };
    expect(explain({ holders: [{ ...HOLDER, ttlMs: 8_000, heldMs: 22_000 }] }, own)[0]).toBe('fixedLease');
  });

  it('for a leadership, and a dead leader', () => {
    const resource = 'leader:mailer';
    const [cause, ...sentences] = explain({ resource, holders: [HOLDER], waiters: [WAITER] });
    expect(cause).toBe('leadership');
    expect(sentences.at(-1)).toMatch(/^"mailer" is a leadership: /);
    expect(explain({ resource, holders: [{ ...HOLDER, ttlMs: 5_000 }] })[0]).toBe('holderDead');
  });

  it('for a queue of dead processes', () => {
    const waiters = [
      { ...WAITER, placeMs: 4_000 },
      { ...WAITER, instanceId: 'shop-4', placeMs: 6_000 },
    ];
    const [cause, ...sentences] = explain({ waiters });
    expect(cause).toBe('deadWaiters');
    expect(sentences).toEqual([
      '"order:7" is free.',
      '2 waiters are in its queue, first shop-2 (mode exclusive), shop-4 (mode exclusive).',
      'None of them has renewed its place for 24 s. A live waiter does so at least every 10 s.',
      'Only the other processes know how long their calls have waited.',
      expect.stringMatching(/The last place ends in 6 s unless it is renewed\. .*Check again: if placeMs .* goes up/),
    ]);
    const own = { wanted: { watchdog: true }, waiting: 1, longestWaitMs: 900 };
    expect(explain({ holders: [{ ...HOLDER, ttlMs: 5_000 }], waiters }, own)[0]).toBe('deadWaiters');
    expect(explain({ holders: [HOLDER], waiters }).join(' ')).toContain('None of them has renewed its place for 24 s');
  });

  it('for overdue waiters, each by the lease that it requests', () => {
    const silence = (places: number[], leaseMs = 30_000, own?: Partial<OwnPart>) =>
      explain(
        {
          holders: [HOLDER],
          waiters: places.map((placeMs, index) => ({ ...WAITER, instanceId: `w${index}`, placeMs, leaseMs })),
        },
        own,
      ).find((sentence) => sentence.includes('place'));
    const rhythm = 'A live waiter does so at least every 10 s.';
    // A place that may have been kept in time, with jitter and some delay.
    expect(silence([17_400, 14_500])).toBeUndefined();
    expect(silence([10_000])).toBe(`It has not renewed its place in the queue for 20 s. ${rhythm}`);
    expect(silence([10_000, 29_000])).toBe(`One of them has not renewed its place in the queue for 20 s. ${rhythm}`);
    expect(silence([10_000, 29_000, 8_000])).toBe(
      `2 of them have not renewed their places in the queue for 20 s or longer. ${rhythm}`,
    );
    expect(silence([1_900], 2_000)).toBeUndefined();
    // However long the lease is, a place is kept every 15 s.
    expect(silence([581_000], 600_000)).toBeUndefined();
    expect(silence([570_000], 600_000)).toBe(
      'It has not renewed its place in the queue for 30 s. A live waiter does so at least every 15 s.',
    );
    // The place ends before it could count as silent.
    expect(silence([50], 2_000)).toBeUndefined();
    expect(silence([10_000], 30_000, { instanceId: 'w0' })).toBeUndefined();
  });

  it('for a free lock that is about to be granted', () => {
    expect(explain({ waiters: [WAITER] })).toEqual([
      'inUse',
      '"order:7" is free.',
      '1 waiter is in its queue: shop-2 (mode exclusive).',
      'Only the other processes know how long their calls have waited.',
      'A live waiter usually takes the lock at once. If the key of the lock was deleted, it does so when it next renews its place. ' +
        'If the lock is still free in 24 s, the waiters have died, or cannot reach Redis.',
    ]);
  });

  it('for a lock kept by minHoldMs', () => {
    expect(explain({ holders: [{ ...HOLDER, ttlMs: 7_000, leaseMs: 0, isKept: true }] })).toEqual([
      'kept',
      '"order:7" was released by shop-3, but is kept for another 7 s (minHoldMs).',
      'No other process waits for it.',
      'Only forceRelease(), or release on the command line, frees the resource before minHoldMs has ended.',
    ]);
  });

  it('for a request that can never be granted', () => {
    const semaphore: Partial<LockState> = {
      mode: 'semaphore',
      holders: [{ ...HOLDER, permits: 2 }],
      permits: { total: 3, available: 1 },
    };
    expect(explain(semaphore, {}, { permits: 4 })).toEqual([
      'mismatch',
      '"order:7" is a semaphore with 3 permits, of which 1 is free.',
      'It has been held by shop-3 for 62 s (mode semaphore, 2 permits, token 32000).',
      expect.stringMatching(/in time/),
      'No other process waits for it.',
      'A call that asks for 4 permits at once can never be granted: there are 3 in all. Ask for fewer, or resize the semaphore.',
    ]);
    expect(explain({ ...semaphore, waiters: [{ ...WAITER, permits: 9 }] })[0]).toBe('mismatch');
    expect(explain(semaphore, {}, { mode: 'read' }).at(-1)).toMatch(
      /in use as a semaphore, .*\(mode read\) is refused/,
    );
    expect(explain({ holders: [HOLDER] }, {}, { permits: 1 }).at(-1)).toMatch(/in use as a lock \(mode exclusive\)/);
    expect(explain({ holders: [HOLDER] }, {}, { mode: 'read' })[0]).toBe('inUse');
    expect(explain(semaphore, {}, { permits: 3 })[0]).toBe('inUse');
  });

  it('for a transaction of this process, this call, or another call of this process', () => {
    const kept = { ...MY_HOLD, isKeptByTransaction: true };
    expect(explain({ holders: [MINE] }, { holds: [kept] })[0]).toBe('transaction');
    const mine = { ...MY_HOLD, isOfThisCall: true };
    const [cause, first] = explain({ holders: [MINE] }, { holds: [mine] });
    expect([cause, first]).toEqual([
      'heldByThisCall',
      expect.stringMatching(/held by this call \(Orders\.pay\) for 62 s/),
    ]);
    const waiting = { waiting: 1, longestWaitMs: 800 };
    const [other, ...sentences] = explain({ holders: [MINE] }, { holds: [MY_HOLD], ...waiting });
    expect(other).toBe('heldByThisProcess');
    expect(sentences[2]).toBe('One call of this process has been waiting for it for 800 ms.');
    expect(explain({ holders: [MINE] }, { holds: [MY_HOLD] })[0]).toBe('inUse');
    // Passed on in memory since: the token has counted up.
    expect(explain({ holders: [MINE] }, { holds: [{ ...mine, fencingToken: TOKEN + 5 }] })[0]).toBe('heldByThisCall');
  });

  it('names some of many', () => {
    const readers = Array.from({ length: 12 }, (_, index) => ({ ...HOLDER, instanceId: `shop-${index + 10}` }));
    const waiters = Array.from({ length: 5 }, () => ({ ...WAITER, mode: 'write' as const }));
    const [, ...sentences] = explain({ mode: 'read', holders: readers, waiters });
    expect(sentences[0]).toBe('"order:7" has 12 readers.');
    expect(sentences.filter((line) => line.startsWith('It has been held by'))).toHaveLength(3);
    expect(sentences).toContain('9 more holders are not named here.');
    expect(sentences.join(' ')).toContain(
      '5 waiters are in its queue, first shop-2 (mode write), shop-2 (mode write), shop-2 (mode write), and 2 more.',
    );
  });

  it('escapes hostile names', () => {
    const holders = [{ ...HOLDER, instanceId: '\u202e\u001b[31m' }];
    const { text } = explainState(
      stateOf({ resource: 'a\n"\u2066<script>', holders, waiters: [{ ...WAITER, instanceId: 'x y' }] }),
      OWN,
    );
    expect(text).toContain(String.raw`"a\n\"\u2066<script>" has been held by "\u202e\u001b[31m" for 62 s`);
    // oxlint-disable-next-line no-control-regex
    expect(text).not.toMatch(/[\u0000-\u001f\u007f-\u009f\u202e\u2066]/);
  });

  it('is frozen, has a text, and is complete in JSON', () => {
    const explanation = explainState(stateOf({ holders: [{ ...HOLDER }], waiters: [{ ...WAITER }] }), OWN);
    expect(String(explanation)).toBe(explanation.text);
    expect(explanation.text).toBe(explanation.sentences.join(' '));
    expect(
      [explanation, explanation.sentences, explanation.state, explanation.state.holders[0]].every(Object.isFrozen),
    ).toBe(true);
    expect(JSON.parse(JSON.stringify(explanation))).toEqual(Object.fromEntries(Object.entries(explanation)));
  });
});

describe('the explanation for an operator', () => {
  const told = (state: Partial<LockState>, has: Partial<FleetReport> = {}): readonly string[] =>
    explainFromOutside(stateOf(state), fleetReport(has)).sentences;
  const alive = { instances: [fleetInstance('shop-3')] };
  const young = { ...HOLDER, heldMs: 6_000, ttlMs: 24_000 };

  it.each([HOLDER, young])('leaves no doubt if the process of the holder has answered: %j', (holder) => {
    const state = { holders: [holder], waiters: [WAITER] };
    expect(told(state, alive).at(-1)).toMatch(/^The holder is alive and slow: (?!.*(?:has died|this process))/);
    expect(told(state).at(-1)).toContain('If it has died, that shows in ');
    expect(told({ holders: [holder] }, alive).at(-1)).toBe('Nothing is wrong.');
  });

  it.each([
    ['does not answer', { silent: ['shop-3'] }],
    ['is dead', { subscribed: [] }],
  ])('guesses nothing about a holder whose process %s', (_, fleet) => {
    const holders = [{ ...HOLDER, ttlMs: 8_000 }];
    expect(told({ holders }, { subscribed: null }).at(-1)).toContain('most likely died');
    expect(told({ holders }, fleet).join(' ')).not.toContain('most likely died');
  });

  it('counts the calls of all instances that wait', () => {
    const waiting = [
      waitingCall(1, 'order:7'),
      waitingCall(2, 'order:7', { waitedMs: 9_000 }),
      waitingCall(3, 'other'),
    ];
    const sentences = told(
      { holders: [HOLDER], waiters: [WAITER] },
      { instances: [fleetInstance('shop-2', { waiting })] },
    );
    expect(sentences).toContain('In all, 2 calls wait: the oldest has waited for 9 s.');
  });

  it('names the process that explains it like any other', () => {
    const deadlock = [
      { instanceId: 'shop-1', isThisProcess: true, holds: 'order:7', wants: 'x', group: 'a' },
      { instanceId: 'shop-2', isThisProcess: false, holds: 'x', wants: 'order:7', group: 'b' },
    ];
    const state = stateOf({ holders: [MINE], waiters: [WAITER] });
    const { text } = explainFromOutside(state, undefined, { deadlock });
    expect(text).toContain('"order:7" has been held by shop-1 for 62 s');
    expect(text).toContain('"shop-1" holds "order:7" and wants "x"; "shop-2" holds "x" and wants "order:7".');
    expect(text).not.toContain('this process');
  });
});

import { jest } from '@jest/globals';
import type { LockOptions } from '../../../../../lib/kernel/api/lock-options.js';
import type { TransactionHooks } from '../../../../../lib/kernel/api/transactions.js';
import { LockStoreError } from '../../../../../lib/kernel/store/store-error.js';
import type { ExplainOptions } from '../../../../../lib/features/fleet/core/explain/explainer.js';
import { settle } from '../../../../support/world/fake-clock.js';
import { type Instance, LockWorld } from '../../../../support/world/lock-world.js';
import { jobsOn } from '../../../../support/world/forgetful.js';
import { gate, track } from '../../../../support/expect/tracked.js';

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
      `"stock" is held by b for 62 s (mode exclusive, token ${lease.fencingToken}).`,
      'It was last renewed 2 s ago, in time: the lease has 28 s left.',
      '1 waiter is in its queue: this process (mode exclusive).',
      'One call of this process waits for it, for 61 s.',
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
    expect((await a.locks.operators.explain('order 7')).text).toMatch(/^"order 7" is held by c for 0 ms \(mode/);
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
    expect(sentences).toContain('One call of this process waits for it, for 700 ms.');
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

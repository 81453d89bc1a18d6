import { LockUnavailableError } from '../../../../lib/kernel/api/errors.js';
import { LeaseLostError } from '../../../../lib/kernel/api/lease-errors.js';
import type { Lease } from '../../../../lib/kernel/api/lease.js';
import { gate, track } from '../../../support/expect/tracked.js';
import { eventsOf } from '../../../support/world/lock-world.js';
import { answered, failing, lostOnTheWay, repliedWhen, replyLost } from '../../../support/world/scripted-store.js';
import { Fleet, LEASE_MS, type Member, WAIT_MS } from '../../../support/world/singleton-fleet.js';

describe('a run that crashes', () => {
  let fleet: Fleet;
  let anna: Member;
  let ben: Member;
  let cleo: Member;

  function start(onCrash: 'skip' | 'retry', overlap: 'skip' | 'wait' = 'skip') {
    fleet = new Fleet({ onCrash, overlap });
    [anna, ben, cleo] = fleet.members('anna', 'ben', 'cleo') as [Member, Member, Member];
  }

  /** The job gives up when it loses its lease. */
  function untilLost({ signal }: Lease): Promise<never> {
    return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason as LeaseLostError)));
  }

  describe("a runner that dies (onCrash: 'skip')", () => {
    it('drops its tick, and the next tick runs as soon as its lease has expired', async () => {
      start('skip');
      anna.fire('09:00', 5_000);
      const others = [ben, cleo].map((member) => member.fire('09:00'));
      await fleet.clock.advance(1_000);
      anna.kill();
      await fleet.clock.advance(LEASE_MS);
      ben.fire('09:01');
      cleo.fire('09:01');
      await fleet.clock.advance(10 * LEASE_MS);
      expect(others.map(({ value }) => value)).toEqual([undefined, undefined]);
      expect(fleet.runs.map(({ tick, on }) => `${tick} ${on}`)).toEqual(['09:00 anna', '09:01 ben']);
    });
  });

  describe("a runner that dies (onCrash: 'retry')", () => {
    beforeEach(() => start('retry'));

    it('before the job starts: another instance runs the tick within a lease', async () => {
      anna.tickStore.next('claim', replyLost);
      anna.fire('09:00');
      anna.kill();
      const diedAt = fleet.clock.now();
      ben.fire('09:00');
      await fleet.clock.advance(2 * LEASE_MS);
      expect(fleet.runs.map(({ on }) => on)).toEqual(['ben']);
      expect(fleet.runs[0]!.startedAt - diedAt).toBeLessThanOrEqual(LEASE_MS + 100);
      expect(eventsOf(ben.instance, 'tickStarted')).toMatchObject([{ tick: '09:00', rerun: true }]);
    });

    it.each([100, 2_900, 3_100, 8_000, 20_000])(
      'after %d ms of the job: one of the others runs the tick again within a lease',
      async (afterMs) => {
        for (const member of [anna, ben, cleo]) member.fire('09:00', 30_000);
        await fleet.clock.advance(afterMs);
        anna.kill();
        const diedAt = fleet.clock.now();
        await fleet.clock.advance(10 * LEASE_MS);
        expect(fleet.runs).toHaveLength(2);
        const [first, rerun] = fleet.runs;
        expect(rerun!.startedAt - diedAt).toBeLessThanOrEqual(LEASE_MS + 100);
        expect(rerun!.fencingToken).toBeGreaterThan(first!.fencingToken);
        expect(rerun!.endedAt).toBeDefined();
      },
    );

    it('after the job has finished but before the lock is released: it is not run again', async () => {
      anna.instance.store.fates.release = lostOnTheWay;
      anna.fire('09:00', 1_000);
      const other = ben.fire('09:00');
      await fleet.clock.advance(1_100);
      anna.kill();
      await fleet.clock.advance(10 * LEASE_MS);
      expect(fleet.runs).toHaveLength(1);
      expect(other).toMatchObject({ state: 'fulfilled', value: undefined });
    });

    it.each([
      [undefined, 3],
      [1, 2],
    ])('and so do its rescuers: with maxReruns: %s, the tick ends after %s runs', async (maxReruns, runs) => {
      const members = fleet.members('dan', 'eve').concat(anna, ben, cleo);
      for (const member of members) {
        member.run(
          '09:00',
          (lease) => {
            const run = fleet.work(member, '09:00', lease, LEASE_MS);
            member.kill();
            return run;
          },
          { maxReruns },
        );
      }
      await fleet.clock.advance(20 * LEASE_MS);
      expect(fleet.runs).toHaveLength(runs);
      const living = members.filter(({ isDead }) => !isDead);
      const skipped = living.flatMap(({ instance }) => eventsOf(instance, 'tickSkipped'));
      const crashed = skipped.filter(({ reason }) => reason === 'crashed');
      expect(crashed).toMatchObject([{ tick: '09:00', attempts: runs }]);
      expect(skipped).toHaveLength(living.length);
      const attempts = members
        .flatMap(({ instance }) => eventsOf(instance, 'tickStarted'))
        .map(({ attempt }) => attempt);
      expect(new Set(attempts)).toEqual(new Set([1, 2, 3].slice(0, runs)));
    });

    it.each(Array.from({ length: 12 }, (_, i) => i * 997))(
      'is not taken for dead by who looks %d ms after the tick, while it runs and when it ends',
      async (delayMs) => {
        anna.fire('09:00', 6_000);
        await fleet.clock.advance(delayMs);
        const late = ben.fire('09:00');
        await fleet.clock.advance(10 * LEASE_MS);
        expect(fleet.runs.map(({ on }) => on)).toEqual(['anna']);
        expect(late.state).toBe('fulfilled');
      },
    );
  });

  describe("a runner that cannot report its end (onCrash: 'retry')", () => {
    beforeEach(() => start('retry'));

    it('keeps the lock until it can', async () => {
      anna.tickStore.next('finish', lostOnTheWay, replyLost, answered);
      const call = anna.fire('09:00', 1_000);
      ben.fire('09:00');
      await fleet.clock.advance(10 * LEASE_MS);
      expect(anna.tickStore.finishes).toHaveLength(3);
      expect(call.value).toBe('09:00 by anna');
      expect(fleet.runs).toHaveLength(1);
      // The time that Redis took is not the job's.
      expect(eventsOf(anna.instance, 'tickFinished')).toMatchObject([{ ranMs: 1_000 }]);
    });
  });

  describe("a run that loses its lease (onCrash: 'retry')", () => {
    beforeEach(() => start('retry'));

    it('and therefore fails is run again elsewhere', async () => {
      const call = anna.run('09:00', untilLost);
      ben.fire('09:00');
      await fleet.clock.advance(1_000);
      anna.instance.store.fates.renew = lostOnTheWay;
      await fleet.clock.advance(3 * LEASE_MS);
      expect(call.error).toMatchObject({ reason: 'notRenewed' });
      expect(fleet.runs.map(({ on }) => on)).toEqual(['ben']);
    });

    it('because Redis lost its data is not run again: no record shows that it was due', async () => {
      const call = anna.run('09:00', untilLost);
      ben.fire('09:00');
      await fleet.clock.advance(1_000);
      const { server } = fleet.world;
      server.lose('cron:report');
      server.redis.del(server.keys.tick('cron:report', '09:00'));
      await fleet.clock.advance(3 * LEASE_MS);
      expect(call.error).toMatchObject({ reason: 'takenOver' });
      expect(fleet.runs).toHaveLength(0);
      ben.fire('09:01');
      await fleet.clock.advance(1_000);
      expect(fleet.runs).toHaveLength(1);
    });
  });

  describe("an instance that waits for an earlier run to end (overlap: 'wait', onCrash: 'retry')", () => {
    beforeEach(() => start('retry', 'wait'));

    it('is replaced when it dies waiting', async () => {
      anna.fire('09:00', 10_000);
      await fleet.clock.advance(100);
      for (const member of [ben, cleo]) member.fire('09:01', 1_000);
      await fleet.clock.advance(1_000);
      ben.kill();
      await fleet.clock.advance(10 * LEASE_MS);
      expect(fleet.runs.map(({ tick, on }) => `${tick} ${on}`)).toEqual(['09:00 anna', '09:01 cleo']);
      // It had not begun.
      expect(eventsOf(cleo.instance, 'tickStarted')).toMatchObject([{ tick: '09:01', rerun: false }]);
    });

    it("is replaced even if runs are not repeated (onCrash: 'skip'), because it had not begun", async () => {
      start('skip', 'wait');
      anna.fire('09:00', 10_000);
      await fleet.clock.advance(100);
      for (const member of [ben, cleo]) member.fire('09:01', 1_000);
      await fleet.clock.advance(1_000);
      ben.kill();
      await fleet.clock.advance(10 * LEASE_MS);
      expect(fleet.runs.map(({ tick, on }) => `${tick} ${on}`)).toEqual(['09:00 anna', '09:01 cleo']);
      expect(eventsOf(cleo.instance, 'tickStarted')).toMatchObject([{ tick: '09:01', rerun: false }]);
    });
  });
});

describe('a run during an outage', () => {
  let fleet: Fleet;
  let anna: Member;

  beforeEach(() => {
    fleet = new Fleet();
    [anna] = fleet.members('anna', 'ben') as [Member, Member];
  });

  describe('a tick that fires while Redis is unreachable', () => {
    it.each([
      ['cannot be reached', failing('notExecuted')],
      ['breaks the connection', failing('unknown')],
      ['hangs', lostOnTheWay],
    ])('runs when Redis recovers within waitMs: it %s', async (_, fate) => {
      anna.tickStore.fates.claim = fate;
      const call = anna.fire('09:00');
      await fleet.clock.advance(WAIT_MS / 2);
      expect(fleet.runs).toHaveLength(0);
      anna.tickStore.fates.claim = answered;
      await fleet.clock.advance(2_000);
      expect(call.value).toBe('09:00 by anna');
    });

    it.each([
      ['cannot be reached', failing('notExecuted', 'no connection'), 'failed'],
      ['hangs', lostOnTheWay, 'timeout'],
    ])('throws LockUnavailableError after waitMs: it %s', async (_, fate, lastAttempt) => {
      anna.tickStore.fates.claim = fate;
      const call = anna.fire('09:00');
      await fleet.clock.advance(WAIT_MS - 1);
      expect(call.state).toBe('pending');
      await fleet.clock.advance(1_100);
      expect(call.error).toBeInstanceOf(LockUnavailableError);
      expect(call.error).toMatchObject({ resource: 'cron:report', operation: 'claim tick 09:00 of', lastAttempt });
      expect(eventsOf(anna.instance, 'tickFailed')).toMatchObject([
        { type: 'tickFailed', job: 'report', tick: '09:00', error: call.error },
      ]);
      expect(fleet.runs).toHaveLength(0);
    });

    it('throws LockUnavailableError at once if Redis refuses', async () => {
      anna.tickStore.fates.claim = failing('refused', 'NOPERM no permission');
      const call = anna.fire('09:00');
      await fleet.clock.advance(0);
      expect(anna.tickStore.claims).toHaveLength(1);
      expect((call.error as Error).message).toBe(
        'Redis could not claim tick 09:00 of "cron:report": NOPERM no permission',
      );
    });
  });

  describe('a late grant', () => {
    it('is claimed again when its lease has expired, and then the tick runs', async () => {
      const { opened, open } = gate();
      anna.tickStore.next('claim', repliedWhen(opened));
      const call = anna.fire('09:00', 5, { lock: { ...fleet.job.lock, attemptTimeoutMs: 20_000 } });
      await fleet.clock.advance(LEASE_MS + 10);
      expect(fleet.holder).toBeUndefined();
      open();
      await fleet.clock.advance(100);
      expect(call.value).toBe('09:00 by anna');
      expect(anna.tickStore.claims).toHaveLength(2);
      const { startedAt, fencingToken } = fleet.runs[0]!;
      expect(startedAt).toBeGreaterThan(LEASE_MS);
      expect(fencingToken).toBeGreaterThan(0);
    });
  });
});

describe('an instance that shuts down', () => {
  let fleet: Fleet;
  let anna: Member;
  let ben: Member;

  beforeEach(() => {
    fleet = new Fleet({ onCrash: 'retry' });
    [anna, ben] = fleet.members('anna', 'ben') as [Member, Member];
  });

  function untilLost({ signal }: Lease): Promise<never> {
    return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error)));
  }

  it('while it claims a tick does not run it, and returns a lock that it may have got', async () => {
    anna.tickStore.next('claim', replyLost);
    const call = anna.fire('09:00');
    await fleet.clock.advance(10);
    expect(fleet.holder).toBe('anna');
    const shutdown = track(anna.instance.locks.shutdown(5_000));
    await fleet.clock.advance(100);
    expect(shutdown.state).toBe('fulfilled');
    expect(call).toMatchObject({ state: 'fulfilled', value: undefined });
    expect(fleet.holder).toBeUndefined();
    ben.fire('09:00');
    await fleet.clock.advance(100);
    expect(fleet.runs.map(({ on }) => on)).toEqual(['ben']);
  });

  it('while it waits for an earlier run to end is replaced by another one', async () => {
    anna.fire('09:00', 10_000);
    await fleet.clock.advance(100);
    const cleo = fleet.member('cleo');
    const waiting = ben.fire('09:01', 5, { overlap: 'wait' });
    cleo.fire('09:01', 5, { overlap: 'wait' });
    await fleet.clock.advance(100);
    void ben.instance.locks.shutdown(5_000);
    await fleet.clock.advance(3 * LEASE_MS);
    expect(waiting).toMatchObject({ state: 'fulfilled', value: undefined });
    expect(fleet.runsOf('09:01').map(({ on }) => on)).toEqual(['cleo']);
  });

  it.each(['skip', 'retry'] as const)(
    'that waits for an earlier run gives its tick back, which another one runs for the first time (onCrash: %s)',
    async (onCrash) => {
      const cleo = fleet.member('cleo');
      const changes = { overlap: 'wait', onCrash } as const;
      anna.fire('09:00', 10_000, changes);
      await fleet.clock.advance(100);
      for (const member of [ben, cleo]) member.fire('09:01', 5, changes);
      await fleet.clock.advance(100);
      const shutdown = track(ben.instance.locks.shutdown(5_000));
      await fleet.clock.advance(100);
      expect(ben.tickStore.returns).toHaveLength(1);
      expect(shutdown.state).toBe('fulfilled');
      await fleet.clock.advance(3 * LEASE_MS);
      expect(fleet.runsOf('09:01').map(({ on }) => on)).toEqual(['cleo']);
      expect(eventsOf(cleo.instance, 'tickStarted')).toMatchObject([{ tick: '09:01', rerun: false }]);
    },
  );

  it('after a grant that it did not notice returns the tick before the lock: it is no rerun', async () => {
    anna.tickStore.next('claim', replyLost);
    anna.fire('09:00');
    ben.fire('09:00');
    await fleet.clock.advance(10);
    void anna.instance.locks.shutdown(5_000);
    await fleet.clock.advance(LEASE_MS);
    expect(fleet.runs.map(({ on }) => on)).toEqual(['ben']);
    expect(eventsOf(ben.instance, 'tickStarted')).toMatchObject([{ rerun: false }]);
  });

  it.each(['skip', 'retry'] as const)(
    'that was granted a tick and stood still until its lease was over gives it back (onCrash: %s)',
    async (onCrash) => {
      const job = { ...fleet.job, tick: '09:00', onCrash, overlap: 'wait' } as const;
      const due = { at: fleet.clock.wallNow(), maxClockSkewMs: 60_000 };
      const plan = {
        onAccounted(): void {
          fleet.clock.block(LEASE_MS);
          void anna.instance.locks.shutdown(5_000);
        },
      };
      const call = track(anna.singletons.run({ ...job, due }, async () => 'by anna', plan));
      await fleet.clock.advance(100);
      expect(call).toMatchObject({ state: 'fulfilled', value: undefined });
      const other = track(ben.singletons.run({ ...job, due }, async () => 'by ben'));
      await fleet.clock.advance(5_000);
      expect(other).toMatchObject({ state: 'fulfilled', value: 'by ben' });
    },
  );

  it('waits for a run that ends within drainMs, which counts as finished', async () => {
    const call = anna.fire('09:00', 3_000);
    ben.fire('09:00');
    await fleet.clock.advance(1_000);
    const shutdown = track(anna.instance.locks.shutdown(5_000));
    await fleet.clock.advance(1_900);
    expect(shutdown.state).toBe('pending');
    await fleet.clock.advance(200);
    expect([call.state, shutdown.state]).toEqual(['fulfilled', 'fulfilled']);
    await fleet.clock.advance(3 * LEASE_MS);
    expect(fleet.runs).toHaveLength(1);
  });

  it('aborts a run that takes longer; if it gives up, another instance runs the tick again at once', async () => {
    anna.run('09:00', untilLost);
    ben.fire('09:00');
    await fleet.clock.advance(1_000);
    void anna.instance.locks.shutdown(5_000);
    await fleet.clock.advance(4_990);
    expect(fleet.runs).toHaveLength(0);
    // The lock is free, and a standby asks three times per lease.
    await fleet.clock.advance(LEASE_MS / 3 + 100);
    expect(fleet.runs.map(({ on }) => on)).toEqual(['ben']);
  });

  it.each([
    ['retry', ['ben'], 'lost'],
    ['skip', [], 'error'],
  ] as const)('a run that it refused a lock counts as a crash (onCrash: %s)', async (onCrash, runs, outcome) => {
    // Another lock service of the application, which has no work of its own to wait for.
    const other = fleet.world.instance('billing');
    const call = anna.run(
      '09:00',
      async () => {
        await new Promise<void>((resolve) => fleet.clock.setTimer(resolve, 1_000));
        await other.locks.using('customer', undefined, async () => {});
      },
      { onCrash },
    );
    ben.fire('09:00', 5, { onCrash });
    await fleet.clock.advance(500);
    void other.locks.shutdown(5_000);
    void anna.instance.locks.shutdown(5_000);
    await fleet.clock.advance(3 * LEASE_MS);
    expect(call.error).toMatchObject({ code: 'LOCK_SHUTDOWN' });
    expect(eventsOf(anna.instance, 'tickFinished')).toMatchObject([{ outcome }]);
    expect(fleet.runs.map(({ on }) => on)).toEqual(runs);
    expect(eventsOf(ben.instance, 'tickStarted').map(({ rerun }) => rerun)).toEqual(runs.map(() => true));
  });
});

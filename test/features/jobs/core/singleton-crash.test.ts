import { LeaseLostError } from '../../../../lib/kernel/api/lease-errors.js';
import type { Lease } from '../../../../lib/kernel/api/lease.js';
import { eventsOf } from '../../../support/world/lock-world.js';
import { answered, lostOnTheWay, replyLost } from '../../../support/world/scripted-store.js';
import { Fleet, LEASE_MS, type Member } from '../../../support/world/singleton-fleet.js';

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
    const attempts = members.flatMap(({ instance }) => eventsOf(instance, 'tickStarted')).map(({ attempt }) => attempt);
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

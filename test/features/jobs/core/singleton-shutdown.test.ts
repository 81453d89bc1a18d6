import type { Lease } from '../../../../lib/kernel/api/lease.js';
import { eventsOf } from '../../../support/world/lock-world.js';
import { replyLost } from '../../../support/world/scripted-store.js';
import { Fleet, LEASE_MS, type Member } from '../../../support/world/singleton-fleet.js';
import { track } from '../../../support/expect/tracked.js';

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

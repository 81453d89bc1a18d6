import { LockBusyError, LockTimeoutError, LockUnavailableError } from '../../../lib/kernel/api/errors.js';
import { fixedInterval, type RetryState } from '../../../lib/kernel/api/retry.js';
import { settle } from '../../support/world/fake-clock.js';
import { type Instance, LockWorld } from '../../support/world/lock-world.js';
import { executedWhen, failing, lostOnTheWay, replyLost } from '../../support/world/scripted-store.js';
import { gate, track } from '../../support/expect/tracked.js';

describe('attempts', () => {
  let world: LockWorld;
  let a: Instance;
  let b: Instance;

  beforeEach(() => {
    world = new LockWorld();
    a = world.instance('a');
    b = world.instance('b');
  });

  describe('with a retry strategy', () => {
    it('calls next() of the user with the state of the wait', async () => {
      await a.locks.acquire('stock', { leaseMs: 5_000, watchdog: false });
      const states: RetryState[] = [];
      const next = (state: RetryState) => {
        states.push(state);
        return states.length < 3 ? 250 : null;
      };
      const polling = track(b.locks.acquire('stock', { retry: { next } }));
      await world.clock.advance(1_000);
      expect(states).toMatchObject([
        { attempt: 1, elapsedMs: 0, lastAttempt: 'busy', holderTtlMs: 5_000 },
        { attempt: 2, elapsedMs: 250, lastAttempt: 'busy', holderTtlMs: 4_750 },
        { attempt: 3, elapsedMs: 500, lastAttempt: 'busy', holderTtlMs: 4_500 },
      ]);
      expect(polling.error).toBeInstanceOf(LockBusyError);
    });

    it.each([['soon'], [-1], [NaN], [Infinity], [undefined]])('refuses a pause of %p', async (pause) => {
      await a.locks.acquire('stock');
      const retry = { next: () => pause as number };
      await expect(b.locks.acquire('stock', { retry })).rejects.toMatchObject({
        code: 'INVALID_LOCK_OPTIONS',
        option: 'retry',
      });
    });

    it('rethrows an error of a strategy, and leaves nothing behind', async () => {
      await a.locks.acquire('stock');
      const bug = new TypeError('bug in my strategy');
      const retry = {
        next(): number {
          throw bug;
        },
      };
      await expect(b.locks.acquire('stock', { retry })).rejects.toBe(bug);
      await settle();
      expect(b.store.sent('release')).toEqual([]);
    });
  });

  describe('report the last outcome when they run out', () => {
    const retry = fixedInterval({ intervalMs: 10, maxAttempts: 3 });

    it('busy', async () => {
      await a.locks.acquire('stock');
      const polling = track(b.locks.acquire('stock', { retry }));
      await world.clock.advance(100);
      expect(polling.error).toBeInstanceOf(LockBusyError);
      expect(polling.error).toMatchObject({ lastAttempt: 'busy', attempts: 3 });
      expect((polling.error as Error).message).toContain('asked 3 times');
    });

    it('timed out', async () => {
      b.store.fates.acquire = lostOnTheWay;
      const polling = track(b.locks.acquire('stock', { retry, attemptTimeoutMs: 200 }));
      await world.clock.advance(1_000);
      expect(polling.error).toBeInstanceOf(LockUnavailableError);
      expect(polling.error).toMatchObject({ lastAttempt: 'timeout', operation: 'acquire' });
      expect((polling.error as Error).message).toContain('no answer within 200 ms');
    });

    it('failed', async () => {
      b.store.fates.acquire = failing('notExecuted', 'LOADING Redis is loading');
      const polling = track(b.locks.acquire('stock', { retry }));
      await world.clock.advance(100);
      expect(polling.error).toBeInstanceOf(LockUnavailableError);
      expect(polling.error).toMatchObject({ lastAttempt: 'failed' });
      expect((polling.error as Error).message).toContain('LOADING Redis is loading');
    });
  });

  describe('that fail', () => {
    it('are repeated until waitMs has passed if Redis may recover', async () => {
      a.store.next('acquire', failing('notExecuted'), failing('unknown'), failing('notExecuted'));
      const acquiring = track(a.locks.acquire('stock'));
      await world.clock.advance(1_000);
      expect(acquiring.value.isHeld()).toBe(true);
      expect(a.store.sent('acquire')).toHaveLength(4);
    });

    it('are not repeated if Redis refuses: the error is thrown at once', async () => {
      a.store.fates.acquire = failing('refused', 'NOPERM no permission');
      const acquiring = track(a.locks.acquire('stock'));
      await settle();
      expect(acquiring.error).toBeInstanceOf(LockUnavailableError);
      expect((acquiring.error as Error).message).toContain('NOPERM no permission');
      expect(a.store.sent('acquire')).toHaveLength(1);
    });

    it('end in LockUnavailableError if Redis never answered within waitMs', async () => {
      a.store.fates.acquire = failing('notExecuted', 'not connected');
      const acquiring = track(a.locks.acquire('stock', { waitMs: 3_000 }));
      await world.clock.advance(3_000);
      expect(acquiring.error).toBeInstanceOf(LockUnavailableError);
      expect((acquiring.error as Error).message).toContain('not connected');
      expect(a.store.sent('acquire').length).toBeLessThan(20);
    });

    it('do not hide a local holder from a call whose turn comes in the last moment', async () => {
      const held = await a.locks.acquire('stock', { leaseMs: 60_000, strictOrder: true });
      const acquiring = track(a.locks.acquire('stock', { waitMs: 1_000, leaseMs: 60_000, strictOrder: true }));
      await world.clock.advance(998);
      a.store.fates.rotate = lostOnTheWay;
      track(held.release());
      await world.clock.advance(2);
      expect(a.store.sent('rotate')).toHaveLength(1);
      expect(acquiring.error).toBeInstanceOf(LockTimeoutError);
      expect(acquiring.error).toMatchObject({ lastAttempt: 'busy' });
    });
  });

  describe('that time out', () => {
    it('leave no orphan lock if the command was executed and its reply lost', async () => {
      a.store.fates.acquire = replyLost;
      const acquiring = track(a.locks.acquire('stock', { waitMs: 0, attemptTimeoutMs: 200 }));
      await world.clock.advance(199);
      expect(world.server.isEmpty).toBe(false);
      await world.clock.advance(1);
      expect(acquiring.state).toBe('rejected');
      expect(world.server.isEmpty).toBe(true);
      expect(a.store.sent('release')).toMatchObject([{ owner: a.store.sent('acquire')[0]!.owner }]);
    });

    it('withdraw when the caller gives up in the middle of a command', async () => {
      const arrival = gate();
      a.store.next('acquire', executedWhen(arrival.opened));
      a.store.next('release', executedWhen(arrival.opened)); // on the same connection, behind it
      const controller = new AbortController();
      const acquiring = track(a.locks.acquire('stock', { signal: controller.signal }));
      await settle();
      controller.abort();
      await settle();
      expect(acquiring.state).toBe('rejected');
      arrival.open();
      await settle();
      expect(world.server.isEmpty).toBe(true);
    });

    it('return a grant that arrives after the release that was to withdraw them', async () => {
      const arrival = gate();
      a.store.next('acquire', executedWhen(arrival.opened)); // the script was not loaded, and is sent once more
      const controller = new AbortController();
      const acquiring = track(a.locks.acquire('stock', { signal: controller.signal }));
      await settle();
      controller.abort();
      await settle();
      expect(acquiring.state).toBe('rejected');
      expect(a.store.sent('release')).toHaveLength(1);
      arrival.open();
      await settle();
      expect(a.store.sent('release')).toHaveLength(2);
      expect(world.server.isEmpty).toBe(true);
    });
  });
});

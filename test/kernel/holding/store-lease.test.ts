import { LOCK_DEFAULTS, resolveLockOptions, type LockOptions } from '../../../lib/kernel/api/lock-options.js';
import { StoreLease } from '../../../lib/kernel/holding/store-lease.js';
import { LockStoreError, type StoreFailure } from '../../../lib/kernel/store/store-error.js';
import { Deferred } from '../../../lib/kernel/util/promises.js';
import { FakeClock } from '../../support/world/fake-clock.js';

const LEASE_MS = 3_000;
const DRIFT_MS = 32;

describe('a store lease', () => {
  let clock: FakeClock;
  let begin: number;

  beforeEach(() => {
    clock = new FakeClock();
    begin = clock.now();
  });

  const terms = (options: LockOptions = {}) => resolveLockOptions({ leaseMs: LEASE_MS, ...options }, LOCK_DEFAULTS);

  function start(options: LockOptions = {}, sentAt = begin): StoreLease {
    return new StoreLease({ resource: 'stock', id: 'a/1', mode: 'exclusive' }, 64, sentAt, terms(options), clock);
  }

  /** The end of the lease, relative to its beginning. */
  const deadlineOf = ({ deadline }: StoreLease) => deadline - begin;

  it('ends one lease after its command was sent, less the drift', () => {
    expect(deadlineOf(start())).toBe(LEASE_MS - DRIFT_MS);
    expect(deadlineOf(start({}, begin - 500))).toBe(LEASE_MS - DRIFT_MS - 500);
    expect(start({}, begin - 500).nextRenewalAt).toBe(begin - 500 + LEASE_MS / 3);
  });

  describe('with renewals', () => {
    /** A renewal that is under way: what it is answered with is up to the test. */
    function sent(storeLease: StoreLease, atMs: number, leaseMs = LEASE_MS, exactly = false) {
      const reply = new Deferred<boolean>();
      const done = storeLease.renewBy(leaseMs, () => reply.promise, exactly, begin + atMs).catch(() => false);
      return {
        confirm: () => {
          reply.resolve(true);
          return done;
        },
        fail: (failure: StoreFailure) => {
          reply.reject(new LockStoreError(failure, 'a test'));
          return done;
        },
      };
    }

    it('is extended when a renewal is confirmed, and then from when that was sent', async () => {
      const storeLease = start();
      const renewal = sent(storeLease, 1_000);
      expect(deadlineOf(storeLease)).toBe(LEASE_MS - DRIFT_MS);
      clock.block(2_000);
      await renewal.confirm();
      expect(deadlineOf(storeLease)).toBe(1_000 + LEASE_MS - DRIFT_MS);
    });

    it('is trusted for no longer than the shortest renewal that may be executed', async () => {
      const storeLease = start();
      const short = sent(storeLease, 100, 500);
      expect(deadlineOf(storeLease)).toBe(100 + 500 - 7);
      await short.confirm();
      expect(deadlineOf(storeLease)).toBe(593);
      await sent(storeLease, 200).confirm();
      expect(deadlineOf(storeLease)).toBe(200 + LEASE_MS - DRIFT_MS);
    });

    it('gets its old deadline back if a short renewal was certainly not executed', async () => {
      const storeLease = start();
      const short = sent(storeLease, 100, 500);
      await short.fail('notExecuted');
      expect(deadlineOf(storeLease)).toBe(LEASE_MS - DRIFT_MS);
    });

    it('counts every unanswered renewal: dismissing one forgets no other', async () => {
      const storeLease = start();
      const [first, second] = [sent(storeLease, 100, 500), sent(storeLease, 150, 400)];
      expect(deadlineOf(storeLease)).toBe(150 + 400 - 6);
      await second.fail('notExecuted');
      expect(deadlineOf(storeLease)).toBe(593);
      await first.fail('notExecuted');
      expect(deadlineOf(storeLease)).toBe(LEASE_MS - DRIFT_MS);
    });

    it('counts the renewals that were sent after the confirmed one', async () => {
      const storeLease = start();
      const first = sent(storeLease, 1_000);
      sent(storeLease, 1_100, 500);
      await first.confirm();
      expect(deadlineOf(storeLease)).toBe(1_100 + 500 - 7);
    });

    it('is not shortened by an older confirmation that arrives after a newer one', async () => {
      const storeLease = start();
      const [first, second] = [sent(storeLease, 1_000), sent(storeLease, 2_000)];
      clock.block(2_100);
      await second.confirm();
      await first.confirm();
      expect(deadlineOf(storeLease)).toBe(2_000 + LEASE_MS - DRIFT_MS);
    });

    it('allows for a pending renewal that cuts it, even after a later one was confirmed', async () => {
      const storeLease = start();
      const cut = sent(storeLease, 100, 500, true);
      await sent(storeLease, 200).confirm();
      expect(deadlineOf(storeLease)).toBe(100 + 500 - 7); // it may still be executed: a script may be sent anew
      await cut.fail('unknown');
      await sent(storeLease, 300).confirm();
      expect(deadlineOf(storeLease)).toBe(300 + 500 - 7); // it may still come, on a connection that was thought dead
      expect(storeLease.leaseMs).toBe(500);
    });

    it('uses the shorter of two renewals whose replies were reordered, because the last one executed is unknown', async () => {
      const storeLease = start();
      const long = sent(storeLease, 0, 10_000, true);
      const short = sent(storeLease, 0, 2_000, true);
      await short.confirm();
      await long.confirm();
      expect(deadlineOf(storeLease)).toBe(2_000 - 22);
      await sent(storeLease, 100).confirm();
      expect(deadlineOf(storeLease)).toBe(100 + LEASE_MS - DRIFT_MS);
    });

    it('returns the reply when the deadline has moved, and the failure as a store error', async () => {
      const storeLease = start();
      const renewed = storeLease.renewBy(LEASE_MS, async () => true, false, begin + 100);
      expect(await renewed.then((reply) => [reply, deadlineOf(storeLease)])).toEqual([true, 100 + LEASE_MS - DRIFT_MS]);
      await expect(storeLease.renewBy(LEASE_MS, async () => false)).resolves.toBe(false);
      const failed = storeLease.renewBy(LEASE_MS, () => Promise.reject(new Error('odd')));
      await expect(failed).rejects.toMatchObject({ name: 'LockStoreError', failure: 'unknown', message: 'odd' });
      expect(storeLease.isUnconfirmed).toBe(true);
    });

    it.each([
      ['in the very moment', 0],
      ['after', 1],
    ])('is not revived by a confirmation %s it ended', async (_, lateMs) => {
      const storeLease = start();
      const renewal = sent(storeLease, 1_000);
      clock.block(LEASE_MS - DRIFT_MS + lateMs);
      await renewal.confirm();
      expect(deadlineOf(storeLease)).toBe(LEASE_MS - DRIFT_MS);
    });

    it('is not revived either after a shorter one had ended it', async () => {
      const storeLease = start();
      const [short, long] = [sent(storeLease, 100, 200), sent(storeLease, 150)];
      clock.block(300);
      await long.confirm();
      await short.confirm();
      expect(deadlineOf(storeLease)).toBe(100 + 200 - 4);
    });
  });

  describe('is passed on', () => {
    it('with the next token each time', () => {
      const storeLease = start();
      expect(storeLease.fencingToken).toBe(64);
      storeLease.mintToken();
      expect(storeLease.fencingToken).toBe(65);
      storeLease.mintToken();
      expect(storeLease.fencingToken).toBe(66);
    });

    it('31 times, and never out of its tick', () => {
      const storeLease = start();
      for (let i = 0; i < 31; i++, storeLease.mintToken()) expect(storeLease.mayHandOverTo(terms())).toBe(true);
      expect(storeLease.mayHandOverTo(terms())).toBe(false);
      expect(storeLease.fencingToken).toBe(64 + 31);
    });

    it('not once it has ended, even if it is younger than 10 ms', () => {
      const storeLease = start({}, begin - (LEASE_MS - DRIFT_MS) + 5);
      clock.block(4);
      expect(storeLease.mayHandOverTo(terms())).toBe(true);
      clock.block(1);
      expect(storeLease.mayHandOverTo(terms())).toBe(false);
    });

    it('within 10 ms of its beginning, which is when it was granted', () => {
      const storeLease = start({}, begin - 500);
      clock.block(9);
      expect(storeLease.mayHandOverTo(terms())).toBe(true);
      expect(storeLease.mayHandOverTo(terms({ strictOrder: true }))).toBe(false);
      clock.block(1);
      expect(storeLease.mayHandOverTo(terms())).toBe(false);
    });

    it('not while its length differs from the first one', () => {
      const storeLease = start();
      storeLease.leaseMs = 5_000;
      expect(storeLease.mayHandOverTo(terms())).toBe(false);
      expect(storeLease.mayHandOverTo(terms({ leaseMs: 5_000 }))).toBe(true);
    });
  });
});

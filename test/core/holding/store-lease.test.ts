import { LOCK_DEFAULTS, resolveLockOptions, type LockOptions } from '../../../lib/core/api/lock-options.js';
import { Tenure } from '../../../lib/core/holding/store-lease.js';
import { FakeClock } from '../../support/world/fake-clock.js';

const LEASE_MS = 3_000;
const DRIFT_MS = 32;

describe('a tenure', () => {
  let clock: FakeClock;
  let begin: number;

  beforeEach(() => {
    clock = new FakeClock();
    begin = clock.now();
  });

  const terms = (options: LockOptions = {}) => resolveLockOptions({ leaseMs: LEASE_MS, ...options }, LOCK_DEFAULTS);

  function start(options: LockOptions = {}, sentAt = begin): Tenure {
    return new Tenure({ resource: 'stock', owner: 'a/1', mode: 'exclusive' }, 64, sentAt, terms(options), clock);
  }

  /** How long after the beginning it ends. */
  const deadlineOf = ({ deadline }: Tenure) => deadline - begin;

  it('ends a lease after its command was sent, less the drift', () => {
    expect(deadlineOf(start())).toBe(LEASE_MS - DRIFT_MS);
    expect(deadlineOf(start({}, begin - 500))).toBe(LEASE_MS - DRIFT_MS - 500);
    expect(start({}, begin - 500).nextRenewalAt).toBe(begin - 500 + LEASE_MS / 3);
  });

  describe('that is renewed', () => {
    const sent = (tenure: Tenure, atMs: number, leaseMs = LEASE_MS) => tenure.renewing(begin + atMs, leaseMs);

    it('lasts no longer before the renewal is confirmed, and then from when it was sent', () => {
      const tenure = start();
      const renewal = sent(tenure, 1_000);
      expect(deadlineOf(tenure)).toBe(LEASE_MS - DRIFT_MS);
      clock.standStill(2_000);
      tenure.confirm(renewal);
      expect(deadlineOf(tenure)).toBe(1_000 + LEASE_MS - DRIFT_MS);
    });

    it('is trusted for no longer than the shortest renewal that may be executed', () => {
      const tenure = start();
      const short = sent(tenure, 100, 500);
      expect(deadlineOf(tenure)).toBe(100 + 500 - 7);
      tenure.confirm(short);
      expect(deadlineOf(tenure)).toBe(593);
      tenure.confirm(sent(tenure, 200));
      expect(deadlineOf(tenure)).toBe(200 + LEASE_MS - DRIFT_MS);
    });

    it('has its old deadline back when it is known that a short renewal was not executed', () => {
      const tenure = start();
      const short = sent(tenure, 100, 500);
      tenure.dismiss(short);
      tenure.dismiss(short);
      expect(deadlineOf(tenure)).toBe(LEASE_MS - DRIFT_MS);
    });

    it('counts every unanswered renewal: none of the others is forgotten with one that is dismissed', () => {
      const tenure = start();
      const [first, second] = [sent(tenure, 100, 500), sent(tenure, 150, 400)];
      expect(deadlineOf(tenure)).toBe(150 + 400 - 6);
      tenure.dismiss(second);
      expect(deadlineOf(tenure)).toBe(593);
      tenure.dismiss(first);
      expect(deadlineOf(tenure)).toBe(LEASE_MS - DRIFT_MS);
    });

    it('counts the renewals that were sent after the confirmed one', () => {
      const tenure = start();
      const first = sent(tenure, 1_000);
      sent(tenure, 1_100, 500);
      tenure.confirm(first);
      expect(deadlineOf(tenure)).toBe(1_100 + 500 - 7);
    });

    it('is not set back by an older confirmation that comes after a newer one', () => {
      const tenure = start();
      const [first, second] = [sent(tenure, 1_000), sent(tenure, 2_000)];
      clock.standStill(2_100);
      tenure.confirm(second);
      tenure.confirm(first);
      expect(deadlineOf(tenure)).toBe(2_000 + LEASE_MS - DRIFT_MS);
    });

    it('reckons with a renewal that cuts it, also after a later one was confirmed, and when there is no answer', () => {
      const tenure = start();
      const cut = tenure.renewing(begin + 100, 500, true);
      tenure.confirm(sent(tenure, 200));
      expect(deadlineOf(tenure)).toBe(100 + 500 - 7); // it may still be executed: a script may be sent anew
      tenure.forget(cut);
      tenure.confirm(sent(tenure, 300));
      expect(deadlineOf(tenure)).toBe(300 + 500 - 7); // it may still come, on a connection that was thought dead
      expect(tenure.leaseMs).toBe(500);
    });

    it('is confirmed once by each', () => {
      const tenure = start();
      const renewal = sent(tenure, 1_000);
      tenure.confirm(renewal);
      sent(tenure, 1_500, 100);
      tenure.confirm(renewal);
      expect(deadlineOf(tenure)).toBe(1_500 + 100 - 3);
    });

    it.each([
      ['in the very moment', 0],
      ['after', 1],
    ])('is not revived by a confirmation %s it ended', (_, lateMs) => {
      const tenure = start();
      const renewal = sent(tenure, 1_000);
      clock.standStill(LEASE_MS - DRIFT_MS + lateMs);
      tenure.confirm(renewal);
      expect(deadlineOf(tenure)).toBe(LEASE_MS - DRIFT_MS);
    });

    it('is not revived either when a shorter one had ended it', () => {
      const tenure = start();
      const [short, long] = [sent(tenure, 100, 200), sent(tenure, 150)];
      clock.standStill(300);
      tenure.confirm(long);
      tenure.confirm(short);
      expect(deadlineOf(tenure)).toBe(100 + 200 - 4);
    });
  });

  describe('is handed on', () => {
    it('with the next token each time', () => {
      const tenure = start();
      expect(tenure.fencingToken).toBe(64);
      tenure.passOn();
      expect(tenure.fencingToken).toBe(65);
      tenure.passOn();
      expect(tenure.fencingToken).toBe(66);
    });

    it('as often as cohort allows, and never out of its tick', () => {
      const tenure = start();
      for (let i = 0; i < 31; i++, tenure.passOn()) expect(tenure.mayPassTo(terms())).toBe(true);
      expect(tenure.mayPassTo(terms())).toBe(false);
      expect(tenure.fencingToken).toBe(64 + 31);
    });

    it('no more once it has ended, also where it is younger than cohortMs', () => {
      const tenure = start({ cohortMs: 60_000 });
      clock.standStill(LEASE_MS - DRIFT_MS - 1);
      expect(tenure.mayPassTo(terms({ cohortMs: 60_000 }))).toBe(true);
      clock.standStill(1);
      expect(tenure.mayPassTo(terms({ cohortMs: 60_000 }))).toBe(false);
    });

    it('within cohortMs of its beginning, which is when it was granted', () => {
      const tenure = start({}, begin - 500);
      clock.standStill(9);
      expect(tenure.mayPassTo(terms())).toBe(true);
      expect(tenure.mayPassTo(terms({ cohortMs: 9 }))).toBe(false);
      clock.standStill(1);
      expect(tenure.mayPassTo(terms())).toBe(false);
    });

    it('no more while it has another length than it began with', () => {
      const tenure = start();
      tenure.leaseMs = 5_000;
      expect(tenure.mayPassTo(terms())).toBe(false);
      expect(tenure.mayPassTo(terms({ leaseMs: 5_000 }))).toBe(true);
    });
  });
});

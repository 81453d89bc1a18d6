import type { LockStore, Ownership } from '../../lib/core/lock-store.js';
import type { TickClaim, TickLedger } from '../../lib/core/tick-ledger.js';
import { contender, LONG_MS, SHORT_MS, type Subject, take } from './subject.js';

const TICK = { resource: 'job:report', tick: '2026-01-01T00:00:00Z' };
const NEXT_TICK = { ...TICK, tick: '2026-01-01T00:01:00Z' };

/** What every tick ledger keeps to: a tick starts once. */
export function describeTickLedger(createSubject: () => Promise<Subject>): void {
  let subject: Subject;
  let store: LockStore;
  let ledger: TickLedger;
  let otherLedger: TickLedger;
  let runner: Ownership;
  let other: Ownership;

  beforeEach(async () => {
    subject = await createSubject();
    const one = await subject.open('one');
    const two = await subject.open('two');
    ({ store, ledger } = one);
    otherLedger = two.ledger;
    runner = contender(one.store, TICK.resource);
    other = contender(two.store, TICK.resource);
  });
  afterEach(() => subject.close());

  function wish(ownership: Ownership, changes: Partial<TickClaim> = {}): TickClaim {
    return { ownership, leaseMs: LONG_MS, keepMs: LONG_MS, overlap: 'skip', rescue: false, ...changes };
  }

  /** The runner's run is over. */
  async function finish(tick = TICK) {
    await ledger.finish(tick, runner, LONG_MS);
    await store.release(runner);
  }

  it('grants a tick with the lock of its job, in one step', async () => {
    const reply = await ledger.claim(TICK, wish(runner));
    expect(reply).toEqual({ status: 'granted', fencingToken: expect.any(Number) });
    expect(await store.inspect(TICK.resource)).toMatchObject({
      mode: 'exclusive',
      holders: [{ instanceId: 'one', fencingToken: (reply as { fencingToken: number }).fencingToken }],
    });
  });

  it('grants a re-sent claim again, with the same token', async () => {
    const reply = await ledger.claim(TICK, wish(runner));
    expect(await ledger.claim(TICK, wish(runner))).toEqual(reply);
  });

  it('tells the others that the tick is taken, and for how long its lock lasts', async () => {
    await ledger.claim(TICK, wish(runner));
    const reply = await otherLedger.claim(TICK, wish(other));
    expect(reply).toEqual({ status: 'taken', ttlMs: expect.any(Number) });
    expect((reply as { ttlMs: number }).ttlMs).toBeGreaterThan(LONG_MS / 2);
  });

  it('never starts a tick twice: not after it has run, and a late clock gets nothing', async () => {
    await ledger.claim(TICK, wish(runner));
    await finish();
    expect(await otherLedger.claim(TICK, wish(other))).toEqual({ status: 'finished' });
  });

  it('forgets a tick after keepMs', async () => {
    await ledger.claim(TICK, wish(runner, { keepMs: SHORT_MS, leaseMs: SHORT_MS }));
    await subject.pass(SHORT_MS * 2);
    expect((await otherLedger.claim(TICK, wish(other))).status).toBe('granted');
  });

  it('keeps jobs, and ticks of one job, apart', async () => {
    await ledger.claim(TICK, wish(runner));
    await finish();
    expect((await ledger.claim(NEXT_TICK, wish(contender(store, TICK.resource)))).status).toBe('granted');
    const elsewhere = { ...TICK, resource: 'job:draw' };
    expect((await ledger.claim(elsewhere, wish(contender(store, 'job:draw')))).status).toBe('granted');
  });

  describe('while an earlier run holds the lock', () => {
    let earlier: Ownership;

    beforeEach(async () => {
      earlier = contender(store, TICK.resource);
      await take(store, earlier);
    });

    it('drops the tick for everybody (overlap: skip)', async () => {
      expect(await ledger.claim(TICK, wish(runner))).toEqual({ status: 'overlap' });
      expect(await otherLedger.claim(TICK, wish(other))).toEqual({ status: 'finished' });
      await store.release(earlier);
      expect(await otherLedger.claim(TICK, wish(other))).toEqual({ status: 'finished' });
    });

    it('claims the tick and gets the lock later (overlap: wait)', async () => {
      const waiting = wish(runner, { overlap: 'wait' });
      expect(await ledger.claim(TICK, waiting)).toEqual({ status: 'claimed', ttlMs: expect.any(Number) });
      expect((await otherLedger.claim(TICK, wish(other, { overlap: 'wait' }))).status).toBe('taken');
      await store.release(earlier);
      expect((await ledger.claim(TICK, waiting)).status).toBe('granted');
    });
  });

  describe('a rescuer', () => {
    const rescue = { rescue: true };

    it('waits as long as the runner holds the lock', async () => {
      await ledger.claim(TICK, wish(runner));
      expect((await otherLedger.claim(TICK, wish(other, rescue))).status).toBe('taken');
    });

    it('takes over a tick whose runner died', async () => {
      await ledger.claim(TICK, wish(runner, { leaseMs: SHORT_MS }));
      expect((await otherLedger.claim(TICK, wish(other))).status).toBe('taken');
      await subject.pass(SHORT_MS * 2);
      expect(await otherLedger.claim(TICK, wish(other))).toEqual({ status: 'taken', ttlMs: 0 });
      expect((await otherLedger.claim(TICK, wish(other, rescue))).status).toBe('granted');
    });

    it('leaves the dead runner nothing to finish', async () => {
      await ledger.claim(TICK, wish(runner, { leaseMs: SHORT_MS }));
      await subject.pass(SHORT_MS * 2);
      await otherLedger.claim(TICK, wish(other, rescue));
      await ledger.finish(TICK, runner, LONG_MS);
      expect((await ledger.claim(TICK, wish(runner))).status).toBe('taken');
    });

    it('keeps the claim from being forgotten, however long the run takes', async () => {
      await ledger.claim(TICK, wish(runner, { keepMs: 1_000 }));
      await subject.pass(100);
      await otherLedger.claim(TICK, wish(other, rescue));
      await subject.pass(1_000);
      expect((await otherLedger.claim(TICK, wish(other))).status).toBe('taken');
    });

    it('has nothing to do for a tick that has run or is forgotten', async () => {
      expect(await otherLedger.claim(TICK, wish(other, rescue))).toEqual({ status: 'finished' });
      await ledger.claim(TICK, wish(runner));
      await finish();
      expect(await otherLedger.claim(TICK, wish(other, rescue))).toEqual({ status: 'finished' });
    });
  });

  it('finishes only the claim of the one who says so', async () => {
    await ledger.claim(TICK, wish(runner));
    await otherLedger.finish(TICK, other, LONG_MS);
    expect((await otherLedger.claim(TICK, wish(other))).status).toBe('taken');
    await otherLedger.finish(NEXT_TICK, other, LONG_MS);
    expect((await otherLedger.claim(NEXT_TICK, wish(other))).status).toBe('overlap');
  });
}

import { LockUnavailableError } from '../../../../lib/kernel/api/errors.js';
import { eventsOf } from '../../../support/world/lock-world.js';
import { answered, failing, lostOnTheWay, repliedWhen } from '../../../support/world/scripted-store.js';
import { Fleet, LEASE_MS, type Member, WAIT_MS } from '../../../support/world/singleton-fleet.js';
import { gate } from '../../../support/expect/tracked.js';

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

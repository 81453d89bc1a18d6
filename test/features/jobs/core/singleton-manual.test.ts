import { LockBusyError, LockShutdownError } from '../../../../lib/kernel/api/errors.js';
import type { SingletonRun } from '../../../../lib/features/jobs/core/singleton-run-options.js';
import { eventsOf } from '../../../support/world/lock-world.js';
import { Fleet, type Member } from '../../../support/world/singleton-fleet.js';
import { track } from '../../../support/expect/tracked.js';

describe('a manual run', () => {
  let fleet: Fleet;
  let anna: Member;
  let ben: Member;

  beforeEach(() => {
    fleet = new Fleet();
    [anna, ben] = fleet.members('anna', 'ben') as [Member, Member];
  });

  const byHand = { manual: true } as const;

  it('is marked for the work and for observers, and takes no tick of the schedule', async () => {
    const runs: SingletonRun[] = [];
    const options = { ...fleet.job, tick: 'manual:1', ...byHand };
    const call = track(anna.singletons.run(options, (_lease, run) => void runs.push(run)));
    await fleet.clock.advance(10);
    expect(call.state).toBe('fulfilled');
    expect(runs).toMatchObject([{ job: 'report', tick: 'manual:1', manual: true, rerun: false }]);
    expect(anna.instance.events.filter(({ type }) => type.startsWith('tick'))).toMatchObject([
      { type: 'tickStarted', manual: true },
      { type: 'tickFinished', manual: true, outcome: 'ok' },
    ]);
    ben.fire('09:00');
    await fleet.clock.advance(10);
    expect(fleet.runsOf('09:00')).toHaveLength(1);
    expect(eventsOf(ben.instance, 'tickStarted')[0]).not.toHaveProperty('manual');
  });

  it('is refused while an earlier run has not ended, with overlap skip', async () => {
    ben.fire('09:00', 60_000);
    await fleet.clock.advance(10);
    const call = anna.fire('manual:1', 5, byHand);
    await fleet.clock.advance(10);
    expect(call.error).toBeInstanceOf(LockBusyError);
    expect((call.error as Error).message).toBe(
      'The job "report" was not run by hand ("manual:1"): an earlier run has not ended, on this or another instance. ' +
        "Try again when it has, or set overlap: 'wait'.",
    );
    expect(eventsOf(anna.instance, 'tickSkipped')).toEqual([]);
    await fleet.clock.advance(120_000);
    expect(fleet.runs).toHaveLength(1);
  });

  it('waits for that run with overlap wait', async () => {
    ben.fire('09:00', 20_000);
    await fleet.clock.advance(10);
    const call = anna.fire('manual:1', 5, { ...byHand, overlap: 'wait' });
    await fleet.clock.advance(19_000);
    expect(fleet.runs).toHaveLength(1);
    await fleet.clock.advance(2_000);
    expect(call.value).toBe('manual:1 by anna');
  });

  it('is refused when the application shuts down, even while it waits', async () => {
    ben.fire('09:00', 60_000);
    await fleet.clock.advance(10);
    const waiting = anna.fire('manual:1', 5, { ...byHand, overlap: 'wait' });
    await fleet.clock.advance(10);
    void anna.instance.locks.shutdown(0);
    await fleet.clock.advance(1_000);
    const late = anna.fire('manual:2', 5, byHand);
    await fleet.clock.advance(10);
    expect(waiting.error).toBeInstanceOf(LockShutdownError);
    expect(late.error).toBeInstanceOf(LockShutdownError);
    await fleet.clock.advance(120_000);
    expect(fleet.runs).toHaveLength(1);
  });
});

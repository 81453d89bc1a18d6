import type { JobTicks, SingletonRunOptions } from '../../../../lib/features/jobs/core/singleton-run-options.js';
import { eventsOf } from '../../../support/world/lock-world.js';
import { Fleet, type Member } from '../../../support/world/singleton-fleet.js';
import { gate } from '../../../support/expect/tracked.js';

const MINUTE = 60_000;

/** A tick at the end of each so many milliseconds. */
function every(ms: number): JobTicks {
  return {
    after: (time) => (Math.floor(time / ms) + 1) * ms,
    between: async (after, until) => ({ count: Math.floor(until / ms) - Math.floor(after / ms) }),
  };
}

describe('a run that blocks later ticks', () => {
  let fleet: Fleet;
  let anna: Member;
  let ben: Member;

  beforeEach(() => {
    fleet = new Fleet();
    [anna, ben] = fleet.members('anna', 'ben') as [Member, Member];
  });

  /** Anna begins a run that ends when the gate opens. */
  function begin(
    ticks: JobTicks | undefined,
    { warnAfterMs, ...changes }: Partial<SingletonRunOptions> & { warnAfterMs?: number } = {},
  ) {
    const end = gate();
    const call = anna.singletons.run({ ...fleet.job, tick: '09:00', ...changes }, () => end.opened, {
      ticks,
      warnAfterMs,
    });
    return { end, call };
  }
  const reports = (): object[] => [anna, ben].flatMap(({ instance }) => eventsOf(instance, 'overlapLong'));

  it.each([10_000, 30_000])('is reported once, a minute after the first of them was due: every %d ms', async (ms) => {
    const { end, call } = begin(every(ms));
    const first = every(ms).after(fleet.clock.wallNow())! - fleet.clock.wallNow();
    await fleet.clock.advance(first + MINUTE - 1);
    expect(reports()).toEqual([]);
    await fleet.clock.advance(10 * MINUTE);
    const ranMs = first + MINUTE;
    expect(reports()).toMatchObject([
      { job: 'report', group: 'report', tick: '09:00', overlap: 'skip', ranMs, ticks: MINUTE / ms + 1 },
    ]);
    expect(reports()[0]).not.toHaveProperty('manual');
    end.open();
    await call;
  });

  it.each<[string, Parameters<typeof begin>[1] & object, object]>([
    ['ticks that wait', { overlap: 'wait' }, { overlap: 'wait' }],
    ['a manual run', { manual: true }, { manual: true }],
    ['a time of its own', { warnAfterMs: 5_000 }, { ranMs: 5_000, ticks: 0 }],
  ])('is reported with its details: %s', async (_, changes, report) => {
    const ticks = changes.warnAfterMs ? { ...every(MINUTE), after: (time: number) => time } : every(MINUTE);
    const { end, call } = begin(ticks, changes);
    await fleet.clock.advance(3 * MINUTE);
    expect(reports()).toMatchObject([report]);
    end.open();
    await call;
  });

  it.each<[string, JobTicks | undefined, Parameters<typeof begin>[1]]>([
    ['whose ticks are not known', undefined, {}],
    ['that has no next tick', { ...every(MINUTE), after: () => undefined }, {}],
    ['that may take as long as it likes', every(MINUTE), { warnAfterMs: Infinity }],
  ])('is not reported of a job %s', async (_, ticks, changes) => {
    const { end, call } = begin(ticks, changes);
    await fleet.clock.advance(60 * MINUTE);
    expect(reports()).toEqual([]);
    end.open();
    await call;
  });

  it('is not reported if it ends before, or while its ticks are counted', async () => {
    const { end, call } = begin(every(10_000));
    await fleet.clock.advance(MINUTE);
    end.open();
    await call;
    await fleet.clock.advance(MINUTE);
    const counted = gate();
    const slow = begin(
      {
        after: (time) => time,
        between: async () => {
          await counted.opened;
          return { count: 1 };
        },
      },
      { tick: '09:10' },
    );
    await fleet.clock.advance(MINUTE);
    slow.end.open();
    await slow.call;
    counted.open();
    await fleet.clock.advance(MINUTE);
    expect(reports()).toEqual([]);
  });
});

import { ActiveHolds } from '../../../lib/kernel/holding/lock-context.js';
import { LockObservers } from '../../../lib/kernel/events/observers.js';
import { callSiteOf } from '../../../lib/kernel/util/call-site.js';
import { Leaks } from '../../../lib/kernel/lease/leaks.js';
import { Observation } from '../../../lib/kernel/tracing/observation.js';
import type { Watchdog } from '../../../lib/kernel/holding/watchdog.js';
import { FakeClock } from '../../support/world/fake-clock.js';

function leaksBy(clock: FakeClock): Leaks {
  const observers = new LockObservers();
  const observation = new Observation(observers, clock);
  return new Leaks(new ActiveHolds(), observers, clock, {} as Watchdog, 'warn', observation);
}

describe('the call site of a lease', () => {
  it('is recorded for a limited number of calls in half a second, because a stack is expensive', async () => {
    const clock = new FakeClock();
    const leaks = leaksBy(clock);
    const acquire = () => leaks.withOrigin(acquire, (origin) => origin).stack;
    const caller = (): boolean => acquire() !== undefined;
    const recorded = () => Array.from({ length: 250 }, caller).filter(Boolean).length;
    expect(recorded()).toBe(100);
    await clock.advance(499);
    expect(recorded()).toBe(0);
    await clock.advance(1);
    expect(recorded()).toBe(100);
    leaks.stop();
    expect(clock.timers).toBe(0);
  });

  it('is recorded after the command is sent, because the store is at work by then', () => {
    const clock = new FakeClock();
    const leaks = leaksBy(clock);
    let stackAtCommand: string | undefined = 'no command was sent';
    const acquire = () =>
      leaks.withOrigin(acquire, (origin) => {
        stackAtCommand = origin.stack;
        expect(clock.timers).toBe(0);
        return origin;
      });
    const origin = acquire();
    expect(stackAtCommand).toBeUndefined();
    expect(callSiteOf(origin)).toMatch(/where-acquired\.test\.ts:\d+:\d+\)$/);
    leaks.stop();
  });
});

import { DeadlockWatch, type NestedWaits, type WatchedCall } from '../../../lib/kernel/deadlocks/deadlock-watch.js';
import type { NestedWait } from '../../../lib/kernel/deadlocks/cycles.js';
import { Alarms } from '../../../lib/kernel/util/alarms.js';
import { FakeClock } from '../../support/world/fake-clock.js';

const wait = (instanceId: string, held: string, resource: string): NestedWait => ({
  instanceId,
  isThisProcess: instanceId === 'a',
  group: 'g',
  resource,
  mode: 'exclusive',
  holds: [{ resource: held, mode: 'exclusive' }],
});

describe('DeadlockWatch', () => {
  let clock: FakeClock;
  let alarms: Alarms;
  let asked: number[];
  let answer: () => Promise<NestedWaits>;
  let watch: DeadlockWatch;

  beforeEach(() => {
    clock = new FakeClock();
    alarms = new Alarms(clock);
    asked = [];
    answer = async () => ({ waits: [], readAt: clock.now(), withinMs: 10 });
    watch = new DeadlockWatch({ clock, alarms }, () => {
      asked.push(clock.now() - beganAt);
      return answer();
    });
    beganAt = clock.now();
  });
  let beganAt: number;

  const callOf = (waitMs: number): WatchedCall => {
    const startedAt = clock.now();
    return { startedAt, giveUpAt: startedAt + waitMs, nestedWait: () => wait('a', 'x', 'y') };
  };
  const cycle = async (): Promise<NestedWaits> => ({
    waits: [{ ...wait('b', 'y', 'x'), waitedMs: 100 }],
    readAt: clock.now(),
    withinMs: 10,
  });

  it('asks a second before the end of a wait, or in the middle of a short one', async () => {
    watch.watch(callOf(10_000));
    await clock.advance(8_999);
    expect(asked).toEqual([]);
    await clock.advance(20_000);
    expect(asked).toEqual([9_000]);
    watch.watch(callOf(200));
    await clock.advance(200);
    expect(asked).toEqual([9_000, 29_099]);
  });

  it('sends nothing if the process was blocked until the wait had ended', async () => {
    watch.watch(callOf(1_000));
    clock.block(1_000);
    await clock.advance(1);
    expect(asked).toEqual([]);
  });

  it.each([
    ['fails', () => Promise.reject(new Error('Redis is away'))],
    ['never ends', () => new Promise<never>(() => {})],
  ])('leaves the call unchanged if the roll call %s', async (_name, question) => {
    answer = question;
    const call = callOf(1_000);
    watch.watch(call);
    await clock.advance(5_000);
    expect(call.deadlock).toBeUndefined();
  });

  it('asks once for all calls of a second', async () => {
    const calls = Array.from({ length: 50 }, () => callOf(1_000));
    answer = cycle;
    for (const call of calls) watch.watch(call);
    await clock.advance(1_000);
    expect(asked).toHaveLength(1);
    for (const call of calls) expect(call.deadlock).toBeDefined();
  });
});

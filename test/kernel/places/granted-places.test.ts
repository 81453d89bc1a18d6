import { AttemptLog } from '../../../lib/kernel/places/asking.js';
import { PlaceKeeper } from '../../../lib/kernel/places/place-keeper.js';
import type { QueuedWaiter } from '../../../lib/kernel/places/place.js';
import type { LockStore } from '../../../lib/kernel/store/lock-store.js';
import { type Alarm, Alarms } from '../../../lib/kernel/util/alarms.js';
import { FakeClock } from '../../support/world/fake-clock.js';
import { ScriptedHearing } from '../../support/world/scripted-store.js';

/** A third of the lease, and the jitter adds nothing. */
const PERIOD_MS = 1_000;

class NotedAlarms extends Alarms {
  readonly noted: Alarm[] = [];

  override set(alarm: Alarm, at: number): void {
    this.noted.push(alarm);
    super.set(alarm, at);
  }

  override cancel(alarm: Alarm): void {
    this.noted.push(alarm);
    super.cancel(alarm);
  }
}

describe('a place whose waiter is granted', () => {
  let clock: FakeClock;
  let alarms: NotedAlarms;
  let keeper: PlaceKeeper;
  let hearing: ScriptedHearing;
  let begin: number;
  /** The places that each command kept, with its time. */
  let kept: [number, string][];

  beforeEach(() => {
    clock = new FakeClock();
    begin = clock.now();
    alarms = new NotedAlarms(clock);
    hearing = new ScriptedHearing();
    kept = [];
    const store = {
      hearing,
      fenceOf: (resource: string) => resource.split('/')[0],
      keepPlaces: (places) => {
        kept.push([clock.now() - begin, places.map(({ waiter }) => waiter.resource).join()]);
        return Promise.resolve(places.map(() => ({ status: 'kept' as const, ttlMs: 60_000, place: 1 })));
      },
    } as Partial<LockStore> as LockStore;
    keeper = new PlaceKeeper({ store, clock, random: { fraction: () => 0 } as never, alarms });
  });

  /** Its place is kept from now on. */
  function enter(resource: string): QueuedWaiter {
    const waiter: QueuedWaiter = {
      owner: { resource, id: 'an owner', mode: 'exclusive' },
      call: { options: { leaseMs: 3 * PERIOD_MS, attemptTimeoutMs: 500 } },
      log: new AttemptLog(),
      lossesBefore: keeper.losses,
      newsDueAt: () => Infinity,
      onKept: (_, sentAt, now) => void keeper.keep(waiter, sentAt, now, Infinity),
      notKept: () => {},
      ask: () => {},
    };
    expect(keeper.keep(waiter, clock.now(), clock.now(), Infinity)).toBe(true);
    return waiter;
  }

  it('keeps the alarm while others wait, and it rings for those', async () => {
    enter('a/waits');
    await clock.advance(100);
    alarms.noted.length = 0;
    for (let turn = 0; turn < 20; turn++) keeper.leave(enter('a/granted'));
    expect(alarms.noted).toEqual([]);
    await clock.advance(PERIOD_MS - 100);
    expect(kept).toEqual([[PERIOD_MS, 'a/waits']]);
    await clock.advance(PERIOD_MS);
    expect(kept.slice(1)).toEqual([[2 * PERIOD_MS, 'a/waits']]);
  });

  it('leaves its group to the next waiter, with an alarm that rings for that one alone', async () => {
    keeper.leave(enter('a/granted'));
    const [alarm] = alarms.noted;
    expect([alarms.size, hearing.isRelied]).toEqual([0, false]);
    await clock.advance(PERIOD_MS - 100);
    const next = enter('a/next');
    expect(new Set(alarms.noted)).toEqual(new Set([alarm]));
    expect([alarms.size, hearing.isRelied]).toEqual([1, true]);
    await clock.advance(PERIOD_MS - 100);
    expect(kept).toEqual([]);
    await clock.advance(100);
    expect(kept).toEqual([[2 * PERIOD_MS - 100, 'a/next']]);
    keeper.leave(next);
    expect(alarms.size).toBe(0);
    await clock.advance(10 * PERIOD_MS);
    expect(kept).toHaveLength(1);
  });

  it('rings earlier for the next waiter if that is due earlier', async () => {
    enter('a/waits');
    const next = enter('a/next');
    keeper.pause(next);
    keeper.keep(next, clock.now(), clock.now(), clock.now() + 300);
    await clock.advance(300);
    expect(kept).toEqual([[300, 'a/next']]);
  });
});

import { once } from 'node:events';
import { type AddressInfo, createConnection, createServer, type Socket } from 'node:net';
import fc from 'fast-check';
import { LockClient } from '../../../lib/kernel/lock-client.js';
import { type Alarm, Alarms, alarmThat, type Due, DueQueue } from '../../../lib/kernel/util/alarms.js';
import { SYSTEM_CLOCK, SystemClock, type TimeSources } from '../../../lib/kernel/util/clock.js';
import { formatDuration } from '../../../lib/kernel/util/durations.js';
import { MemoryLockStore } from '../../../lib/memory/memory-lock-store.js';
import { MemoryServer } from '../../../lib/memory/memory-server.js';
import { track } from '../../support/expect/tracked.js';
import { runs } from '../../support/simulation/runs.js';
import { FakeClock, settle } from '../../support/world/fake-clock.js';
import { SeededRandom } from '../../support/world/seeded-random.js';

describe('alarms', () => {
  let clock: FakeClock;
  let alarms: Alarms;
  let rung: [string, number][];
  let begin: number;

  beforeEach(() => {
    clock = new FakeClock();
    alarms = new Alarms(clock);
    rung = [];
    begin = clock.now();
  });

  function alarm(name: string, then: () => void = () => {}): Alarm {
    return alarmThat(() => {
      rung.push([name, clock.now() - begin]);
      then();
    });
  }

  const set = (one: Alarm, inMs: number) => alarms.set(one, clock.now() + inMs);

  it('ring once, each at its time, in the order of their times', async () => {
    for (const ms of [30, 10, 20, 10]) set(alarm(`${ms}`), ms);
    await clock.advance(100);
    expect(rung).toEqual([
      ['10', 10],
      ['10', 10],
      ['20', 20],
      ['30', 30],
    ]);
    expect(alarms.size).toBe(0);
    expect(clock.timers).toBe(0);
  });

  it('need one timer, whatever their number and order', async () => {
    const random = new SeededRandom();
    for (let i = 0; i < 1_000; i++) set(alarm(`${i}`), Math.floor(random.fraction() * 10_000));
    expect(alarms.size).toBe(1_000);
    expect(clock.timers).toBe(1);
    await clock.advance(5_000);
    expect(clock.timers).toBe(1);
    await clock.advance(5_000);
    expect(rung).toHaveLength(1_000);
    const times = rung.map(([, time]) => time);
    expect(times).toEqual(times.toSorted((x, y) => x - y));
  });

  it.each([
    ['earlier', 5],
    ['later', 50],
  ])('may be moved to an %s time', async (_, ms) => {
    const one = alarm('one');
    set(one, 20);
    set(alarm('other'), 30);
    set(one, ms);
    expect(alarms.size).toBe(2);
    await clock.advance(100);
    expect(rung).toContainEqual(['one', ms]);
    expect(rung).toHaveLength(2);
  });

  it('may be cancelled, and set again', async () => {
    const one = alarm('one');
    set(one, 20);
    alarms.cancel(one);
    alarms.cancel(one);
    expect(alarms.size).toBe(0);
    await clock.advance(30);
    expect(rung).toEqual([]);
    set(one, 20);
    await clock.advance(30);
    expect(rung).toEqual([['one', 50]]);
  });

  it('are cancelled by Infinity, and never set to it', async () => {
    const one = alarm('one');
    alarms.set(one, Infinity);
    expect([alarms.size, clock.timers]).toEqual([0, 0]);
    set(one, 20);
    alarms.set(one, Infinity);
    await clock.advance(30);
    expect(rung).toEqual([]);
  });

  it('leave others alone when they are cancelled', async () => {
    const all = Array.from({ length: 50 }, (_, i) => alarm(`${i}`));
    all.forEach((one, i) => set(one, (i * 7) % 50));
    all.forEach((one, i) => i % 3 === 0 && alarms.cancel(one));
    await clock.advance(50);
    expect(rung.map(([name]) => Number(name) % 3)).not.toContain(0);
    expect(rung).toHaveLength(33);
    expect(rung.every(([name, time]) => time === (Number(name) * 7) % 50)).toBe(true);
  });

  it('may cancel one another while they ring', async () => {
    const second = alarm('second');
    set(
      alarm('first', () => alarms.cancel(second)),
      10,
    );
    set(second, 10);
    await clock.advance(20);
    expect(rung).toEqual([['first', 10]]);
  });

  it('may set one another, and themselves, while they ring', async () => {
    const other = alarm('other');
    const again: Alarm = alarm('again', () => {
      if (rung.length < 6) set(again, 10);
      set(other, 5);
    });
    set(again, 10);
    await clock.advance(100);
    expect(rung.map(([name, time]) => `${name} ${time}`)).toEqual([
      'again 10',
      'other 15',
      'again 20',
      'other 25',
      'again 30',
      'other 35',
      'again 40',
      'other 45',
    ]);
    expect(clock.timers).toBe(0);
  });

  it('ring together if one sets another for a time that has passed', async () => {
    const other = alarm('other');
    set(
      alarm('one', () => set(other, -5)),
      10,
    );
    await clock.advance(10);
    expect(rung).toEqual([
      ['one', 10],
      ['other', 10],
    ]);
  });

  it('ring at the next opportunity if their time has passed', async () => {
    set(alarm('one'), -100);
    await clock.advance(0);
    expect(rung).toEqual([['one', 0]]);
  });

  it('ring all together if they are late, the oldest first', async () => {
    for (const ms of [30, 10, 20]) set(alarm(`${ms}`), ms);
    clock.block(1_000);
    await clock.advance(0);
    expect(rung).toEqual([
      ['10', 1_000],
      ['20', 1_000],
      ['30', 1_000],
    ]);
  });

  it('ring after input that has arrived, if the process was blocked, even twice', async () => {
    const happened: string[] = [];
    const real = new Alarms(SYSTEM_CLOCK);
    const server = createServer();
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const connect = async () => {
      const here = createConnection((server.address() as AddressInfo).port, '127.0.0.1');
      const [[there]] = (await Promise.all([once(server, 'connection'), once(here, 'connect')])) as [[Socket], unknown];
      return { here, there };
    };
    const [one, two] = [await connect(), await connect()];
    /** The answer comes in time, and the process is not there to read it. */
    const block = (name: string, { here, there }: typeof one, then: () => void): void => {
      const alarm = alarmThat(() => happened.push(`${name} rang`));
      real.setIn(alarm, 20);
      here.once('data', () => {
        happened.push(`${name} was answered`);
        real.cancel(alarm);
        then();
      });
      there.write('the answer');
      for (const from = SYSTEM_CLOCK.now(); SYSTEM_CLOCK.now() < from + 60;);
    };
    // From a phase of the event loop that its timers follow. The second time it is the phase that reads.
    await settle();
    await new Promise<void>((resolve) => {
      block('one', one, () => block('two', two, () => real.setIn(alarmThat(resolve), 20)));
    });
    for (const { here } of [one, two]) here.destroy();
    server.close();
    expect(happened).toEqual(['one was answered', 'two was answered']);
  });

  it('ring at stop(), each once, so that no call waits forever; one that is set after it rings on time', async () => {
    const again = { ...alarm('one'), ring: () => set(alarm('two'), 10) };
    set(again, 20);
    set(alarm('one'), 10);
    alarms.stop();
    expect(rung.map(([name]) => name)).toEqual(['one']);
    await clock.advance(10);
    expect(rung.map(([name]) => name)).toEqual(['one', 'two']);
  });
});

/** A machine and its clocks. */
class Machine implements TimeSources {
  /** Runs the timers. Follows the monotonic clock of Linux, so it pauses during a suspend. */
  readonly awake = new FakeClock();
  #suspendedMs = 0;
  #steppedMs = 0;
  /** The number of readings of the uptime. */
  looks = 0;

  constructor(private readonly uptimeStepMs = 10) {}

  suspend(ms: number): void {
    this.#suspendedMs += ms;
  }

  /** As NTP does, or an administrator. */
  setWallClock(byMs: number): void {
    this.#steppedMs += byMs;
  }

  monotonicMs(): number {
    return this.awake.now();
  }

  wallMs(): number {
    return Math.floor(1.7e12 + this.awake.now() + this.#suspendedMs + this.#steppedMs);
  }

  uptimeSeconds(): number {
    this.looks++;
    const ms = 5_000_123 + this.awake.now() + this.#suspendedMs;
    return (Math.floor(ms / this.uptimeStepMs) * this.uptimeStepMs) / 1_000;
  }

  setTimeout(callback: () => void, delayMs: number): NodeJS.Timeout {
    return Object.assign(this.awake.setTimer(callback, delayMs), { ref() {}, unref() {} }) as unknown as NodeJS.Timeout;
  }

  clearTimeout(timer: unknown): void {
    (timer as { cancel(): void }).cancel();
  }
}

describe('the clock of a process', () => {
  let machine: Machine;
  let clock: SystemClock;
  let begin: number;
  const passed = (): number => clock.now() - begin;

  const boot = (uptimeStepMs?: number): void => {
    machine = new Machine(uptimeStepMs);
    clock = new SystemClock(machine, 0);
    begin = clock.now();
    machine.looks = 0;
  };
  beforeEach(() => boot());

  it('continues while the machine is suspended', async () => {
    await machine.awake.advance(1_000);
    machine.suspend(1_400);
    expect(passed()).toBe(2_400);
    await machine.awake.advance(100);
    expect(passed()).toBe(2_500);
    expect(machine.looks).toBe(1);
  });

  it('compares itself with the wall clock once in a tenth of a millisecond that the process runs', async () => {
    clock = new SystemClock(machine);
    begin = clock.now();
    machine.suspend(1_400);
    expect(passed()).toBe(0);
    await machine.awake.advance(0.09);
    expect(passed()).toBeCloseTo(0.09);
    await machine.awake.advance(0.02);
    expect(passed()).toBeGreaterThanOrEqual(1_399);
    expect(passed()).toBeLessThanOrEqual(1_402);
  });

  it('counts one suspend after another, and each of them once', async () => {
    for (let round = 1; round <= 5; round++) {
      machine.suspend(60_000);
      await machine.awake.advance(7);
      expect(passed()).toBeGreaterThanOrEqual(round * 60_007 - 1);
      expect(passed()).toBeLessThanOrEqual(round * 60_007 + 1);
    }
  });

  it.each([3_600_000, -3_600_000, 30, -30])('ignores that the wall clock is set by %i ms', async (byMs) => {
    await machine.awake.advance(1_000);
    machine.setWallClock(byMs);
    expect(passed()).toBe(1_000);
    await machine.awake.advance(1_000);
    expect([passed(), machine.looks]).toEqual([2_000, 1]);
  });

  it('never trusts a lease for longer when the clock is set while the machine is suspended', () => {
    machine.suspend(10_000);
    machine.setWallClock(-7_000);
    expect(passed()).toBeGreaterThanOrEqual(10_000);
    expect(passed()).toBeLessThanOrEqual(10_020);
  });

  it('does not read the uptime while the clocks agree', async () => {
    for (let look = 0; look < 1_000; look++) {
      await machine.awake.advance(0.7);
      clock.now();
    }
    expect(machine.looks).toBe(0);
  });

  it('ignores a pause between its two readings', () => {
    const wallMs = machine.wallMs.bind(machine);
    machine.wallMs = () => {
      machine.awake.block(500);
      machine.wallMs = wallMs;
      return wallMs();
    };
    clock.now();
    expect([passed(), passed(), machine.looks]).toEqual([500, 500, 0]);
  });

  it('ignores clocks that restart, as fake timers do', async () => {
    const beginAt0 = () => {
      const startedAt = machine.awake.now();
      machine.monotonicMs = () => machine.awake.now() - startedAt;
    };
    beginAt0();
    clock = new SystemClock(machine, 0);
    await machine.awake.advance(80_000);
    clock.now();
    beginAt0(); // while the wall clock and the uptime go on
    const from = clock.now();
    for (let second = 1; second <= 100; second++) {
      await machine.awake.advance(1_000);
      expect(clock.now() - from).toBe(second * 1_000);
    }
    machine.suspend(5_000);
    expect(clock.now() - from).toBeGreaterThanOrEqual(104_999);
  });

  describe('if the process is blocked while it reads the uptime', () => {
    /** For half a second each, before the answer or after it. */
    const block = (times: number, when: 'before' | 'after'): void => {
      const uptimeSeconds = machine.uptimeSeconds.bind(machine);
      machine.uptimeSeconds = () => {
        const isStill = times-- > 0;
        if (isStill && when === 'before') machine.awake.block(500);
        const seconds = uptimeSeconds();
        if (isStill && when === 'after') machine.awake.block(500);
        return seconds;
      };
    };
    const inTruth = (): number => machine.awake.now() + 3_000;

    it.each(['before', 'after'] as const)('counts the whole of a suspend (%s the answer)', (when) => {
      const start = machine.awake.now();
      machine.suspend(3_000);
      block(1, when);
      passed();
      expect(passed()).toBeGreaterThanOrEqual(inTruth() - start - 1);
      expect(passed()).toBeLessThanOrEqual(inTruth() - start + 20);
    });

    it.each(['before', 'after'] as const)(
      'counts the whole of the first suspend after that (%s the answer)',
      (when) => {
        block(1, when);
        clock = new SystemClock(machine, 0);
        begin = clock.now();
        const start = machine.awake.now();
        clock.now();
        machine.suspend(3_000);
        expect(passed()).toBeGreaterThanOrEqual(inTruth() - start - 1);
        expect(passed()).toBeLessThanOrEqual(inTruth() - start + 20);
      },
    );
  });

  it('detects a suspend of more than a second if the uptime is in whole seconds', () => {
    boot(1_000);
    machine.setWallClock(5_000);
    expect(passed()).toBe(0);
    machine.suspend(3_000);
    expect(passed()).toBeGreaterThanOrEqual(3_000);
    expect(passed()).toBeLessThanOrEqual(5_000);
  });

  it.each([
    ['in whole seconds', 1_000, 0],
    ['in hundredths, which are twice a whole number by chance', 10, 880],
  ])('detects a suspend of less than a second if the uptime is known %s', async (_how, stepMs, awakeMs) => {
    machine = new Machine(stepMs);
    await machine.awake.advance(awakeMs);
    clock = new SystemClock(machine, 0);
    begin = clock.now();
    machine.suspend(1_000);
    expect(passed()).toBe(1_000);
  });

  it('follows the monotonic clock alone if the uptime is unknown', () => {
    machine.uptimeSeconds = () => NaN;
    clock = new SystemClock(machine, 0);
    begin = clock.now();
    machine.setWallClock(5_000);
    expect(passed()).toBe(0);
  });

  describe('its timers', () => {
    it('ring on time, and once', async () => {
      const rung: number[] = [];
      for (const delayMs of [0, 0.5, 999, 1_000, 1_001, 3_500.5]) clock.setTimer(() => rung.push(passed()), delayMs);
      await machine.awake.advance(10_000);
      expect(rung).toEqual([0, 1, 999, 1_000, 1_001, 3_501]);
    });

    it('are no more than a second late after a suspend', async () => {
      const rung: number[] = [];
      clock.setTimer(() => rung.push(passed()), 10_000);
      await machine.awake.advance(500);
      machine.suspend(60_000);
      await machine.awake.advance(1_000);
      expect(rung).toEqual([61_000]);
    });

    it('can be cancelled at any time', async () => {
      let rung = false;
      const timer = clock.setTimer(() => (rung = true), 10_000);
      await machine.awake.advance(5_500);
      timer.cancel();
      await machine.awake.advance(10_000);
      expect(rung).toBe(false);
      expect(machine.awake.timers).toBe(0);
    });
  });

  describe('a lease after a suspend', () => {
    const LEASE_MS = 3_000;
    const onMachine = () => {
      const events: string[] = [];
      const server = new MemoryServer(clock);
      const store = new MemoryLockStore({ instanceId: 'a', server });
      const locks = new LockClient({ store, clock, observers: [({ type }) => events.push(type)] });
      return { locks, events };
    };

    it('is lost when the machine slept for longer, at the first check', async () => {
      const { locks } = onMachine();
      const lease = await locks.acquire('stock', { leaseMs: LEASE_MS });
      machine.suspend(LEASE_MS);
      expect(lease.isHeld()).toBe(false);
      expect(lease.signal.reason).toMatchObject({ reason: 'notRenewed' });
    });

    it('aborts its signal within a second without a check', async () => {
      const { locks } = onMachine();
      const lease = await locks.acquire('stock', { leaseMs: 60_000 });
      const { signal } = lease;
      machine.suspend(60_000);
      await machine.awake.advance(1_000);
      expect(signal.aborted).toBe(true);
    });

    it('continues when the machine slept for less, and is renewed within a second', async () => {
      const { locks, events } = onMachine();
      const lease = await locks.acquire('stock', { leaseMs: 60_000 });
      machine.suspend(50_000);
      expect(lease.remainingMs()).toBeLessThan(10_000);
      await machine.awake.advance(1_000);
      expect(lease.remainingMs()).toBeGreaterThan(55_000);
      expect(events).toEqual(['acquired', 'eventLoopBlocked']);
    });

    it('is not lost when NTP sets the clock', async () => {
      const { locks, events } = onMachine();
      const lease = await locks.acquire('stock', { leaseMs: LEASE_MS });
      for (const byMs of [86_400_000, -86_400_000]) {
        machine.setWallClock(byMs);
        await machine.awake.advance(LEASE_MS);
        expect(lease.isHeld()).toBe(true);
      }
      expect(events).toEqual(['acquired']);
    });

    it('ends a wait whose time passed in the suspend', async () => {
      const { locks } = onMachine();
      await locks.acquire('stock', { leaseMs: 3_600_000 });
      const waiting = track(locks.acquire('stock', { waitMs: 30_000 }));
      await machine.awake.advance(1);
      machine.suspend(30_000);
      await machine.awake.advance(1_000);
      expect(waiting.error).toMatchObject({ code: 'LOCK_TIMEOUT' });
    });
  });
});

describe('a duration in a message', () => {
  it.each([
    [0, '0 ms'],
    [-3, '0 ms'],
    [300.6, '301 ms'],
    [999.4, '999 ms'],
    [999.6, '1 s'],
    [1_840, '1.8 s'],
    [9_949, '9.9 s'],
    [9_950, '10 s'],
    [42_000, '42 s'],
    [119_499, '119 s'],
    [119_500, '2 min'],
    [7_199_999, '2 h'],
    [3 * 3_600_000, '3 h'],
    [Infinity, 'ever'],
  ])('of %d ms is %p', (ms, text) => {
    expect(formatDuration(ms)).toBe(text);
  });
});

class Entry implements Due {
  heapIndex = -1;

  constructor(public dueAt: number) {}
}

type Step =
  | { readonly kind: 'put'; readonly dueAt: number }
  | { readonly kind: 'move'; readonly which: number; readonly dueAt: number }
  | { readonly kind: 'remove'; readonly which: number }
  | { readonly kind: 'takeFirst' };

const dueAt = fc.integer({ min: 0, max: 30 });
const which = fc.nat(50);
/** Many more come than go, so that the heap is several levels deep. */
const steps = fc.array(
  fc.oneof(
    { weight: 5, arbitrary: fc.record({ kind: fc.constant('put' as const), dueAt }) },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant('move' as const), which, dueAt }) },
    { weight: 2, arbitrary: fc.record({ kind: fc.constant('remove' as const), which }) },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant('takeFirst' as const) }) },
  ),
  { maxLength: 120, size: 'max' },
);

/** Takes everything out, the first first. */
function drain(queue: DueQueue<Entry>): number[] {
  const taken: number[] = [];
  for (let first = queue.first(); first; first = queue.first()) {
    taken.push(first.dueAt);
    queue.remove(first);
  }
  return taken;
}

describe('the due queue', () => {
  it('behaves like a sorted list, whatever is put, moved and removed', () => {
    fc.assert(
      fc.property(steps, (all: readonly Step[]) => {
        const queue = new DueQueue<Entry>();
        const model: Entry[] = [];
        const earliest = () => (model.length > 0 ? Math.min(...model.map((entry) => entry.dueAt)) : undefined);
        for (const step of all) {
          if (step.kind === 'put') {
            const entry = new Entry(step.dueAt);
            model.push(entry);
            queue.put(entry);
          } else if (step.kind === 'takeFirst') {
            const first = queue.first();
            if (first) {
              queue.remove(first);
              model.splice(model.indexOf(first), 1);
            }
          } else if (model.length > 0) {
            const entry = model[step.which % model.length]!;
            if (step.kind === 'move') {
              entry.dueAt = step.dueAt;
              queue.put(entry);
            } else {
              queue.remove(entry);
              model.splice(model.indexOf(entry), 1);
            }
          }
          // Compared without expect(), which would take most of the time of the suite.
          const isRight = queue.size === model.length && queue.first()?.dueAt === earliest();
          if (!isRight) expect([queue.size, queue.first()?.dueAt]).toEqual([model.length, earliest()]);
        }
        expect(drain(queue)).toEqual(model.map((entry) => entry.dueAt).sort((x, y) => x - y));
      }),
      { seed: 20_260_101, numRuns: runs(200) },
    );
  });

  it('returns all entries in order', () => {
    fc.assert(
      fc.property(fc.array(fc.integer()), (times) => {
        const queue = new DueQueue<Entry>();
        for (const time of times) queue.put(new Entry(time));
        expect(drain(queue)).toEqual([...times].sort((a, b) => a - b));
      }),
      { seed: 20_260_101 },
    );
  });

  it('ignores the removal of an unknown entry', () => {
    const queue = new DueQueue<Entry>();
    const entry = new Entry(1);
    queue.remove(entry);
    queue.put(entry);
    queue.remove(entry);
    queue.remove(entry);
    expect(queue.size).toBe(0);
  });
});

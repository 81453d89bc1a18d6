import { SystemClock, type TimeSources } from '../../../lib/kernel/util/clock.js';
import { MemoryLockStore } from '../../../lib/memory/memory-lock-store.js';
import { MemoryServer } from '../../../lib/memory/memory-server.js';
import { LockClient } from '../../../lib/kernel/lock-client.js';
import { FakeClock } from '../../support/world/fake-clock.js';
import { track } from '../../support/expect/tracked.js';

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
    expect(passed()).toBe(2_000);
    expect(machine.looks).toBe(1);
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
    expect(passed()).toBe(500);
    expect(passed()).toBe(500);
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

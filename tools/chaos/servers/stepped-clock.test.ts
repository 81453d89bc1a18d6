import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { machineNow } from '../../../test/support/expect/machine-now.js';
import { ChaosRedis } from './chaos-redis.js';
import { SteppedClock } from './stepped-clock.js';

const STEP_MS = 60_000;
const TOLERANCE_MS = 5_000;
const TELL_TIME = 'process.on("message", () => process.send({ wall: Date.now(), monotonic: performance.now() }))';

const { isSupported, unsupportedReason } = SteppedClock;
const describeWhereSupported = isSupported ? describe : describe.skip;

describeWhereSupported(`a clock to step${isSupported ? '' : ` (${unsupportedReason})`}`, () => {
  it('needs a compiler, and says so', () => {
    expect(() => SteppedClock.create({ PATH: '/nowhere' })).toThrow(/^Not found: a C compiler. To install:/);
  });
});

describeWhereSupported('a clock that is stepped', () => {
  let clock: SteppedClock;
  beforeAll(() => {
    clock = SteppedClock.create();
  });
  beforeEach(() => clock.step(-clock.offsetMs));
  afterAll(() => {
    clock[Symbol.dispose]();
    expect(existsSync(clock.env.LD_PRELOAD)).toBe(false);
  });

  it.each([
    ['forwards', STEP_MS],
    ['backwards', -STEP_MS],
  ])('of Redis, %s: TIME jumps, and keys end sooner or later', async (_where, stepMs) => {
    await using redis = await ChaosRedis.start({ persistence: 'none', clock });
    const time = async (): Promise<number> => {
      const [seconds, micros] = (await redis.admin.time()).map(Number) as [number, number];
      return seconds * 1_000 + micros / 1_000;
    };
    await redis.admin.set('key', '1', 'PX', 10 * STEP_MS);
    expect(Math.abs((await time()) - Date.now())).toBeLessThan(TOLERANCE_MS);
    clock.step(stepMs);
    expect(Math.abs((await time()) - Date.now() - stepMs)).toBeLessThan(TOLERANCE_MS);
    const ttlMs = await redis.admin.pttl('key');
    expect(Math.abs(ttlMs - (10 * STEP_MS - stepMs))).toBeLessThan(TOLERANCE_MS);
    await redis.kill();
    await redis.restart();
    expect(Math.abs((await time()) - Date.now() - stepMs)).toBeLessThan(TOLERANCE_MS);
    clock.step(-stepMs);
    expect(Math.abs((await time()) - Date.now())).toBeLessThan(TOLERANCE_MS);
    expect(clock.offsetMs).toBe(0);
  });

  it.each([
    ['forwards', STEP_MS],
    ['backwards', -STEP_MS],
  ])('of Node, %s: Date.now() jumps, the monotonic clock does not', async (_where, stepMs) => {
    const child: ChildProcess = fork('-e', [TELL_TIME], { env: { ...process.env, NODE_OPTIONS: '', ...clock.env } });
    const now = async (): Promise<{ wall: number; monotonic: number; machine: number }> => {
      const answer = once(child, 'message');
      child.send('now');
      const [told] = (await answer) as [{ wall: number; monotonic: number }];
      return { ...told, machine: machineNow() };
    };
    try {
      const before = await now();
      clock.step(stepMs);
      const after = await now();
      const passed = after.machine - before.machine;
      expect(Math.abs(after.monotonic - before.monotonic - passed)).toBeLessThan(TOLERANCE_MS);
      expect(Math.abs(after.wall - before.wall - stepMs - passed)).toBeLessThan(TOLERANCE_MS);
    } finally {
      child.kill('SIGKILL');
    }
  });

  it('of Node, as after a suspend: the monotonic clock has stood still, Date.now() and os.uptime() have not', async () => {
    const tell = `
      const os = require('node:os');
      process.on('message', () => process.send([performance.now(), Date.now(), os.uptime() * 1_000]));`;
    const child = fork('-e', [tell], { env: { ...process.env, NODE_OPTIONS: '', ...clock.env } });
    const now = async (): Promise<[number, number, number]> => {
      const answer = once(child, 'message');
      child.send('now');
      return ((await answer) as [[number, number, number]])[0];
    };
    try {
      const [monotonic, wall, uptime] = await now();
      child.kill('SIGSTOP');
      const from = machineNow();
      await sleep(500);
      const stoodMs = machineNow() - from;
      clock.suspend(stoodMs);
      child.kill('SIGCONT');
      const [after, wallAfter, uptimeAfter] = await now();
      const awakeMs = after - monotonic;
      expect(Math.abs(wallAfter - wall - awakeMs - stoodMs)).toBeLessThan(stoodMs / 2);
      expect(Math.abs(uptimeAfter - uptime - awakeMs - stoodMs)).toBeLessThan(stoodMs / 2);
    } finally {
      child.kill('SIGKILL');
    }
  });

  it('of Node: the monotonic clock never goes backwards, wherever its process is stopped for a suspend', async () => {
    const watch = `
      let last = performance.now();
      let backMs = 0;
      process.on('message', () => process.send(backMs));
      setInterval(() => {
        for (let looks = 0; looks < 20_000; looks++) {
          const now = performance.now();
          backMs = Math.max(backMs, last - now);
          last = now;
        }
      });`;
    const child = fork('-e', [watch], { env: { ...process.env, NODE_OPTIONS: '', ...clock.env } });
    try {
      for (let suspends = 0; suspends < 100; suspends++) {
        child.kill('SIGSTOP');
        await sleep(2);
        const from = machineNow();
        await sleep(10);
        clock.suspend(machineNow() - from);
        child.kill('SIGCONT');
        await sleep(2);
      }
      const answer = once(child, 'message');
      child.send('how far');
      expect((await answer)[0]).toBe(0);
    } finally {
      child.kill('SIGKILL');
    }
  });

  it('does not concern those of other clocks', async () => {
    using other = SteppedClock.create();
    await using redis = await ChaosRedis.start({ persistence: 'none', clock });
    other.step(STEP_MS);
    expect(Math.abs(Number((await redis.admin.time())[0]) * 1_000 - Date.now())).toBeLessThan(TOLERANCE_MS);
    expect(other.env.CLOCK_SHIM_FILE).not.toBe(clock.env.CLOCK_SHIM_FILE);
    expect(other.env.LD_PRELOAD).toBe(clock.env.LD_PRELOAD);
    other[Symbol.dispose]();
    expect(existsSync(other.env.CLOCK_SHIM_FILE)).toBe(false);
  });
});

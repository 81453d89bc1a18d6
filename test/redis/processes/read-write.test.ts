import { eventually, rejection } from '../../support/expect/eventually.js';
import { type LockInstance, useAdmin, useInstances, untilQueued } from '../../support/redis/lock-instances.js';
import { type LockProcess, useProcesses } from '../../support/process/lock-process.js';
import { useRedis } from '../../support/redis/redis-server.js';
import { track } from '../../support/expect/tracked.js';

/** A heartbeat is due after 1 to 1.25 s; the rest is for a busy machine. Who survives has a lease of a minute. */
const HEARTBEAT_MS = 1_250 + 3_000;
const LONG_MS = 60_000;
const READ = { mode: 'read', waitMs: 60_000 } as const;
const WRITE = { mode: 'write', waitMs: 60_000 } as const;

describe('readers and writers that are killed', () => {
  const redis = useRedis();
  const admin = useAdmin(() => redis().url);
  const start = useInstances(() => redis().url);
  const startProcess = useProcesses(() => redis().url);
  let watch: LockInstance;
  beforeEach(async () => void (watch = await start()));

  const processes = <T extends number[]>(...leases: T) =>
    Promise.all(leases.map((leaseMs) => startProcess(leaseMs))) as Promise<{ [K in keyof T]: LockProcess }>;
  const untilTheyWait = (...waiters: LockProcess[]) => untilQueued(watch, 'x', ...waiters);
  const holders = async () => (await watch.locks.inspect('x')).holders.map(({ instanceId }) => instanceId);
  const untilGone = (count: number) =>
    eventually(async () => expect(await admin().pubsub('CHANNELS', 'lock:inbox:*')).toHaveLength(count));
  const expectNothingLeft = () => eventually(async () => expect(await admin().keys('*')).toEqual(['lock:fence']));

  it('a reader among readers: the others read on, and a writer gets in when its lease is over and theirs have ended', async () => {
    const [victim, other, writer] = await processes(1_500, LONG_MS, LONG_MS);
    await victim.ask('acquire', 'x', READ);
    const read = await other.ask('acquire', 'x', READ);
    const writing = track(writer.ask('acquire', 'x', WRITE));
    await untilTheyWait(writer);
    const from = performance.now();
    await victim.kill();
    await eventually(async () => expect(await holders()).toEqual([other.instanceId]));
    expect(await other.ask('state', 'x')).toMatchObject({ isHeld: true, aborted: false });
    expect(writing.state).toBe('pending');
    await other.ask('release', 'x');
    await eventually(() => expect(writing.value.isHeld).toBe(true));
    expect(performance.now() - from).toBeLessThan(1_500 + HEARTBEAT_MS);
    expect(writing.value.fencingToken).toBeGreaterThan(read.fencingToken);
    await writer.ask('release', 'x');
    await expectNothingLeft();
  });

  it('a reader whose lease is the last to end: the writer waits for it and no longer', async () => {
    const [victim, other, writer] = await processes(1_500, LONG_MS, LONG_MS);
    await Promise.all([victim.ask('acquire', 'x', READ), other.ask('acquire', 'x', READ)]);
    const writing = writer.ask('acquire', 'x', WRITE);
    await untilTheyWait(writer);
    await other.ask('release', 'x');
    const from = performance.now();
    await victim.kill();
    expect((await writing).isHeld).toBe(true);
    expect(performance.now() - from).toBeLessThan(1_500 + HEARTBEAT_MS);
    await writer.ask('release', 'x');
    await expectNothingLeft();
  });

  it('a writer: all the readers behind it are in when its lease and a heartbeat are over', async () => {
    const [victim, one, two] = await processes(1_000, LONG_MS, LONG_MS);
    const { fencingToken } = await victim.ask('acquire', 'x', WRITE);
    const reading = [one.ask('acquire', 'x', READ)];
    await untilTheyWait(one);
    reading.push(two.ask('acquire', 'x', READ));
    await untilTheyWait(one, two);
    const from = performance.now();
    await victim.kill();
    for (const lease of await Promise.all(reading)) {
      expect(lease.isHeld).toBe(true);
      expect(lease.fencingToken).toBeGreaterThan(fencingToken);
    }
    expect(performance.now() - from).toBeLessThan(1_000 + HEARTBEAT_MS);
    expect((await holders()).sort()).toEqual([one.instanceId, two.instanceId].sort());
    await Promise.all([one.ask('release', 'x'), two.ask('release', 'x')]);
    await expectNothingLeft();
  });

  it('a writer at the head of the queue: the readers behind it get in beside those who read', async () => {
    const [first, victim, behind] = await processes(LONG_MS, 1_000, LONG_MS);
    await first.ask('acquire', 'x', READ);
    const lost = rejection(victim.ask('acquire', 'x', WRITE));
    await untilTheyWait(victim);
    const reading = track(behind.ask('acquire', 'x', READ));
    await untilTheyWait(victim, behind);
    expect(reading.state).toBe('pending');
    const from = performance.now();
    await victim.kill();
    await lost;
    await eventually(() => expect(reading.value.isHeld).toBe(true));
    expect(performance.now() - from).toBeLessThan(1_000 + HEARTBEAT_MS);
    expect(await holders()).toEqual([first.instanceId, behind.instanceId]);
    await Promise.all([first.ask('release', 'x'), behind.ask('release', 'x')]);
    await expectNothingLeft();
  });

  it('readers in the queue: the release of a writer passes over them at once', async () => {
    const [writer, victim, next, last] = await processes(LONG_MS, LONG_MS, LONG_MS, LONG_MS);
    await writer.ask('acquire', 'x', WRITE);
    const lost = rejection(victim.ask('acquire', 'x', READ));
    await untilTheyWait(victim);
    const reading = next.ask('acquire', 'x', READ);
    await untilTheyWait(victim, next);
    const writing = last.ask('acquire', 'x', WRITE);
    await untilTheyWait(victim, next, last);
    await victim.kill();
    await lost;
    await untilGone(4);
    const from = performance.now();
    await writer.ask('release', 'x');
    expect((await reading).isHeld).toBe(true);
    expect(performance.now() - from).toBeLessThan(LONG_MS / 3);
    expect(await holders()).toEqual([next.instanceId]);
    await next.ask('release', 'x');
    expect((await writing).isHeld).toBe(true);
    await last.ask('release', 'x');
    await expectNothingLeft();
  });

  it('the only reader in the queue: the lock is free with the release of the writer', async () => {
    const [writer, victim] = await processes(LONG_MS, LONG_MS);
    await writer.ask('acquire', 'x', WRITE);
    const lost = rejection(victim.ask('acquire', 'x', READ));
    await untilTheyWait(victim);
    await victim.kill();
    await lost;
    await untilGone(2);
    await writer.ask('release', 'x');
    await expectNothingLeft();
  });

  it.each([
    ['a reader', READ, WRITE],
    ['a writer', WRITE, READ],
  ])(
    '%s that was granted and whose message is on the way: the next has the lock after its lease',
    async (_who, granted, next) => {
      const [holder, victim, other] = await processes(LONG_MS, 1_500, LONG_MS);
      await holder.ask('acquire', 'x', WRITE);
      const lost = rejection(victim.ask('acquire', 'x', granted));
      await untilTheyWait(victim);
      const waiting = other.ask('acquire', 'x', next);
      await untilTheyWait(victim, other);
      victim.suspend(); // it never learns of it
      await holder.ask('release', 'x');
      await eventually(async () => expect(await holders()).toEqual([victim.instanceId]));
      const from = performance.now();
      await victim.kill();
      await lost;
      expect((await waiting).isHeld).toBe(true);
      expect(performance.now() - from).toBeLessThan(1_500 + HEARTBEAT_MS);
      await other.ask('release', 'x');
      await expectNothingLeft();
    },
  );

  it('a writer that became a reader: those it let in read on, and a writer comes after its lease', async () => {
    const [victim, other, writer] = await processes(1_500, LONG_MS, LONG_MS);
    await victim.ask('acquire', 'x', WRITE);
    const reading = other.ask('acquire', 'x', READ);
    await untilTheyWait(other);
    await victim.ask('downgrade', 'x');
    expect((await reading).isHeld).toBe(true);
    const writing = track(writer.ask('acquire', 'x', WRITE));
    await untilTheyWait(writer);
    await victim.kill();
    await eventually(async () => expect(await holders()).toEqual([other.instanceId]));
    expect(await other.ask('state', 'x')).toMatchObject({ isHeld: true });
    expect(writing.state).toBe('pending');
    await other.ask('release', 'x');
    await eventually(() => expect(writing.value.isHeld).toBe(true));
    await writer.ask('release', 'x');
    await expectNothingLeft();
  });
});

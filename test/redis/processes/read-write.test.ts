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

  it('a reader that was granted and whose message is on the way: the next has the lock after its lease', async () => {
    const [holder, victim, other] = await processes(LONG_MS, 1_500, LONG_MS);
    await holder.ask('acquire', 'x', WRITE);
    const lost = rejection(victim.ask('acquire', 'x', READ));
    await untilTheyWait(victim);
    const waiting = other.ask('acquire', 'x', WRITE);
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
  });
});

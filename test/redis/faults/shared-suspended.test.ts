import { eventually } from '../../support/expect/eventually.js';
import { type LockInstance, useAdmin, useInstances } from '../../support/redis/lock-instances.js';
import { type HoldReport, type LockProcess, useProcesses } from '../../support/process/lock-process.js';
import type { TakeOptions } from '../../support/expect/mixed-sections.js';
import { useRedis } from '../../support/redis/redis-server.js';

const LONG_MS = 60_000;
const SHORT_MS = 700;
const SEATS: TakeOptions = { permits: 3, count: 2 };

describe('sharers that stand still for longer than their lease', () => {
  const redis = useRedis();
  const admin = useAdmin(() => redis().url);
  const start = useInstances(() => redis().url);
  const startProcess = useProcesses(() => redis().url);
  let watch: LockInstance;
  beforeEach(async () => void (watch = await start()));

  const holders = async () => (await watch.locks.inspect('x')).holders.map(({ instanceId }) => instanceId);
  const untilHeldBy = (...processes: LockProcess[]) =>
    eventually(async () => {
      expect((await holders()).sort()).toEqual(processes.map(({ instanceId }) => instanceId).sort());
    });
  const expectNothingLeft = () => eventually(async () => expect(await admin().keys('lock:*')).toEqual(['lock:fence']));

  it.each<[string, TakeOptions, TakeOptions]>([
    ['a reader sees its loss, and the writer that came is not disturbed', { mode: 'read' }, { mode: 'write' }],
    ['a writer sees its loss, and the reader that came is not disturbed', { mode: 'write' }, { mode: 'read' }],
    ['a holder of permits sees its loss, and the one who has them now is not disturbed', SEATS, SEATS],
  ])('%s', async (_what, stopped, next) => {
    const [first, second] = await Promise.all([startProcess(SHORT_MS), startProcess(LONG_MS)]);
    const reports: Promise<HoldReport>[] = [first.ask('hold', 'x', stopped)];
    await untilHeldBy(first);
    // The report begins with the first write to the witness.
    await eventually(async () => expect(await admin().exists('x-witness')).toBe(1));
    reports.push(second.ask('hold', 'x', next));
    first.suspend();
    const written = await admin().get('x-witness');
    await untilHeldBy(second);
    // The witness refuses what is older than what it has seen.
    await eventually(async () => expect(await admin().get('x-witness')).not.toBe(written));
    first.resume();
    // It goes on as if it had the lock, and lets go in the end.
    await new Promise((resolve) => setTimeout(resolve, 150));
    await first.ask('letGo', 'x');
    const lost = await reports[0]!;
    expect(lost).toMatchObject({ reason: 'notRenewed', releaseError: undefined, afterLoss: { accepted: 0 } });
    expect(await holders()).toEqual([second.instanceId]);
    await second.ask('letGo', 'x');
    const held = await reports[1]!;
    expect(held).toMatchObject({ reason: undefined, releaseError: undefined, whileHeld: { refused: 0 } });
    expect(held.from).toBeGreaterThan(lost.to);
    expect(held.fencingToken).toBeGreaterThan(lost.fencingToken);
    await expectNothingLeft();
  });

  it.each<[string, TakeOptions]>([
    ['reader', { mode: 'read' }],
    ['writer', { mode: 'write' }],
    ['holder of permits', SEATS],
  ])('a %s that stopped under its lease sees the loss before anything else runs', async (_who, options) => {
    const process = await startProcess(SHORT_MS);
    await process.ask('acquire', 'x', options);
    const answer = process.ask('stop', 'x');
    await eventually(async () => expect(await holders()).toEqual([]));
    expect(await process.continue(answer)).toMatchObject({ isHeld: false, aborted: true, reason: 'notRenewed' });
    await process.ask('release', 'x');
    await expectNothingLeft();
  });

  it('one reader of several: the others read on, also when its release comes late', async () => {
    const [stopped, one, two] = await Promise.all([
      startProcess(SHORT_MS),
      startProcess(LONG_MS),
      startProcess(LONG_MS),
    ]);
    for (const each of [stopped, one, two]) await each.ask('acquire', 'x', { mode: 'read' });
    stopped.suspend();
    await untilHeldBy(one, two);
    stopped.resume();
    await stopped.ask('release', 'x');
    await untilHeldBy(one, two);
    for (const each of [one, two]) {
      expect(await each.ask('state', 'x')).toMatchObject({ isHeld: true, aborted: false });
      await each.ask('release', 'x');
    }
    await expectNothingLeft();
  });

  it('one that waits for permits and is granted meanwhile: it finds an old message, and waits anew', async () => {
    const [first, stopped, next] = await Promise.all([
      startProcess(LONG_MS),
      startProcess(2_000),
      startProcess(LONG_MS),
    ]);
    await first.ask('acquire', 'x', { permits: 3, count: 3 });
    const late = stopped.ask('acquire', 'x', { ...SEATS, waitMs: 60_000 });
    await eventually(async () => expect((await watch.locks.inspect('x')).waiters).toHaveLength(1));
    const waiting = next.ask('acquire', 'x', { ...SEATS, waitMs: 60_000 });
    await eventually(async () => expect((await watch.locks.inspect('x')).waiters).toHaveLength(2));
    stopped.suspend();
    await first.ask('release', 'x');
    await untilHeldBy(stopped);
    const { fencingToken } = await waiting;
    await untilHeldBy(next);
    stopped.resume();
    await eventually(async () => expect((await watch.locks.inspect('x')).waiters).toHaveLength(1));
    await untilHeldBy(next);
    await next.ask('release', 'x');
    const granted = await late;
    expect(granted.isHeld).toBe(true);
    expect(granted.fencingToken).toBeGreaterThan(fencingToken);
    await stopped.ask('release', 'x');
    await expectNothingLeft();
  });
});

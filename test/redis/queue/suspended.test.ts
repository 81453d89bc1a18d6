import { eventually } from '../../support/expect/eventually.js';
import { instancesOf } from '../../support/redis/instances-of.js';
import { useAdmin, useInstances } from '../../support/redis/lock-instances.js';
import { type HoldReport, type LockProcess, useProcesses } from '../../support/process/lock-process.js';
import { useRedis } from '../../support/redis/redis-server.js';

const LONG_MS = 60_000;

describe('processes that are suspended for longer than their lease', () => {
  const redis = useRedis();
  const admin = useAdmin(() => redis().url);
  const start = useInstances(() => redis().url);
  const startProcess = useProcesses(() => redis().url);

  /** They hold, or wait, in this order. Each writes to the witness as long as it has the lock, and carelessly after that. */
  const scene = async (...leases: number[]) => {
    const watch = await start();
    const processes = await Promise.all(leases.map((leaseMs) => startProcess(leaseMs)));
    const queue = () => eventually(async () => instancesOf((await watch.store.inspect('x')).waiters));
    const reports: Promise<HoldReport>[] = [];
    for (const [i, process] of processes.entries()) {
      reports.push(process.ask('hold', 'x'));
      if (i === 0) await untilWriting(process);
      else await eventually(async () => expect(await queue()).toHaveLength(i));
    }
    return { processes, reports, queue };
  };
  const holder = async (): Promise<string | undefined> => (await admin().get('lock:{x}'))?.split('/')[0];
  const untilWriting = async ({ instanceId }: LockProcess): Promise<void> => {
    await eventually(async () => expect(await holder()).toBe(instanceId));
    const token = (await admin().get('lock:{x}'))!.split(' ')[1];
    await eventually(async () => expect(await admin().get('x-witness')).toBe(token));
  };
  /** One after another, each with a larger token, and no write that came too late was accepted. */
  const expectSound = async (...reports: HoldReport[]): Promise<void> => {
    for (const [i, report] of reports.entries()) {
      expect(report).toMatchObject({ releaseError: undefined, whileHeld: { refused: 0 } });
      expect(report.whileHeld.accepted).toBeGreaterThan(0);
      const before = reports[i - 1];
      if (!before) continue;
      expect(report.fencingToken).toBeGreaterThan(before.fencingToken);
      expect(report.from).toBeGreaterThan(before.to);
    }
    const accepted = (await admin().lrange('x-log', 0, -1)).map(Number);
    expect(accepted).toEqual([...accepted].sort((a, b) => a - b));
    await eventually(async () => expect((await admin().keys('lock:*')).sort()).toEqual(['lock:fence']));
  };

  it('the holder: it sees its loss, its writes are refused, and its release takes nothing from the next', async () => {
    const { processes, reports } = await scene(2_000, LONG_MS);
    const [stopped, next] = processes as [LockProcess, LockProcess];
    stopped.suspend();
    await untilWriting(next);
    stopped.resume();
    await stopped.ask('letGo', 'x');
    const lost = await reports[0]!;
    expect(lost).toMatchObject({ reason: 'notRenewed', afterLoss: { accepted: 0 } });
    expect(lost.afterLoss.refused).toBeGreaterThan(0);
    expect(await holder()).toBe(next.instanceId);
    await next.ask('letGo', 'x');
    const held = await reports[1]!;
    expect(held).toMatchObject({ reason: undefined, afterLoss: { accepted: 0, refused: 0 } });
    await expectSound(lost, held);
  });

  it('one that is granted meanwhile: its lease passes unused, and the message it finds is no grant any more', async () => {
    const { processes, reports, queue } = await scene(LONG_MS, 2_000, LONG_MS);
    const [first, stopped, next] = processes as [LockProcess, LockProcess, LockProcess];
    stopped.suspend();
    await first.ask('letGo', 'x');
    await eventually(async () => expect(await holder()).toBe(stopped.instanceId));
    await untilWriting(next);
    stopped.resume();
    await eventually(async () => expect(await queue()).toEqual([stopped.instanceId]));
    await new Promise((resolve) => setTimeout(resolve, 100));
    expect(await holder()).toBe(next.instanceId);
    await next.ask('letGo', 'x');
    await untilWriting(stopped);
    await stopped.ask('letGo', 'x');
    const [a, b, c] = (await Promise.all(reports)) as [HoldReport, HoldReport, HoldReport];
    await expectSound(a, c, b);
  });
});

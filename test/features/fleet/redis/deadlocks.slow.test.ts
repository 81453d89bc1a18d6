import { type LockProcess, useProcesses } from '../../../support/process/lock-process.js';
import { useAdmin, useInstances, untilQueued } from '../../../support/redis/lock-instances.js';
import { useRedis } from '../../../support/redis/redis-server.js';

const LONG_MS = 60_000;
/** All of a roll call takes 300 ms at most. Processes on a busy machine need more of the machine's. */
const SLOWNESS = 5;
/** Until the roll call 1.4 s pass, which is longer than all of them need to begin to wait: 7 s of the machine. */
const WAIT_MS = 2_400;

describe('processes that wait for each other in a circle', () => {
  const redis = useRedis();
  const admin = useAdmin(() => redis().url);
  const start = useInstances(() => redis().url);
  const startProcess = useProcesses(() => redis().url, undefined, SLOWNESS);

  const enterAll = async (count: number): Promise<LockProcess[]> => {
    const processes = await Promise.all(Array.from({ length: count }, () => startProcess(LONG_MS)));
    await Promise.all(processes.map((each, index) => each.ask('enter', `r${index}`)));
    return processes;
  };

  it('are named, all three of them, in the error of each', async () => {
    const processes = await enterAll(3);
    const waits = processes.map((each, i) => each.ask('wantInside', `r${i}`, `r${(i + 1) % 3}`, { waitMs: WAIT_MS }));
    for (const [index, failed] of (await Promise.all(waits)).entries()) {
      const turned = [0, 1, 2].map((step) => (index + step) % 3);
      expect(failed).toMatchObject({
        code: 'LOCK_TIMEOUT',
        heldMeanwhile: {
          deadlock: turned.map((at, step) => ({
            instanceId: processes[at]!.instanceId,
            isThisProcess: step === 0,
            holds: `r${at}`,
            wants: `r${(at + 1) % 3}`,
          })),
        },
      });
      const [, second, third] = turned.map((at) => processes[at]!.instanceId);
      expect(failed!.message).toContain('a deadlock, which no longer wait ends. This call holds');
      expect(failed!.message).toMatch(new RegExp(`"${second}" holds .*; "${third}" holds `));
      expect(failed!.cause).toMatch(/^Deadlock: "process-\d+" holds "r\d" and wants "r\d".*; "process-\d+" holds/);
    }
    // Nothing was ended but the waits.
    for (const index of [0, 1, 2]) expect(await admin().exists(`lock:{r${index}}`)).toBe(1);
  });

  it('are not named where one of them stands still: that is not known to be a deadlock', async () => {
    const [a, b] = await enterAll(2);
    void b!.ask('wantInside', 'r1', 'r0', { waitMs: LONG_MS }).catch(() => {});
    const watch = await start();
    await untilQueued(watch, 'r0', b!);
    b!.suspend();
    try {
      const failed = await a!.ask('wantInside', 'r0', 'r1', { waitMs: 1_000 });
      expect(failed).toMatchObject({ code: 'LOCK_TIMEOUT' });
      expect(failed).toHaveProperty('heldMeanwhile', { resources: ['r0'] });
      expect(failed!.message).toContain('If the holder waits for that, it is a deadlock');
    } finally {
      b!.resume();
    }
  });
});

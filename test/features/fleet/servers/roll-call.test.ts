import { eventually, rejection } from '../../../support/expect/eventually.js';
import { useProcesses } from '../../../support/process/lock-process.js';
import { untilQueued, useInstances } from '../../../support/redis/lock-instances.js';
import { useRedis } from '../../../support/redis/redis-server.js';

const LONG_MS = 60_000;

describe('a roll call over processes', () => {
  const redis = useRedis();
  const start = useInstances(() => redis().url);
  const startProcess = useProcesses(() => redis().url);

  it('names a frozen process, and its holds while others wait for them', async () => {
    const [frozen, living] = await Promise.all([startProcess(LONG_MS), startProcess(LONG_MS)]);
    const { locks, instanceId } = await start();
    await frozen.ask('acquire', 'x');
    const waiting = locks.acquire('x', { waitMs: LONG_MS });
    await eventually(async () => expect((await locks.fleet()).asked).toBe(3));
    frozen.suspend();
    const fleet = await eventually(async () => {
      const seen = await locks.fleet({ timeoutMs: 200 });
      expect(seen.silent).toEqual([frozen.instanceId]);
      return seen;
    });
    expect(fleet.completeness).toBe('partial');
    const ids = fleet.instances.map((each) => each.instanceId);
    expect(ids.toSorted()).toEqual([instanceId, living.instanceId].toSorted());
    expect(fleet.unlisted).toMatchObject([{ resource: 'x', instanceId: frozen.instanceId, hasAnswered: false }]);

    frozen.resume();
    await eventually(async () => {
      const seen = await locks.fleet();
      expect(seen).toMatchObject({ completeness: 'complete', silent: [], unlisted: [] });
    });
    await frozen.ask('release', 'x');
    await (await waiting).release();
  });

  it('finds a dead holder: by a waiting call, and otherwise by a scan', async () => {
    const dead = await startProcess(LONG_MS);
    const [a, b] = [await start(), await start()];
    await dead.ask('acquire', 'x');
    await dead.ask('acquire', 'y');
    await dead.kill();
    const waiting = rejection(b.locks.acquire('x', { waitMs: 8_000 }));
    await untilQueued(a, 'x', b);
    const found = async (scan: boolean) => {
      const { silent, unlisted } = await a.locks.fleet({ scan });
      const holders = unlisted.map(({ resource, instanceId, hasAnswered }) => ({ resource, instanceId, hasAnswered }));
      return { silent, holders: holders.toSorted((one, other) => (one.resource < other.resource ? -1 : 1)) };
    };
    const x = { resource: 'x', instanceId: dead.instanceId, hasAnswered: false };
    await eventually(async () => expect(await found(false)).toEqual({ silent: [], holders: [x] }));
    expect(await found(true)).toEqual({ silent: [], holders: [x, { ...x, resource: 'y' }] });
    await b.locks.shutdown(0);
    await waiting;
  });
});

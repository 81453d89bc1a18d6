import { setTimeout as sleep } from 'node:timers/promises';
import { slotOf } from '../../../lib/redis/topology/slot.js';
import { CriticalSections } from '../../support/expect/critical-sections.js';
import { eventually } from '../../support/expect/eventually.js';
import { type LockInstance, untilQueued, useInstances } from '../../support/redis/lock-instances.js';
import { describeOnMachine } from '../../support/redis/describe-on-machine.js';
import { type ClusterNode, useRedisCluster } from '../../support/redis/redis-cluster.js';

const SLOT = slotOf('lock:{x}');
/** A command may have to wait until the slot has moved, which takes longer on a busy machine. */
const PATIENT = { defaults: { attemptTimeoutMs: 8_000 } };

describeOnMachine('a slot of a cluster that moves', () => {
  const cluster = useRedisCluster();
  const start = useInstances(() => cluster().connection);
  beforeEach(() => cluster().flush());

  /** The current node of the slot, and a possible target. */
  const places = async (): Promise<[from: ClusterNode, to: ClusterNode]> => {
    const from = await cluster().primaryOf('lock:{x}');
    return [from, cluster().nodes.find((node) => node !== from)!];
  };
  const move = async (forMs: number): Promise<void> => {
    const finish = await cluster().beginMove(SLOT, ...(await places()));
    await sleep(forMs);
    await finish();
  };
  const failures = (instances: readonly LockInstance[]) =>
    instances.flatMap(({ events }) => events.filter(({ type }) => /Failed$|^lost$/.test(type)));

  it('repeatedly under load: each call gets the lock, one at a time, without an error', async () => {
    const instances = [await start(PATIENT), await start(PATIENT), await start(PATIENT)];
    const sections = new CriticalSections();
    let isMoving = true;
    const work = instances.flatMap((instance) => {
      return Array.from({ length: 4 }, async () => {
        while (isMoving) await sections.call(instance);
      });
    });
    for (let i = 0; i < 12; i++) {
      const before = sections.tokens.length;
      await move(i % 2 ? 60 : 0);
      // They continue there.
      await eventually(() => expect(sections.tokens.length).toBeGreaterThan(before + 3));
    }
    isMoving = false;
    await Promise.all(work);
    sections.expectSound(sections.tokens.length);
    expect(failures(instances)).toEqual([]);
    expect(await cluster().keys()).toEqual([expect.stringMatching(/^lock:\{\w+\}:fence$/)]);
  });

  it('leaves a holder its lease, which is renewed on either side, and those who wait their places', async () => {
    const leaseMs = 2_000;
    const a = await start({ defaults: { leaseMs } });
    const [b, c] = [await start({ defaults: { leaseMs: 10_000 } }), await start({ defaults: { leaseMs: 10_000 } })];
    const lease = await a.locks.acquire('x');
    const next = b.locks.acquire('x');
    await untilQueued(a, 'x', b);
    const last = c.locks.acquire('x');
    await untilQueued(a, 'x', b, c);
    const [from, to] = await places();
    const finish = await cluster().beginMove(SLOT, from, to);
    // Half-way: the lock is on the one side, and the queue on the other.
    await from.admin.call('MIGRATE', '127.0.0.1', to.server.port, 'lock:{x}', 0, 5_000);
    await sleep(2 * leaseMs);
    expect(lease.isHeld()).toBe(true);
    await finish();
    expect(await lease.verify()).toBe(true);
    await untilQueued(a, 'x', b, c);
    const order: string[] = [];
    void next.then(() => order.push('b'));
    void last.then(() => order.push('c'));
    await lease.release();
    await (await next).release();
    await (await last).release();
    expect(order).toEqual(['b', 'c']);
  });

  it('lets the holder release while it is on its way', async () => {
    const a = await start(PATIENT);
    const lease = await a.locks.acquire('x');
    const finish = await cluster().beginMove(SLOT, ...(await places()));
    const released = lease.release();
    await sleep(200);
    await finish();
    await released;
    expect(await cluster().keys()).toEqual([expect.stringMatching(/:fence$/)]);
    expect(failures([a])).toEqual([]);
  });
});

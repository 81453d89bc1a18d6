import { OnceCalls } from '../../../lib/features/once/core/once-calls.js';
import { RedisResultStore } from '../../../lib/features/once/redis/redis-result-store.js';
import { eventually, rejection } from '../../support/expect/eventually.js';
import { gate, track } from '../../support/expect/tracked.js';
import { useProcesses } from '../../support/process/lock-process.js';
import { type LockInstance, untilQueued, useAdmin, useInstances } from '../../support/redis/lock-instances.js';
import { useRedis } from '../../support/redis/redis-server.js';
import { EARLIER } from './earlier.js';

/** Longer than any test takes. */
const PATIENT = { waitMs: 120_000 };

describe('beside processes of an earlier version, which does not have it', () => {
  const redis = useRedis();
  const admin = useAdmin(() => redis().url);
  const start = useInstances(() => redis().url);
  const startEarlier = useProcesses(() => redis().url, EARLIER.program);

  describe('once', () => {
    const LOCK = 'once:report';
    const OPTIONS = { ...PATIENT, resultTtlMs: 600_000 };
    let here: LockInstance;
    let once: OnceCalls;
    let runs: number;

    beforeEach(async () => {
      here = await start();
      const { locks, store } = here;
      once = new OnceCalls(locks.deps, locks.leases, locks.watches, new RedisResultStore(store));
      runs = 0;
    });

    const work = async () => ++runs;

    it('waits while such a process holds the lock of the work, and runs the work then', async () => {
      const earlier = await startEarlier();
      await earlier.ask('acquire', LOCK);
      const busy = await rejection(once.run('report', { ...OPTIONS, waitMs: 0 }, work));
      expect(busy).toMatchObject({ code: 'LOCK_BUSY', holders: [{ instanceId: earlier.instanceId }] });
      const call = track(once.run('report', OPTIONS, work));
      await eventually(async () => expect(await admin().zcard(`lock:{${LOCK}}:waiters`)).toBe(1));
      expect(runs).toBe(0);
      await earlier.ask('release', LOCK);
      await eventually(() => expect(call.value).toBe(1));
    });

    it('hands the lock over with its result stored, which needs no lock', async () => {
      const earlier = await startEarlier();
      const end = gate();
      const call = once.run('report', OPTIONS, async () => {
        await end.opened;
        return 'built';
      });
      await eventually(async () => expect(await admin().exists(`lock:{${LOCK}}`)).toBe(1));
      const waiting = earlier.ask('acquire', LOCK, PATIENT);
      await untilQueued(here, LOCK, earlier);
      end.open();
      expect(await call).toBe('built');
      expect(await waiting).toMatchObject({ isHeld: true });
      expect(await once.run<unknown>('report', OPTIONS, work)).toBe('built');
      await earlier.ask('release', LOCK);
      expect(await earlier.ask('list', '')).toEqual([]);
    });

    it('does not overtake such a process that waits', async () => {
      const [holder, waiter] = [await startEarlier(), await startEarlier()];
      await holder.ask('acquire', LOCK);
      const waiting = waiter.ask('acquire', LOCK, PATIENT);
      await untilQueued(here, LOCK, waiter);
      const call = track(once.run('report', OPTIONS, work));
      await eventually(async () => expect(here.locks.watches.size).toBe(1));
      await holder.ask('release', LOCK);
      expect(await waiting).toMatchObject({ isHeld: true });
      expect(call.state).toBe('pending');
      await waiter.ask('release', LOCK);
      await eventually(() => expect(call.value).toBe(1));
    });
  });

  it('onWait counts them like all others, before the call and as the holder', async () => {
    const [holder, first, last] = await Promise.all([startEarlier(), startEarlier(), startEarlier()]);
    const here = await start();
    await holder.ask('acquire', 'chat');
    const before = first.ask('acquire', 'chat', PATIENT);
    await untilQueued(here, 'chat', first);
    const told: string[] = [];
    const call = here.locks.acquire('chat', {
      ...PATIENT,
      onWait: (place) => told.push(`${place.ahead} ${place.holder?.instanceId}`),
    });
    await untilQueued(here, 'chat', first, here);
    const behind = last.ask('acquire', 'chat', PATIENT);
    await untilQueued(here, 'chat', first, here, last);
    await eventually(() => expect(told).toEqual([`1 ${holder.instanceId}`]));
    await holder.ask('release', 'chat');
    await before;
    await eventually(() => expect(told.slice(1)).toEqual([`0 ${first.instanceId}`]));
    await first.ask('release', 'chat');
    await (await call).release();
    expect(await behind).toMatchObject({ isHeld: true });
  });

  it('cancelHolder cancels older calls of this version only: the others keep their turns', async () => {
    const [holder, between] = await Promise.all([startEarlier(), startEarlier()]);
    const [one, two] = await Promise.all([start(), start()]);
    const newest = { ...PATIENT, cancellable: true, onBusy: 'cancelHolder' } as const;
    await holder.ask('acquire', 'page');
    const older = rejection(one.locks.acquire('page', newest));
    await untilQueued(one, 'page', one);
    const waiting = between.ask('acquire', 'page', PATIENT);
    await untilQueued(one, 'page', one, between);
    const newer = two.locks.acquire('page', newest);
    expect(await older).toMatchObject({ code: 'LOCK_ABORTED', reason: 'superseded' });
    expect(await holder.ask('state', 'page')).toMatchObject({ isHeld: true, aborted: false });
    await holder.ask('release', 'page');
    expect(await waiting).toMatchObject({ isHeld: true, aborted: false });
    await untilQueued(one, 'page', two);
    await between.ask('release', 'page');
    await (await newer).release();
  });
});

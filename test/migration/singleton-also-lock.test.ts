import { LockBusyError } from '../../lib/core/api/errors.js';
import type { LockClient } from '../../lib/core/lock-client.js';
import type { ForeignLock } from '../../lib/core/api/foreign-lock.js';
import { fakeForeignLock, FakeForeignServer } from '../support/world/fake-foreign-lock.js';
import { RedisJobStore } from '../../lib/redis/redis-job-store.js';
import { MemoryLockStore } from '../../lib/memory/memory-lock-store.js';
import { track } from '../support/expect/tracked.js';
import { eventsOf } from '../support/world/lock-world.js';
import { Fleet } from '../support/world/singleton-fleet.js';

describe('a singleton job that also takes the lock of the old cron job', () => {
  const key = 'cron-lock:report';
  let fleet: Fleet;
  let server: FakeForeignServer;

  function start(changes: ConstructorParameters<typeof Fleet>[0] = {}): void {
    // The server needs the clock of the fleet, whose job needs the lock on that server.
    const alsoLock: ForeignLock = {
      library: 'oldcron',
      keyOf: () => key,
      open: (context) => fakeForeignLock(server).open(context),
    };
    fleet = new Fleet({ lock: { leaseMs: 9_000, waitMs: 3_000, alsoLock }, ...changes });
    server = new FakeForeignServer(fleet.clock);
  }

  beforeEach(() => start());

  it('runs once, under both locks', async () => {
    const [a, b] = fleet.members('a', 'b');
    const runs = [a!.fire('t1', 1_000), b!.fire('t1', 1_000)];
    await fleet.clock.advance(500);
    expect(server.ownerOf(key)).toBeDefined();
    await fleet.clock.advance(1_000);
    expect(fleet.runsOf('t1')).toHaveLength(1);
    expect(runs.map(({ state }) => state)).toEqual(['fulfilled', 'fulfilled']);
    expect(server.ownerOf(key)).toBeUndefined();
    expect(server.names()).toEqual(['acquire', 'release']);
  });

  it('refuses a run by hand while an old process has its lock, without advice that such a run cannot take', async () => {
    start({ onCrash: 'skip' });
    const [a] = fleet.members('a');
    server.put(key, 'an old pod', 60_000);
    const run = a!.fire('manual:x', 5, { manual: true });
    await fleet.clock.advance(100);
    expect(run.error).toBeInstanceOf(LockBusyError);
    expect(run.error).toMatchObject({ code: 'LOCK_BUSY', foreignHolder: { key }, retryAfterMs: 60_000 });
    expect((run.error as Error).message).toMatch(
      /^The job ".*" was not run by hand \("manual:x"\): the old code has its lock, ".*" of .* \(alsoLock\)\. Try again when that is free\.$/,
    );
  });

  it.each(['skip', 'retry'] as const)(
    'leaves the tick to an old process that has it (onCrash: %s)',
    async (onCrash) => {
      start({ onCrash });
      const members = fleet.members('a', 'b');
      server.put(key, 'an old pod', 60_000);
      const runs = members.map((member) => member.fire('t1'));
      await fleet.clock.advance(1_000);
      server.delete(key);
      await fleet.clock.advance(30_000);
      expect(fleet.runs).toEqual([]);
      expect(runs.map(({ state }) => state)).toEqual(['fulfilled', 'fulfilled']);
      const skipped = members.flatMap(({ instance }) => eventsOf(instance, 'tickSkipped'));
      expect(skipped.filter((event) => event.reason === 'foreign')).toHaveLength(1);
      expect(fleet.holder).toBeUndefined();
      // The next one runs here.
      members[0]!.fire('t2');
      await fleet.clock.advance(100);
      expect(fleet.runsOf('t2')).toHaveLength(1);
    },
  );

  it('tries for waitMs where the old Redis does not answer, and lets any instance have the tick then', async () => {
    start({ onCrash: 'retry' });
    const [a] = fleet.members('a');
    server.troubles.acquire = Array.from({ length: 500 }, () => ({ failure: 'notExecuted' as const }));
    const run = a!.fire('t1');
    await fleet.clock.advance(2_900);
    expect(run.state).toBe('pending');
    await fleet.clock.advance(700);
    expect(run.error).toMatchObject({ code: 'LOCK_UNAVAILABLE' });
    expect(eventsOf(a!.instance, 'tickFailed')).toHaveLength(1);
    expect(a!.tickStore.returns).toHaveLength(1);
    expect(fleet.holder).toBeUndefined();
    server.troubles.acquire = [];
    const [b] = fleet.members('b');
    b!.fire('t1');
    await fleet.clock.advance(500);
    expect(fleet.runsOf('t1')).toHaveLength(1);
  });

  it.each(['skip', 'retry'] as const)(
    'runs once where the process stood still past its lease while it waited for the old lock (onCrash: %s)',
    async (onCrash) => {
      start({ onCrash });
      const [a, b] = fleet.members('a', 'b');
      server.troubles.acquire = [{ failure: 'notExecuted' }];
      const run = a!.fire('t1');
      await fleet.clock.advance(10);
      fleet.clock.standStill(10_000);
      await fleet.clock.advance(1_000);
      expect(run).toMatchObject({ state: 'fulfilled', value: 't1 by a' });
      expect(eventsOf(a!.instance, 'tickFailed')).toEqual([]);
      expect(a!.tickStore.returns).toEqual([]);
      b!.fire('t1');
      await fleet.clock.advance(1_000);
      expect(fleet.runsOf('t1')).toHaveLength(1);
    },
  );

  describe('where the old lock is still that of another run of the same job', () => {
    /** Every run leaves it behind for this long. */
    const keptMs = 55_000;

    /** The key of a run that was released, or whose process died. */
    const isOurs = () => server.ownerOf(key)?.includes('nestjs-redis-lock:');

    it('runs a tick again whose runner died, though its key stays for longer than its lease', async () => {
      start({ onCrash: 'retry' });
      const [a, b, c] = fleet.members('a', 'b', 'c');
      a!.fire('t1', 60_000);
      await fleet.clock.advance(100);
      b!.fire('t1', 100);
      c!.fire('t1', 100);
      await fleet.clock.advance(1_000);
      a!.kill();
      server.put(key, server.ownerOf(key)!, keptMs);
      await fleet.clock.advance(15_000);
      expect(fleet.runsOf('t1')).toHaveLength(2);
      expect(fleet.runsOf('t1')[1]!.endedAt).toBeDefined();
      for (const { instance } of [b!, c!])
        expect(eventsOf(instance, 'tickSkipped').map((e) => e.reason)).not.toContain('foreign');
    });

    it.each([
      ['the next tick', 't2', {}],
      ['a tick that waited for the run', 't2', { overlap: 'wait' }],
      ['a run by hand', 'manual:x', { manual: true }],
    ] as const)('runs %s', async (_, tick, changes) => {
      const [a, b] = fleet.members('a', 'b');
      a!.fire('t1', 1_000);
      await fleet.clock.advance(100);
      const isWaiting = 'overlap' in changes;
      const waiting = isWaiting ? b!.fire(tick, 5, changes) : undefined;
      await fleet.clock.advance(890);
      // As setNx does with keepMs.
      server.keepsFor = keptMs;
      await fleet.clock.advance(isWaiting ? 1_000 : 100);
      const run = waiting ?? b!.fire(tick, 5, changes);
      await fleet.clock.advance(500);
      expect(isOurs()).toBe(true);
      expect(run).toMatchObject({ state: 'fulfilled', value: `${tick} by b` });
    });

    it('runs the tick that its own process lost by standing still', async () => {
      const [a] = fleet.members('a');
      server.troubles.acquire = [{ failure: 'unknown', isExecuted: true }];
      const run = a!.fire('t1');
      await fleet.clock.advance(10);
      server.put(key, `kept for ${server.ownerOf(key)!}`, keptMs);
      fleet.clock.standStill(10_000);
      await fleet.clock.advance(1_000);
      expect(run).toMatchObject({ state: 'fulfilled', value: 't1 by a' });
    });

    it('takes nothing from a later run: its own command came late', async () => {
      const [a, b] = fleet.members('a', 'b');
      let arrive!: () => void;
      server.troubles.acquire = [{ until: new Promise((resolve) => (arrive = resolve)) }];
      a!.fire('t1');
      await fleet.clock.advance(10);
      a!.kill();
      await fleet.clock.advance(10_000);
      const run = b!.fire('t2', 5_000);
      await fleet.clock.advance(100);
      const owner = server.ownerOf(key);
      arrive();
      await fleet.clock.advance(4_000);
      expect(server.ownerOf(key)).toBe(owner);
      await fleet.clock.advance(2_000);
      expect(run).toMatchObject({ state: 'fulfilled', value: 't2 by b' });
    });

    it('waits for it where its token says that it came later, and lets any instance have the tick then', async () => {
      start({ onCrash: 'retry' });
      const [a] = fleet.members('a');
      a!.fire('t1');
      await fleet.clock.advance(100);
      server.put(key, server.commands[0]!.owner.replace(/:(\d+):/, ':9$1:'), 60_000);
      const run = a!.fire('t2');
      await fleet.clock.advance(2_500);
      expect(run.state).toBe('pending');
      await fleet.clock.advance(1_500);
      expect(run.error).toMatchObject({ code: 'LOCK_TIMEOUT' });
      expect(a!.tickStore.returns).toHaveLength(1);
      expect(eventsOf(a!.instance, 'tickFailed')).toHaveLength(1);
    });

    it('is another lock at another location, or of another job', async () => {
      const names = new Set<string>();
      const jobs = [{ job: 'report' }, { job: 'digest' }];
      for (const location of ['shop', 'stage']) {
        for (const changes of jobs) {
          start(changes);
          const [a] = fleet.members('a');
          Object.assign(a!.instance.store, { location });
          a!.fire('t1');
          await fleet.clock.advance(100);
          names.add(server.commands[0]!.owner.replace(/\d+:[^:]*$/, ''));
        }
      }
      expect(names.size).toBe(4);
    });
  });

  it('waits for an old process with a tick whose runner died: no old process runs that one', async () => {
    start({ onCrash: 'retry' });
    const [a, b] = fleet.members('a', 'b');
    a!.fire('t1', 60_000);
    await fleet.clock.advance(100);
    b!.fire('t1', 100);
    await fleet.clock.advance(1_000);
    a!.kill();
    server.put(key, 'an old pod', 30_000);
    await fleet.clock.advance(25_000);
    expect(fleet.runsOf('t1')).toHaveLength(1);
    await fleet.clock.advance(10_000);
    expect(fleet.runsOf('t1')).toHaveLength(2);
    expect(fleet.holder).toBeUndefined();
  });

  it.each(['skip', 'retry'] as const)(
    'owes a catch-up again that an old process is in the way of (onCrash: %s)',
    async (onCrash) => {
      start({ onCrash });
      const [a] = fleet.members('a');
      const { server: place } = fleet.world;
      const jobs = new RedisJobStore(new MemoryLockStore({ instanceId: 'a', server: place }));
      const runs = (a!.instance.locks as LockClient).singletonRuns(jobs);
      const [resource, schedule] = ['cron:report', '* * * * * UTC'];
      const [known] = await jobs.register([{ resource, schedule, next: undefined }]);
      const missed = { resource, schedule, after: known!.last!, ticks: [known!.last! + 1], historySize: 10 };
      const told = await jobs.note({ ...missed, runWithinMs: 3_600_000 });
      const owedNow = async () => (await jobs.look([resource], 0))[0]!.owed;
      let count = 0;
      const catchUp = () =>
        track(runs.run({ ...fleet.job, tick: told.owed!.tick }, () => void count++, { kind: 'catchUp', schedule }));

      server.put(key, 'an old pod', 60_000);
      const first = catchUp();
      await fleet.clock.advance(1_000);
      expect(first.state).toBe('fulfilled');
      expect(count).toBe(0);
      expect(await owedNow()).toEqual(told.owed);
      expect(fleet.holder).toBeUndefined();

      server.put(key, `kept for ${server.commands[0]!.owner}`, 60_000);
      const second = catchUp();
      await fleet.clock.advance(1_000);
      expect(second.state).toBe('fulfilled');
      expect(count).toBe(1);
      expect(await owedNow()).toBeUndefined();
    },
  );

  it('ends the run where the old lock is lost', async () => {
    const [a] = fleet.members('a');
    let reason: unknown;
    const run = a!.run('t1', async (lease) => {
      await new Promise<void>((resolve) => lease.signal.addEventListener('abort', () => resolve(), { once: true }));
      reason = lease.signal.reason;
    });
    await fleet.clock.advance(100);
    server.put(key, 'an old pod', 60_000);
    await fleet.clock.advance(4_000);
    expect(run.state).toBe('fulfilled');
    expect(reason).toMatchObject({ reason: 'foreignLost' });
  });
});

import type { ForeignLock } from '../../lib/core/api/foreign-lock.js';
import { fakeForeignLock, FakeForeignServer } from '../support/world/fake-foreign-lock.js';
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

import { Logger } from '@nestjs/common';
import { LockEventLog } from '../../../lib/nest/log/lock-event-log.js';
import { fakeForeignLock, FakeForeignServer } from '../../support/world/fake-foreign-lock.js';
import { eventsOf, LockWorld } from '../../support/world/lock-world.js';
import { LogBook } from '../nest-apps.js';

describe('the log where the Redis of the old code is away', () => {
  afterEach(() => Logger.overrideLogger(false));

  it('has a line with the reason, and counts the calls that follow within a minute', async () => {
    const log = new LogBook();
    Logger.overrideLogger(log);
    const world = new LockWorld();
    const a = world.instance('a');
    new LockEventLog('billing', world.clock).listenTo(a.locks.observers, new AbortController().signal, () => 0);
    const server = new FakeForeignServer(world.clock);
    server.troubles.acquire.push(...Array.from({ length: 3 }, () => ({ failure: 'notExecuted' as const })));
    const alsoLock = fakeForeignLock(server);
    for (const resource of ['x', 'y', 'z']) {
      await expect(a.locks.acquire(resource, { alsoLock, waitMs: 0 })).rejects.toThrow('notExecuted');
    }
    expect(eventsOf(a, 'foreignFailed').map(({ resource }) => resource)).toEqual(['x', 'y', 'z']);
    expect(log.at('warn')).toEqual([
      expect.stringMatching(
        /^Redis could not acquire "x": the lock "old:x" of .* \(alsoLock\): the fake server says notExecuted\. The call has failed\. See docs\/operations\/logs\.md#redis-does-not-answer\.$/,
      ),
    ]);
    await world.clock.advance(60_000);
    expect(log.at('warn').slice(1)).toEqual([
      'In the last minute, 2 more calls failed for a lock of another library (alsoLock): "y", "z".',
    ]);
  });
});

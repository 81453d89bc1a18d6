import type { Redis } from 'ioredis';
import type { ScriptCall, ScriptSender } from '../../../lib/redis/script/script.js';
import { RestartQuarantine, RestartQuarantineError } from '../../../lib/redis/script/restart-quarantine.js';
import { QUARANTINE, RELEASE } from '../../../lib/redis/script/scripts.js';
import { FakeClock } from '../../support/world/fake-clock.js';

const LONGEST_LEASE_MS = 30_000;
const HOUR_MS = 3_600_000;

/** A server whose wall clock can be set, and a client of it. */
function worldOf() {
  const clock = new FakeClock();
  const server = {
    runId: 'aaaa',
    startedAt: 0,
    wallStepMs: 0,
    hasAll: 0,
    /** What happens between a reply and its being read. */ holdReply: () => {},
  };
  const wallMs = () => clock.now() + server.wallStepMs;
  const runner: ScriptSender = {
    send: <T>(_client: Redis, { script, read }: ScriptCall<T>) => {
      const upSeconds = Math.floor((wallMs() - server.startedAt) / 1_000);
      const look = [server.runId, upSeconds, wallMs(), server.hasAll];
      server.holdReply();
      return Promise.resolve(read(script === QUARANTINE ? look : 'granted'));
    },
  };
  const client = { options: { host: 'redis.test', port: 6379 }, stream: {} };
  const newClient = () => new RestartQuarantine(runner, LONGEST_LEASE_MS, clock);
  let quarantine = newClient();
  server.startedAt = wallMs() - HOUR_MS;
  return {
    clock,
    server,
    /** The connection breaks, and is made anew. */
    reconnect: () => void (client.stream = {}),
    restart() {
      server.runId += 'b';
      server.startedAt = wallMs();
      client.stream = {};
    },
    /** Another process begins. */
    newProcess: () => void (quarantine = newClient()),
    acquire: () =>
      quarantine.send<unknown>(
        client as unknown as Redis,
        { script: RELEASE, keys: ['lock', 'queue', 'fence'], args: [], read: (reply) => reply, mayGrant: true },
        (error) => Promise.reject(error),
      ),
  };
}

describe('the quarantine after a restart', () => {
  it('holds nobody up on a server that runs for long', async () => {
    const { acquire } = worldOf();
    expect(await acquire()).toBe('granted');
  });

  it('lasts as long as the longest lease', async () => {
    const { acquire, restart, clock } = worldOf();
    await acquire();
    restart();
    await expect(acquire()).rejects.toThrow(RestartQuarantineError);
    await clock.advance(LONGEST_LEASE_MS - 1);
    await expect(acquire()).rejects.toThrow(RestartQuarantineError);
    await clock.advance(1_001);
    expect(await acquire()).toBe('granted');
  });

  it('is not shortened by a clock that is set forward between the restart and the first look', async () => {
    const { acquire, restart, server, clock } = worldOf();
    await acquire();
    restart();
    server.wallStepMs += HOUR_MS;
    await expect(acquire()).rejects.toThrow(RestartQuarantineError);
    await clock.advance(LONGEST_LEASE_MS + 1_000);
    expect(await acquire()).toBe('granted');
  });

  it('is not shortened by one that is set forward later, however often the connection is made anew', async () => {
    const { acquire, restart, reconnect, server } = worldOf();
    await acquire();
    restart();
    await expect(acquire()).rejects.toThrow(RestartQuarantineError);
    server.wallStepMs += HOUR_MS;
    for (let times = 0; times < 3; times++) {
      reconnect();
      await expect(acquire()).rejects.toThrow(RestartQuarantineError);
    }
  });

  it('does not begin for a server that has not restarted, wherever its clock is set to', async () => {
    const { acquire, reconnect, server } = worldOf();
    await acquire();
    for (const stepMs of [10 * HOUR_MS, -20 * HOUR_MS]) {
      server.wallStepMs += stepMs;
      reconnect();
      expect(await acquire()).toBe('granted');
    }
  });

  it('lasts no longer than the longest lease where the clock was set back before the first look', async () => {
    const { acquire, restart, newProcess, server, clock } = worldOf();
    restart();
    server.wallStepMs -= HOUR_MS;
    newProcess();
    await expect(acquire()).rejects.toThrow(RestartQuarantineError);
    await clock.advance(LONGEST_LEASE_MS + 1_000);
    expect(await acquire()).toBe('granted');
  });

  describe('and a process that stands still, or whose machine is suspended, for longer than the quarantine', () => {
    const PAUSE_MS = 3 * LONGEST_LEASE_MS;

    it('while it lasts: the first try after that is granted, and no earlier one', async () => {
      const { acquire, restart, clock } = worldOf();
      await acquire();
      restart();
      await expect(acquire()).rejects.toThrow(RestartQuarantineError);
      clock.standStill(PAUSE_MS);
      expect(await acquire()).toBe('granted');
    });

    it('over the restart itself: it waits for what is left since the restart, and not for ever', async () => {
      const { acquire, restart, clock } = worldOf();
      await acquire();
      clock.standStill(PAUSE_MS);
      restart(); // a second before it goes on
      clock.standStill(1_000);
      await expect(acquire()).rejects.toThrow(RestartQuarantineError);
      await clock.advance(LONGEST_LEASE_MS - 2_000);
      await expect(acquire()).rejects.toThrow(RestartQuarantineError);
      await clock.advance(2_000);
      expect(await acquire()).toBe('granted');
    });

    it('between two restarts: the quarantine of the first does not count for the second', async () => {
      const { acquire, restart, clock } = worldOf();
      await acquire();
      restart();
      await expect(acquire()).rejects.toThrow(RestartQuarantineError);
      clock.standStill(PAUSE_MS);
      restart();
      await expect(acquire()).rejects.toThrow(RestartQuarantineError);
      await clock.advance(LONGEST_LEASE_MS + 1_000);
      expect(await acquire()).toBe('granted');
    });

    it('after the server has said how long it runs, before the reply is read: the pause does not shorten the quarantine', async () => {
      const { acquire, restart, clock, server } = worldOf();
      await acquire();
      restart();
      server.holdReply = () => clock.standStill(PAUSE_MS);
      await expect(acquire()).rejects.toThrow(RestartQuarantineError);
      server.holdReply = () => {};
      await clock.advance(LONGEST_LEASE_MS + 1_000);
      expect(await acquire()).toBe('granted');
    });

    it('and whose connection is made anew again and again: it waits for no longer than one quarantine', async () => {
      const { acquire, restart, reconnect, clock, server } = worldOf();
      await acquire();
      restart();
      server.holdReply = () => clock.standStill(PAUSE_MS);
      await expect(acquire()).rejects.toThrow(RestartQuarantineError);
      server.holdReply = () => {};
      for (let times = 0; times < 4; times++) {
        await clock.advance(LONGEST_LEASE_MS / 4);
        reconnect();
        if (times < 3) await expect(acquire()).rejects.toThrow(RestartQuarantineError);
      }
      expect(await acquire()).toBe('granted');
    });

    it('each time the server restarts: it waits for the last restart only', async () => {
      const { acquire, restart, clock } = worldOf();
      await acquire();
      for (let times = 0; times < 20; times++) {
        restart();
        clock.standStill(LONGEST_LEASE_MS + 1_001);
      }
      expect(await acquire()).toBe('granted');
    });
  });

  it('lasts no longer where the clock is set back in it, however often the connection is made anew', async () => {
    const { acquire, restart, reconnect, server, clock } = worldOf();
    await acquire();
    restart();
    await expect(acquire()).rejects.toThrow(RestartQuarantineError);
    server.wallStepMs -= HOUR_MS;
    for (let times = 0; times < 4; times++) {
      await clock.advance(LONGEST_LEASE_MS / 4 + 250);
      reconnect();
      if (times < 3) await expect(acquire()).rejects.toThrow(RestartQuarantineError);
    }
    expect(await acquire()).toBe('granted');
  });

  it('is over at once where the data is complete', async () => {
    const { acquire, restart, server } = worldOf();
    restart();
    server.hasAll = 1;
    expect(await acquire()).toBe('granted');
  });
});

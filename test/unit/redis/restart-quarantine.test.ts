import type { Redis } from 'ioredis';
import type { ScriptCall } from '../../../lib/redis/connection.js';
import { RestartQuarantine, RestartQuarantineError } from '../../../lib/redis/restart-quarantine.js';
import type { ScriptSender } from '../../../lib/redis/script-runner.js';
import { QUARANTINE } from '../../../lib/redis/scripts/quarantine.js';
import { RELEASE } from '../../../lib/redis/scripts/release.js';
import { FakeClock } from '../../support/fake-clock.js';

const LONGEST_LEASE_MS = 30_000;
const HOUR_MS = 3_600_000;

/** A server whose wall clock can be set, and a client of it. */
function worldOf() {
  const clock = new FakeClock();
  const server = { runId: 'aaaa', startedAt: 0, wallStepMs: 0, hasAll: 0 };
  const wallMs = () => clock.now() + server.wallStepMs;
  const runner: ScriptSender = {
    run: <T>(_client: Redis, { script, read }: ScriptCall<T>) => {
      const upSeconds = Math.floor((wallMs() - server.startedAt) / 1_000);
      const look = [server.runId, upSeconds, wallMs(), server.hasAll];
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
      quarantine.run<unknown>(
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

  it('is over at once where the data is complete', async () => {
    const { acquire, restart, server } = worldOf();
    restart();
    server.hasAll = 1;
    expect(await acquire()).toBe('granted');
  });
});

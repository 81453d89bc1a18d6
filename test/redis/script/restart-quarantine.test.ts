import type { Redis } from 'ioredis';
import type { Script, ScriptCall, ScriptSender } from '../../../lib/redis/script/script.js';
import { RestartQuarantine, RestartQuarantineError } from '../../../lib/redis/script/restart-quarantine.js';
import * as SCRIPTS from '../../../lib/redis/script/scripts.js';
import { FakeClock } from '../../support/world/fake-clock.js';

const MAX_LEASE_MS = 30_000;
const HOUR_MS = 3_600_000;

/** The data of a server after its start, as the script reports it. */
const DATA = { none: 0, kept: 1, logged: 2 };

/** A server whose wall clock can be set, and a client of it. */
function worldOf({ isPersistent = false } = {}) {
  const clock = new FakeClock();
  const lines: string[] = [];
  const server = {
    runId: 'aaaa',
    startedAt: 0,
    wallStepMs: 0,
    data: DATA.none,
    /** The reply to CONFIG GET; an error where the user may not ask. */
    config: [] as unknown,
    /** The error of the check, if it fails. */
    refusal: undefined as string | undefined,
    /** Called between a reply and its reading. */ holdReply: () => {},
  };
  const wallMs = () => clock.now() + server.wallStepMs;
  const runner: ScriptSender = {
    send: <T>(_client: Redis, { script, args, read }: ScriptCall<T>, fail: (error: unknown) => Promise<T>) => {
      const upSeconds = Math.floor((wallMs() - server.startedAt) / 1_000);
      const look = [server.runId, upSeconds, wallMs(), server.data];
      server.holdReply();
      const isCheck = script === SCRIPTS.QUARANTINE;
      if (isCheck && server.refusal) return fail(Object.assign(new Error(server.refusal), { name: 'ReplyError' }));
      return Promise.resolve(read(isCheck ? look : args.length === 0 ? 'granted' : String(args[0])));
    },
  };
  const client = {
    options: { host: 'redis.test', port: 6379 },
    stream: {},
    call: () => (server.config instanceof Error ? Promise.reject(server.config) : Promise.resolve(server.config)),
  };
  const settings = { longestLeaseMs: MAX_LEASE_MS, isPersistent, warn: (line: string) => void lines.push(line) };
  const newClient = () => new RestartQuarantine(runner, settings, clock);
  const send = (script: Script) =>
    quarantine.send<unknown>(
      client as unknown as Redis,
      { script, keys: ['lock', 'queue', 'fence'], args: [], read: (reply) => reply },
      (error) => Promise.reject(error as Error),
    );
  let quarantine = newClient();
  server.startedAt = wallMs() - HOUR_MS;
  return {
    clock,
    server,
    /** Simulates a broken connection and a reconnect. */
    reconnect: () => void (client.stream = {}),
    restart() {
      server.runId += 'b';
      server.startedAt = wallMs();
      client.stream = {};
    },
    /** Another process begins. */
    newProcess: () => void (quarantine = newClient()),
    /** The log. */
    lines,
    send,
    acquire: () => send(SCRIPTS.ACQUIRE),
    release: () => send(SCRIPTS.RELEASE),
    /** `true` if the message of a grant is sufficient. */
    trusts: () => quarantine.trusts(client as unknown as Redis, 'fence'),
  };
}

describe('the quarantine after a restart', () => {
  it('delays no call on a server that has been up for long', async () => {
    const { acquire } = worldOf();
    expect(await acquire()).toBe('granted');
  });

  it('lasts as long as the longest lease', async () => {
    const { acquire, restart, clock } = worldOf();
    await acquire();
    restart();
    await expect(acquire()).rejects.toThrow(RestartQuarantineError);
    await clock.advance(MAX_LEASE_MS - 1);
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
    await clock.advance(MAX_LEASE_MS + 1_000);
    expect(await acquire()).toBe('granted');
  });

  it('is not shortened by a clock that is set forward later, however often the client reconnects', async () => {
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

  it('lasts no longer than the longest lease if the clock was set back before the first check', async () => {
    const { acquire, restart, newProcess, server, clock } = worldOf();
    restart();
    server.wallStepMs -= HOUR_MS;
    newProcess();
    await expect(acquire()).rejects.toThrow(RestartQuarantineError);
    await clock.advance(MAX_LEASE_MS + 1_000);
    expect(await acquire()).toBe('granted');
  });

  describe('and a process that is blocked, or whose machine is suspended, for longer than the quarantine', () => {
    const PAUSE_MS = 3 * MAX_LEASE_MS;

    it('while it lasts: the first try after that is granted, and no earlier one', async () => {
      const { acquire, restart, clock } = worldOf();
      await acquire();
      restart();
      await expect(acquire()).rejects.toThrow(RestartQuarantineError);
      clock.block(PAUSE_MS);
      expect(await acquire()).toBe('granted');
    });

    it('over the restart itself: it waits for the time left since the restart, and not forever', async () => {
      const { acquire, restart, clock } = worldOf();
      await acquire();
      clock.block(PAUSE_MS);
      restart(); // a second before it goes on
      clock.block(1_000);
      await expect(acquire()).rejects.toThrow(RestartQuarantineError);
      await clock.advance(MAX_LEASE_MS - 2_000);
      await expect(acquire()).rejects.toThrow(RestartQuarantineError);
      await clock.advance(2_000);
      expect(await acquire()).toBe('granted');
    });

    it('between two restarts: the quarantine of the first does not count for the second', async () => {
      const { acquire, restart, clock } = worldOf();
      await acquire();
      restart();
      await expect(acquire()).rejects.toThrow(RestartQuarantineError);
      clock.block(PAUSE_MS);
      restart();
      await expect(acquire()).rejects.toThrow(RestartQuarantineError);
      await clock.advance(MAX_LEASE_MS + 1_000);
      expect(await acquire()).toBe('granted');
    });

    it('after the server has said how long it runs, before the reply is read: the pause does not shorten the quarantine', async () => {
      const { acquire, restart, clock, server } = worldOf();
      await acquire();
      restart();
      server.holdReply = () => clock.block(PAUSE_MS);
      await expect(acquire()).rejects.toThrow(RestartQuarantineError);
      server.holdReply = () => {};
      await clock.advance(MAX_LEASE_MS + 1_000);
      expect(await acquire()).toBe('granted');
    });

    it('and whose client reconnects repeatedly: it waits for no longer than one quarantine', async () => {
      const { acquire, restart, reconnect, clock, server } = worldOf();
      await acquire();
      restart();
      server.holdReply = () => clock.block(PAUSE_MS);
      await expect(acquire()).rejects.toThrow(RestartQuarantineError);
      server.holdReply = () => {};
      for (let times = 0; times < 4; times++) {
        await clock.advance(MAX_LEASE_MS / 4);
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
        clock.block(MAX_LEASE_MS + 1_001);
      }
      expect(await acquire()).toBe('granted');
    });
  });

  it('lasts no longer if the clock is set back in it, however often the client reconnects', async () => {
    const { acquire, restart, reconnect, server, clock } = worldOf();
    await acquire();
    restart();
    await expect(acquire()).rejects.toThrow(RestartQuarantineError);
    server.wallStepMs -= HOUR_MS;
    for (let times = 0; times < 4; times++) {
      await clock.advance(MAX_LEASE_MS / 4 + 250);
      reconnect();
      if (times < 3) await expect(acquire()).rejects.toThrow(RestartQuarantineError);
    }
    expect(await acquire()).toBe('granted');
  });

  describe('a script that frees', () => {
    it('grants nothing while it lasts, and then what it frees', async () => {
      const { release, acquire, restart, clock } = worldOf();
      expect(await release()).toBe('granted');
      restart();
      // Also as the first command on a connection: it waits for the check.
      expect(await release()).toBe('grant nothing');
      await expect(acquire()).rejects.toThrow(RestartQuarantineError);
      expect(await release()).toBe('grant nothing');
      await clock.advance(MAX_LEASE_MS + 1_000);
      expect(await release()).toBe('granted');
    });

    it('runs if the server rejects the check, and grants nothing', async () => {
      const { release, acquire, server } = worldOf();
      server.refusal = "NOPERM this user has no permissions to run the 'info' command";
      expect(await release()).toBe('grant nothing');
      await expect(acquire()).rejects.toThrow('+info');
    });

    it('fails with its connection: it is not known what it may do on the next one', async () => {
      const { release, server } = worldOf();
      server.refusal = 'LOADING Redis is loading the dataset in memory';
      await expect(release()).rejects.toThrow('LOADING');
    });
  });

  describe('a message of a grant', () => {
    it('is enough from a server that is known to be well, on this connection', async () => {
      const { acquire, trusts, reconnect, restart, clock } = worldOf();
      expect(trusts()).toBe(false);
      await acquire();
      expect(trusts()).toBe(true);
      reconnect();
      expect(trusts()).toBe(false);
      restart();
      await expect(acquire()).rejects.toThrow(RestartQuarantineError);
      expect(trusts()).toBe(false);
      await clock.advance(MAX_LEASE_MS + 1_000);
      expect(trusts()).toBe(true);
    });

    it('is enough if nothing was forgotten', async () => {
      const { acquire, trusts, restart, server } = worldOf({ isPersistent: true });
      restart();
      server.data = DATA.kept;
      await acquire();
      expect(trusts()).toBe(true);
    });
  });

  describe('ends at once', () => {
    const ALWAYS = ['appendfsync', 'always', 'no-appendfsync-on-rewrite', 'no'];
    const everySecond = ['appendfsync', 'everysec', 'no-appendfsync-on-rewrite', 'no'];
    const notMeanwhile = ['appendfsync', 'always', 'no-appendfsync-on-rewrite', 'yes'];
    const proofs: readonly (readonly [string, { data: number; config?: unknown; isPersistent?: boolean }, boolean])[] =
      [
        ['a log that is on disk before each answer', { data: DATA.logged, config: ALWAYS }, true],
        [
          'the same, told as a map',
          { data: DATA.logged, config: { [ALWAYS[0]!]: 'always', [ALWAYS[2]!]: 'no' } },
          true,
        ],
        ['a log that is written once a second', { data: DATA.logged, config: everySecond }, false],
        ['a log that is not written while it is made anew', { data: DATA.logged, config: notMeanwhile }, false],
        ['a log of which nothing is told', { data: DATA.logged, config: new Error('NOPERM') }, false],
        ['no log, though one would be written so', { data: DATA.kept, config: ALWAYS }, false],
        ['no data', { data: DATA.none, config: ALWAYS, isPersistent: true }, false],
        ["persistence: 'always'", { data: DATA.kept, isPersistent: true }, true],
      ];

    it.each(proofs)(
      'with proof that nothing is forgotten: %s',
      async (_, { data, config = [], isPersistent }, isOver) => {
        const { acquire, restart, server, lines } = worldOf({ isPersistent: isPersistent ?? false });
        restart();
        Object.assign(server, { data, config });
        if (isOver) expect(await acquire()).toBe('granted');
        else await expect(acquire()).rejects.toThrow(RestartQuarantineError);
        expect(lines).toHaveLength(isOver ? 0 : 1);
      },
    );
  });

  it('has one line in the log, however many connections and commands there are, and one for the next restart', async () => {
    const { acquire, release, restart, reconnect, lines, server } = worldOf();
    await acquire();
    for (const [data, why] of [
      [DATA.none, 'without its data'],
      [DATA.kept, 'with data that may be old'],
      [DATA.logged, 'with an append-only file that may lack the last writes (appendfsync is not always)'],
    ] as const) {
      restart();
      server.data = data;
      for (let times = 0; times < 3; times++) {
        await release();
        await expect(acquire()).rejects.toThrow(RestartQuarantineError);
        reconnect();
      }
      expect(lines.splice(0)).toEqual([
        expect.stringMatching(
          new RegExp(
            `^Redis at redis\\.test:6379 has restarted ${why.replace(/[()]/g, '\\$&')}\\. No lock is granted there until ` +
              '\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\dZ, for 30 s: leases that it has forgotten may still be held ' +
              '\\(restartQuarantineMs\\)\\.$',
          ),
        ),
      ]);
    }
  });
});

describe('every script', () => {
  const all: readonly Script[] = Object.values(SCRIPTS);

  it('that mints tokens is held up during a quarantine, unless it says that it can do without', () => {
    const minting = all.filter(({ mayGrant }) => mayGrant);
    expect(minting.filter(({ frees }) => !frees).map(({ name }) => name)).toEqual([
      'acquire',
      'claimResult',
      'claimTick',
      'rotate',
      'tryWrite',
      'watch',
    ]);
    // Scripts that grant contain this code of include/mint.lua.
    const withMint = all.filter(({ lua }) => lua.includes('281474976710655'));
    expect(minting).toEqual(withMint);
    expect(all.filter(({ frees, mayGrant }) => frees && !mayGrant)).toEqual([]);
  });
});

import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import type { LockHealth } from '../../../lib/features/fleet/core/health/health-checks.js';
import { eventually } from '../../support/expect/eventually.js';
import { TcpProxy } from '../../support/network/tcp-proxy.js';
import {
  commandCounts,
  type LockInstance,
  type LockInstanceOptions,
  resetCounts,
  untilQueued,
  useAdmin,
  useInstances,
} from '../../support/redis/lock-instances.js';
import { documentedUser } from '../../support/redis/lock-user.js';
import { startRedis, useRedis } from '../../support/redis/redis-server.js';

/** Longer than two probes take, which prove a loss, however busy the machine is. What must not happen in this time happens never. */
const STANDSTILL_MS = 3_500;

/** An instance with a waiter that relies on messages, and what its store says of them. */
interface Listener extends LockInstance {
  readonly heard: string[];
  readonly hearing: NonNullable<LockInstance['store']['hearing']>;
}

describe('a connection for messages', () => {
  const redis = useRedis();
  const admin = useAdmin(() => redis().url);
  const start = useInstances(() => redis().url);

  const listen = async (options: LockInstanceOptions = {}): Promise<Listener> => {
    const instance = await start(options);
    const heard: string[] = [];
    instance.store.listen({
      granted: ({ resource }) => heard.push(`granted ${resource}`),
      deliveryUncertain: () => heard.push('deliveryUncertain'),
      reconnected: () => heard.push('reconnected'),
    });
    const { hearing } = instance.store;
    hearing.setNeeded(true);
    return { ...instance, heard, hearing };
  };
  /** Until so many more probes were sent by all. */
  const untilProbed = async (count: number, at = admin()): Promise<void> => {
    const published = async (): Promise<number> => (await commandCounts(at)).publish ?? 0;
    const from = await published();
    await eventually(async () => {
      await sleep(100); // a second or more passes between two probes
      expect(await published()).toBeGreaterThanOrEqual(from + count);
    });
  };
  const expectSound = async ({ heard, hearing }: Listener): Promise<void> => {
    expect([heard, hearing.trustedForMs]).toEqual([[], Infinity]);
    // But for a probe that is on its way.
    await eventually(() => expect(hearing.silentSince).toBeUndefined());
  };

  it('that works is proved every 1.4 s or less often, by one script', async () => {
    const listener = await listen();
    await resetCounts(admin());
    const from = performance.now();
    await untilProbed(4);
    const { evalsha = 0, eval: evals = 0, publish, ...others } = await commandCounts(admin());
    // The first one may bring the text of the script.
    expect(evalsha).toBeLessThanOrEqual(2 + (performance.now() - from) / 1_400);
    expect([evals <= 1, publish]).toEqual([true, evalsha]);
    expect(Object.keys(others).filter((name) => !/^(del|info|config)/.test(name))).toEqual([]);
    expect(await admin().keys('*')).toEqual([]);
    await expectSound(listener);
  });

  it('is not proved while no waiter relies on it, whatever the process does', async () => {
    const [listener, idle] = [await listen(), await start()];
    await resetCounts(admin());
    const channel = idle.store.keys.inbox(idle.store.clientId);
    const ears = new Redis(redis().url);
    const heard: string[] = [];
    ears.on('message', (_channel: string, message: string) => heard.push(message));
    await ears.subscribe(channel);
    await (await idle.locks.acquire('a')).release();
    await untilProbed(3);
    ears.disconnect();
    expect(heard).toEqual([]);
    await expectSound(listener);
  });

  describe('that hangs', () => {
    it('is detected, reported at once, and reconnected; then the messages arrive again', async () => {
      await using proxy = await TcpProxy.start(redis().port);
      const far = await listen({ connection: proxy.url });
      const [near, witness] = [await start(), await start()];
      await untilProbed(2);
      await expectSound(far);
      const lease = await near.locks.acquire('x', { leaseMs: 60_000 });
      proxy.forget('subscriber');
      // Redis believes in the connection: the grant is made, and its message is lost.
      const waiter = { resource: 'x', id: `${far.store.clientId}/lost`, mode: 'exclusive' } as const;
      await far.store.acquire(waiter, 60_000, { sentAt: 1, maxWaiters: 9 });
      await untilQueued(witness, 'x', far);
      await lease.release();
      expect(far.heard).toEqual([]);
      const from = performance.now();
      await eventually(() => expect(far.heard[0]).toBe('deliveryUncertain'));
      await eventually(() => expect(far.heard).toEqual(['deliveryUncertain', 'reconnected']));
      expect(performance.now() - from).toBeLessThan(10_000);
      await eventually(() => expect(far.hearing.trustedForMs).toBe(Infinity));
      // A waiter that asks now finds the grant, as core's waiters do.
      expect(await far.store.acquire(waiter, 60_000)).toMatchObject({ status: 'granted' });
      await far.store.release(waiter);
      const next = await near.locks.acquire('x', { leaseMs: 60_000 });
      await far.store.acquire(waiter, 60_000, { sentAt: 2, maxWaiters: 9 });
      await next.release();
      await eventually(() => expect(far.heard).toEqual(['deliveryUncertain', 'reconnected', 'granted x']));
      await far.store.release(waiter);
    });

    it('is a problem for a health check, and degrades it, until a message has arrived again', async () => {
      await using proxy = await TcpProxy.start(redis().port);
      const far = await listen({ connection: proxy.url });
      let seen: Promise<LockHealth> | undefined;
      far.store.listen({
        granted: () => {},
        deliveryUncertain: () => void (seen ??= far.locks.health({ timeoutMs: 10_000 })),
        reconnected: () => {},
      });
      await untilProbed(1);
      proxy.forget('subscriber');
      await eventually(() => expect(seen).toBeDefined());
      expect(await seen).toMatchObject({ status: 'degraded', problems: [{ code: 'INBOX_LOSES' }] });
      await eventually(async () =>
        expect(await far.locks.health({ timeoutMs: 10_000 })).toMatchObject({ status: 'up', problems: [] }),
      );
    });

    it('is detected even if another user replays and invents messages', async () => {
      await using proxy = await TcpProxy.start(redis().port);
      const far = await listen({ connection: proxy.url });
      const channel = far.store.keys.inbox(far.store.clientId);
      const [ears, mouth] = [new Redis(redis().url), new Redis(redis().url)];
      ears.on('message', (_channel: string, message: string) => {
        const [word, nonce, number] = message.split(' ');
        if (word !== 'probe' || message.includes('zzz')) return;
        const madeUp = [1, 2, 3].map((more) => `probe ${nonce} ${Number(number) + more}`);
        for (const text of [message, ...madeUp])
          void mouth.publish(channel, text.replace(nonce!, `${nonce!.slice(0, 19)}zzz`));
      });
      await ears.subscribe(channel);
      await untilProbed(8);
      expect(far.heard).toEqual([]);
      proxy.forget('subscriber');
      await eventually(() => expect(far.heard).toEqual(['deliveryUncertain', 'reconnected']));
      ears.disconnect();
      mouth.disconnect();
    });
  });

  it('is left on a server that has become a replica, by the probe alone', async () => {
    const listener = await listen();
    await untilProbed(1);
    const elsewhere = await startRedis();
    try {
      await admin().replicaof('127.0.0.1', elsewhere.port);
      await eventually(() => expect(listener.heard[0]).toBe('deliveryUncertain'));
    } finally {
      await admin().replicaof('NO', 'ONE');
      await elsewhere.stop();
    }
    // Other processes may still use the former primary for a while.
    await eventually(() => expect(listener.hearing.trustedForMs).toBe(5_000));
    expect(listener.heard).toContain('reconnected');
  });

  describe('is not taken for hung', () => {
    describe('while Redis is blocked, on three servers at the same time:', () => {
      const servers = [useRedis(), useRedis(), useRedis()] as const;
      const admins = servers.map((server) => useAdmin(() => server().url));

      const pauses = async ({ hearing }: Listener): Promise<void> => {
        const before = performance.now();
        await servers[0]().pause();
        try {
          await eventually(() => expect(hearing.silentSince).toBeDefined());
          const since = hearing.silentSince!;
          await sleep(STANDSTILL_MS);
          expect(hearing.silentSince).toBe(since);
          expect(since).toBeGreaterThan(before - 2_000);
        } finally {
          await servers[0]().resume();
        }
        await eventually(() => expect(hearing.silentSince).toBeUndefined());
      };
      const longScript = async (at: Redis) => {
        const long = `
          local function now()
            local time = redis.call('TIME')
            return time[1] * 1000 + time[2] / 1000
          end
          local from = now()
          repeat until now() - from > ${STANDSTILL_MS}`;
        await at.eval(long, 0);
      };
      /** Redis serves nobody while it runs. Other processes can't see if it is scheduled. */
      const runsSilentScript = async (_listener: Listener, at: Redis) => {
        await at.config('SET', 'lua-time-limit', 60_000);
        const ended = longScript(at);
        await sleep(STANDSTILL_MS / 10);
        await servers[1]().pause();
        await sleep(STANDSTILL_MS * 0.8);
        await servers[1]().resume();
        await ended;
      };
      /** Soon it says that it is busy. */
      const runsBusyScript = async (_listener: Listener, at: Redis) => {
        await at.config('SET', 'lua-time-limit', 100);
        await longScript(at);
      };

      it('that hangs, or runs a script, is reported with the time since when', async () => {
        const blockers = [pauses, runsSilentScript, runsBusyScript];
        await Promise.all(
          blockers.map(async (block, index) => {
            const at = admins[index]!();
            const listener = await listen({ connection: servers[index]!().url });
            await untilProbed(1, at);
            await block(listener, at);
            await untilProbed(3, at);
            await expectSound(listener);
          }),
        );
      });
    });

    it('for the user of the documentation, who tries nothing that is forbidden', async () => {
      const { password, rules } = documentedUser();
      await admin().call('ACL', 'SETUSER', 'documented', 'reset', 'on', ...rules);
      await admin().call('ACL', 'LOG', 'RESET');
      const listener = await listen({ connection: redis().url.replace('://', `://documented:${password}@`) });
      await untilProbed(3);
      await expectSound(listener);
      expect(await admin().call('ACL', 'LOG')).toEqual([]);
      await admin().call('ACL', 'DELUSER', 'documented');
    });
  });

  it('is no longer probed once the store is closed, and emits nothing', async () => {
    const [listener, witness] = [await listen(), await listen()];
    await untilProbed(2);
    await listener.locks.shutdown(0);
    const { heard } = listener;
    const channel = listener.store.keys.inbox(listener.store.clientId);
    const ears = new Redis(redis().url);
    ears.on('message', (_channel: string, message: string) => heard.push(message));
    await ears.subscribe(channel);
    await untilProbed(3);
    ears.disconnect();
    await expectSound(witness);
    expect(heard).toEqual([]);
  });
});

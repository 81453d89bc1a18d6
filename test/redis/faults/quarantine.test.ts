import { LockBusyError } from '../../../lib/kernel/api/busy-errors.js';
import { LockUnavailableError } from '../../../lib/kernel/api/errors.js';
import { connectAdmin } from '../../support/redis/admin-client.js';
import { eventually, rejection } from '../../support/expect/eventually.js';
import { commandCounts, resetCounts, useAdmin, useInstances } from '../../support/redis/lock-instances.js';
import { startRedis, useRedis } from '../../support/redis/redis-server.js';
import { TcpProxy } from '../../support/network/tcp-proxy.js';

const LEASE_MS = 2_000;
const LONG = { restartQuarantineMs: 600_000 };
const FORGOTTEN =
  /Redis at \S+ has restarted and may have forgotten leases; locks are granted again in \d+ ms \(restartQuarantineMs\)/;

describe('with restartQuarantineMs', () => {
  const redis = useRedis();
  const start = useInstances(() => at(redis().port));
  const admin = useAdmin(() => redis().url);
  const uptimeSeconds = async () => Number(/uptime_in_seconds:(\d+)/.exec(await admin().info('server'))![1]);
  const QUARANTINED = { restartQuarantineMs: LEASE_MS, defaults: { leaseMs: LEASE_MS } };

  it('a server that was started just now grants nothing, and then it does', async () => {
    const cautious = await start(LONG);
    const error = await rejection<LockUnavailableError>(cautious.locks.acquire('a', { waitMs: 0 }));
    expect(error).toBeInstanceOf(LockUnavailableError);
    expect(error.message).toMatch(FORGOTTEN);
    const { locks } = await start(QUARANTINED);
    await (await locks.acquire('a', { waitMs: 60_000 })).release();
    // Whatever the prefix: it has forgotten nothing that could still be trusted. A process that comes new knows whole seconds only.
    await eventually(async () => expect(await uptimeSeconds()).toBeGreaterThan(LEASE_MS / 1_000));
    const other = await start({ ...QUARANTINED, keyPrefix: 'other' });
    await (await other.locks.acquire('a', { waitMs: 0 })).release();
  });

  it('one look for each connection is all it costs', async () => {
    const { locks } = await start(QUARANTINED);
    const admin = connectAdmin(redis().port);
    await resetCounts(admin);
    for (let i = 0; i < 20; i++) await (await locks.acquire('a')).release();
    expect((await commandCounts(admin)).info).toBe(1);
    admin.disconnect();
  });

  it('after kill -9 without persistence, a lock is granted when its last lease must have ended; without the option, before', async () => {
    await using proxy = await TcpProxy.start(redis().port);
    const first = await start({ ...QUARANTINED, connection: at(proxy.port) });
    const [protectedOne, careless] = [await start(QUARANTINED), await start()];
    const [a, b] = [await first.locks.acquire('a'), await first.locks.acquire('b')];
    const own = await protectedOne.locks.acquire('own', { strictOrder: true });
    const after = protectedOne.locks.acquire('own', { strictOrder: true, waitMs: 60_000 });

    // Trusts its leases until their end, although it is cut off.
    proxy.dropAll();
    await redis().kill();
    await redis().restart();
    const overlap = await careless.locks.acquire('b', { waitMs: 5_000 });
    expect([b.isHeld(), overlap.isHeld()]).toEqual([true, true]);

    const next = protectedOne.locks
      .acquire('a', { waitMs: 60_000 })
      .then((lease) => [a.signal.aborted, lease] as const);
    // A release is answered all the same.
    await eventually(() => protectedOne.locks.inspect('own'));
    await own.release();
    const error = await rejection(protectedOne.locks.acquire('c', { waitMs: 0 }));
    expect(error.message).toMatch(FORGOTTEN);
    const [isOver, lease] = await next;
    expect(isOver).toBe(true);
    expect(lease.isHeld()).toBe(true);
    await (await after).release();
  });

  /** A server that restarts with what it has written to disk. */
  async function withData(args: string[], save: boolean) {
    const server = await startRedis({ args });
    const before = await start({ connection: at(server.port) });
    await before.locks.acquire('a', { leaseMs: 60_000 });
    const admin = connectAdmin(server.port);
    if (save) await admin.save();
    admin.disconnect();
    await server.kill();
    await server.restart({ keepData: true });
    return server;
  }

  it('a restart with all data (AOF) holds nobody up', async () => {
    await using server = await withData(['--appendonly', 'yes', '--appendfsync', 'always'], false);
    const { locks } = await start({ ...LONG, connection: at(server.port) });
    expect(await rejection(locks.acquire('a', { waitMs: 0 }))).toBeInstanceOf(LockBusyError);
    await (await locks.acquire('b', { waitMs: 0 })).release();
    const unknown = await start({ ...LONG, connection: at(server.port), keyPrefix: 'other' });
    expect((await rejection(unknown.locks.acquire('a', { waitMs: 0 }))).message).toMatch(FORGOTTEN);
  });

  it('but one with a snapshot does, which may be an old one', async () => {
    await using server = await withData([], true);
    const { locks } = await start({ ...LONG, connection: at(server.port) });
    expect((await rejection(locks.acquire('b', { waitMs: 0 }))).message).toMatch(FORGOTTEN);
  });
});

/** The default user, whatever user others lock as. */
function at(port: number) {
  return { host: '127.0.0.1', port, password: undefined };
}

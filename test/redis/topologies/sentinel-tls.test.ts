import type { Redis, RedisOptions } from 'ioredis';
import { LockUnavailableError } from '../../../lib/kernel/api/errors.js';
import { findFreePort } from '../../../scripts/redis/free-port.mjs';
import { type RedisServer, startRedisServer } from '../../../scripts/redis-server.mjs';
import { connectAdmin } from '../../support/redis/admin-client.js';
import { type Certificate, CertificateAuthority } from './certificates.js';
import { describeOnMachine } from '../../support/redis/describe-on-machine.js';
import { eventually, rejection } from '../../support/expect/eventually.js';
import { type LockInstance, untilQueued, useInstances } from '../../support/redis/lock-instances.js';
import { tlsArgs } from './tls-args.js';

const NAME = 'locks';
/** Two thirds of it are longer than a fail-over on a busy machine. */
const LEASE_MS = 9_000;

/** Redis that speaks TLS with clients, with one another, and with the sentinel. */
interface Secured {
  readonly server: RedisServer;
  readonly port: number;
}

describeOnMachine('sentinels, and what they watch over, behind TLS', () => {
  let authority: CertificateAuthority;
  let certificate: Certificate;
  let primary: Secured;
  let replica: Secured;
  let sentinel: Secured;
  let observer: Redis;

  const startSecured = async (args: string[], config?: string): Promise<Secured> => {
    const port = await findFreePort();
    const secured = [...args, ...tlsArgs({ authority, certificate, port }), '--tls-replication', 'yes'];
    return { server: await startRedisServer({ args: secured, ...(config && { config }) }), port };
  };

  beforeAll(async () => {
    authority = await CertificateAuthority.create();
    certificate = await authority.sign('server', 'IP:127.0.0.1');
    const atOnce = ['--repl-diskless-sync-delay', '0'];
    primary = await startSecured(atOnce);
    replica = await startSecured([...atOnce, '--replicaof', '127.0.0.1', `${primary.port}`]);
    const monitor = `sentinel monitor ${NAME} 127.0.0.1 ${primary.port} 1\nsentinel down-after-milliseconds ${NAME} 60000\n`;
    sentinel = await startSecured(['--sentinel'], monitor);
    observer = connectAdmin(sentinel.server.port, { enableReadyCheck: false });
    await observer.call('SENTINEL', 'DEBUG', 'info-period', '200').catch(() => undefined); // since Redis 7
    await eventually(async () => {
      const [found] = (await observer.call('SENTINEL', 'REPLICAS', NAME)) as string[][];
      expect(found).toEqual(expect.arrayContaining([`${replica.port}`, 'slave', 'ok']));
    }, 30_000);
  }, 60_000);
  afterAll(async () => {
    observer?.disconnect();
    await Promise.all([sentinel, replica, primary].map((secured) => secured?.server.stop()));
    authority?.[Symbol.dispose]();
  });

  const connection = (): RedisOptions => ({
    sentinels: [{ host: '127.0.0.1', port: sentinel.port }],
    name: NAME,
    sentinelTLS: { ca: authority.cert },
    enableTLSForSentinelMode: true,
    tls: { ca: authority.cert },
  });
  const start = useInstances(connection);
  const patient = (): Promise<LockInstance> =>
    start({ defaults: { leaseMs: LEASE_MS, waitMs: 60_000, attemptTimeoutMs: 20_000 } });

  /** A replica that lags for a moment becomes the primary without the data that it has not read yet. */
  const untilCopied = async (): Promise<void> => {
    const admin = connectAdmin(primary.server.port);
    await admin.set('last', 'write');
    expect(await admin.wait(1, 30_000)).toBe(1);
    admin.disconnect();
  };

  it('a lock is taken, handed over by a message, kept while another server becomes the primary, and released', async () => {
    const [one, two] = [await patient(), await patient()];
    const first = await one.locks.acquire('x');
    const waiting = two.locks.acquire('x');
    await untilQueued(one, 'x', two);
    await first.release();
    const lease = await waiting;
    await untilCopied();
    await observer.call('SENTINEL', 'FAILOVER', NAME);
    await eventually(async () => {
      const address = await observer.call('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', NAME);
      expect(address).toEqual(['127.0.0.1', `${replica.port}`]);
    }, 30_000);
    const renewedAt = lease.remainingMs();
    await eventually(() => expect(lease.remainingMs()).toBeGreaterThan(renewedAt));
    expect(await eventually(() => one.locks.tryAcquire('x'))).toBeNull();
    expect([await lease.verify(), lease.signal.aborted]).toEqual([true, false]);
    await lease.release();
  });

  it.each<[string, RedisOptions, RegExp]>([
    ['the sentinels speak TLS, and nobody said so', { sentinelTLS: undefined }, /sentinel.*sentinelTLS/],
    ['their authority is not known', { sentinelTLS: {} }, /sentinel.*certificate.*sentinelTLS: \{ ca \}/],
    ['Redis speaks TLS, and nobody said so', { enableTLSForSentinelMode: false }, /enableTLSForSentinelMode/],
  ])('%s: the error says what to do', async (_what, changed, message) => {
    const { locks } = await start({ connection: { ...connection(), ...changed } as RedisOptions, patienceMs: 0 });
    const error = await rejection<LockUnavailableError>(locks.acquire('x', { waitMs: 2_000 }));
    expect(error).toBeInstanceOf(LockUnavailableError);
    expect(error.message).toMatch(message);
  });
});

import { once } from 'node:events';
import { type AddressInfo, connect, createServer } from 'node:net';
import { inspect } from 'node:util';
import { join } from 'node:path';
import type { Redis } from 'ioredis';
import { LockUnavailableError } from '../../../lib/kernel/api/errors.js';
import type { RedisConnectionOption } from '../../../lib/redis/connection/connection-options.js';
import { findFreePort } from '../../../scripts/redis/free-port.mjs';
import { findOnPath } from '../../../scripts/setup/programs.mjs';
import { type Certificate, CertificateAuthority } from './certificates.js';
import { eventually, rejection } from '../../support/expect/eventually.js';
import { type LockInstance, untilQueued, useAdmin, useInstances } from '../../support/redis/lock-instances.js';
import { useProcesses } from '../../support/process/lock-process.js';
import { documentedUserArgs } from '../../support/redis/lock-user.js';
import { describeOnMachine } from '../../support/redis/describe-on-machine.js';
import { type RedisServer, startRedis, useRedis } from '../../support/redis/redis-server.js';
import { ReplicatedRedis } from '../../support/redis/replicated-redis.js';
import { TcpProxy } from '../../support/network/tcp-proxy.js';
import { tlsArgs } from './tls-args.js';

/** Nothing in it may stand in a URL as it is. */
const USER = 'app@eu/1';
const PASSWORD = 'p:w@5ecret/%#?&ü';
const AS_USER = `${encodeURIComponent(USER)}:${encodeURIComponent(PASSWORD)}@`;

const LONG_MS = 60_000;

/** The lock goes from one to the other by a message, long before the other one would ask for it. */
async function expectHandOver(from: LockInstance, to: LockInstance): Promise<void> {
  const lease = await from.locks.acquire('x', { leaseMs: LONG_MS });
  const waiting = to.locks.acquire('x', { leaseMs: LONG_MS });
  await untilQueued(from, 'x', to);
  const granted = new Promise<void>((resolve) => {
    to.store.listen({ granted: () => resolve(), reconnected: () => {} });
  });
  await lease.release();
  await granted;
  const next = await waiting;
  expect(next.fencingToken).toBeGreaterThan(lease.fencingToken);
  expect(await next.verify()).toBe(true);
  await next.release();
}

/** The error of an acquisition that cannot connect. */
async function refusal(start: Start, connection: RedisConnectionOption): Promise<LockUnavailableError> {
  const { locks } = await start({ connection, patienceMs: 0 });
  const error = await rejection<LockUnavailableError>(locks.acquire('x', { waitMs: 500 }));
  expect(error).toBeInstanceOf(LockUnavailableError);
  for (const text of [error.message, error.stack, inspect(error, { depth: 9 }), JSON.stringify(error)]) {
    for (const secret of [PASSWORD, encodeURIComponent(PASSWORD), 'PRIVATE KEY']) expect(text).not.toContain(secret);
  }
  return error;
}

type Start = ReturnType<typeof useInstances>;

describeOnMachine('Redis behind TLS', () => {
  let authority: CertificateAuthority;
  let server: Certificate;
  let client: Certificate;
  let redis: RedisServer;
  let port: number;

  const startWithTls = async (authClients: 'yes' | 'no'): Promise<[RedisServer, port: number]> => {
    const tlsPort = await findFreePort();
    return [
      await startRedis({ args: tlsArgs({ authority, certificate: server, port: tlsPort, authClients }) }),
      tlsPort,
    ];
  };

  beforeAll(async () => {
    authority = await CertificateAuthority.create();
    server = await authority.sign('server', 'IP:127.0.0.1');
    client = await authority.sign('client', 'DNS:client');
    [redis, port] = await startWithTls('no');
  }, 60_000);
  afterAll(async () => {
    await redis?.stop();
    authority?.[Symbol.dispose]();
  });
  const start = useInstances(() => ({ host: '127.0.0.1', port, tls: { ca: authority.cert } }));
  const startProcess = useProcesses(() => `rediss://127.0.0.1:${port}`);

  it('with the certificate of its authority in the options, locks are taken, handed over by a message, and released', async () => {
    await expectHandOver(await start(), await start());
  });

  it.each(['rediss', 'valkeys'])(
    '%s:// in a process that knows the authority from NODE_EXTRA_CA_CERTS',
    async (scheme) => {
      process.env.NODE_EXTRA_CA_CERTS = authority.file;
      try {
        const child = await startProcess(10_000, `${scheme}://127.0.0.1:${port}`);
        expect(await child.ask('acquire', scheme)).toMatchObject({ isHeld: true });
        const { locks } = await start();
        expect(await locks.tryAcquire(scheme)).toBeNull();
        await child.ask('release', scheme);
        await (await locks.acquire(scheme)).release();
      } finally {
        delete process.env.NODE_EXTRA_CA_CERTS;
      }
    },
  );

  it.each<[string, () => RedisConnectionOption, RegExp]>([
    ['an authority that nobody knows', () => `rediss://${AS_USER}127.0.0.1:${port}`, /certificate.*tls: \{ ca \}/],
    [
      'a certificate for another name',
      () => ({ host: '127.0.0.1', port, password: PASSWORD, tls: { ca: authority.cert, servername: 'other.test' } }),
      /other\.test.*tls: \{ servername \}/,
    ],
    [
      'no TLS on a port that speaks it',
      () => `redis://${AS_USER}127.0.0.1:${port}`,
      /closes the connection.*use rediss:/,
    ],
  ])('%s: the error says so, and what to do', async (_what, connection, message) => {
    expect((await refusal(start, connection())).message).toMatch(message);
  });

  it('that wants to know the client takes the one with a certificate, and tells the other one to give one', async () => {
    const [strict, strictPort] = await startWithTls('yes');
    await using _ = strict;
    const connection = { host: '127.0.0.1', port: strictPort, tls: { ca: authority.cert } };
    const { cert, key } = client;
    const known = { ...connection, tls: { ...connection.tls, cert, key } };
    const [a, b] = [await start({ connection: known }), await start({ connection: known })];
    await expectHandOver(a, b);
    expect((await refusal(start, connection)).message).toMatch(/set tls: \{ cert, key \}/);
    await Promise.all([a, b].map(({ locks }) => locks.shutdown(0)));
  });
});

describe('who connects, and to what', () => {
  const redis = useRedis();
  const admin = useAdmin(() => redis().url);
  const start = useInstances(() => redis().url);
  const connectAs = (url: string, path = '') => redis().url.replace('redis://', url) + path;

  it.each<[string, () => RedisConnectionOption]>([
    ['a URL, percent-encoded', () => connectAs(`redis://${AS_USER}`)],
    ['a URL for Valkey', () => connectAs(`valkey://${AS_USER}`)],
    ['options', () => ({ port: redis().port, username: USER, password: PASSWORD })],
  ])('user name and password with characters of all kinds, in %s', async (_where, connection) => {
    await (admin() as Redis).call('ACL', 'SETUSER', USER, 'reset', 'on', `>${PASSWORD}`, '~*', '&*', '+@all');
    const instance = await start({ connection: connection() });
    const clients = String(await admin().client('LIST')).split('\n');
    const own = clients.filter((each) => each.includes(`:${instance.instanceId} `));
    expect(own.map((each) => / user=(\S+)/.exec(each)?.[1])).toEqual([USER, USER]);
    await (await instance.locks.acquire('x')).release();
  });

  it('connections that break in the middle of their handshake are retried', async () => {
    let broken = 0;
    const gateway = createServer((socket) => {
      if (++broken <= 4) return void socket.once('data', () => socket.resetAndDestroy());
      const onward = connect(redis().port, '127.0.0.1');
      for (const end of [socket, onward]) end.on('error', () => {});
      socket.pipe(onward).pipe(socket);
    }).listen(0, '127.0.0.1');
    await once(gateway, 'listening');
    const { port } = gateway.address() as AddressInfo;
    const { locks } = await start({ connection: { port, host: '127.0.0.1' }, defaults: { leaseMs: 600 } });
    try {
      await (await locks.acquire('x')).release();
      expect(broken).toBeGreaterThan(4);
    } finally {
      await locks.shutdown(0);
      gateway.close();
    }
  });

  it('locks of different databases have nothing to do with one another, and no message goes astray', async () => {
    // Channels don't belong to a database, so only the ids separate the instances.
    const [one, two] = await Promise.all(
      [1, 2].map((db) =>
        Promise.all([
          start({ connection: connectAs('redis://', `/${db}`) }),
          start({ connection: { port: redis().port, db } }),
        ]),
      ),
    );
    const leases = await Promise.all([one![0].locks.acquire('x'), two![0].locks.acquire('x')]);
    for (const lease of leases) await lease.release();
    await Promise.all([expectHandOver(...one!), expectHandOver(...two!)]);
    const keys: string[][] = [];
    for (const db of [2, 1, 0]) {
      await admin().select(db);
      keys.unshift(await admin().keys('*'));
    }
    expect(keys).toEqual([[], ['lock:fence'], ['lock:fence']]);
  });
});

describeOnMachine('Redis on a socket of the machine', () => {
  const redis = useRedis({ args: ['--unixsocket', 'redis.sock'] });
  const path = () => join(redis().folder, 'data', 'redis.sock');
  const start = useInstances(path);

  it('is reached by its path, or by options', async () => {
    await expectHandOver(await start(), await start({ connection: { path: path() } }));
  });
});

describeOnMachine('an endpoint that a managed service moves to the replica', () => {
  const startPair = async () => {
    const [old, next] = await Promise.all([0, 1].map(() => ReplicatedRedis.start(documentedUserArgs())));
    await next!.follow(old!);
    await next!.untilCaughtUp(old!);
    return [old!, next!] as const;
  };
  let url: string;
  const start = useInstances(() => url);

  it('READONLY is followed: no release or acquisition fails, and waiters are notified', async () => {
    const [old, next] = await startPair();
    await using _old = old;
    await using _next = next;
    let primary = old;
    await using proxy = await TcpProxy.start(() => primary.port);
    ({ url } = proxy);
    const defaults = { leaseMs: LONG_MS, waitMs: LONG_MS, attemptTimeoutMs: 20_000 };
    const [a, b, c] = await Promise.all([start({ defaults }), start({ defaults }), start({ defaults })]);
    const lease = await a!.locks.acquire('x');
    const waiting = b!.locks.acquire('x');
    await untilQueued(a!, 'x', b!);
    await next.untilCaughtUp(old);
    await next.admin.replicaof('NO', 'ONE');
    await old.follow(next);
    primary = next; // whoever is connected stays so: to what is a replica now
    const other = await c!.locks.acquire('y');
    expect(await next.admin.exists('lock:{y}')).toBe(1);
    // Waiters soon ask again, and listen on the new primary from then on.
    await eventually(async () =>
      expect(await next.admin.pubsub('NUMSUB', b!.store.keys.inbox(b!.store.clientId))).toMatchObject({ 1: 1 }),
    );
    await untilQueued(c!, 'x', b!);
    await lease.release();
    const granted = await waiting;
    expect(granted.fencingToken).toBeGreaterThan(lease.fencingToken);
    for (const held of [granted, other]) await held.release();
    expect([a!, b!, c!].flatMap(({ events }) => events.filter(({ type }) => /lost|Failed/.test(type)))).toEqual([]);
    await Promise.all([a!, b!, c!].map(({ locks }) => locks.shutdown(0)));
  });
});

const valkey = process.env.VALKEY_SERVER_BIN ?? (await findOnPath('valkey-server', process.env));

// Debian has none before 13. The whole suite runs on it with REDIS_SERVER_BIN=$(which valkey-server), or in its image.
(valkey ? describe : describe.skip)('Valkey', () => {
  const redis = useRedis({ source: { kind: 'binary', path: valkey ?? '' } });
  const start = useInstances(() => redis().url.replace('redis:', 'valkey:'));

  it('keeps locks, and hands them over', async () => {
    await expectHandOver(await start(), await start());
  });
});

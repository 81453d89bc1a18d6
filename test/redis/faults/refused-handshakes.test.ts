import type { Redis, RedisOptions } from 'ioredis';
import { type RedisLockModuleOptions, resolveModuleOptions } from '../../../lib/nest/module/module-options.js';
import type { RedisConnectionOption } from '../../../lib/redis/connection/connection-options.js';
import { createLockService } from '../../../lib/nest/module/create-lock-service.js';
import type { RedisLockService } from '../../../lib/nest/redis-lock.service.js';
import { eventually } from '../../support/expect/eventually.js';
import { type Refusal, TcpProxy } from '../../support/network/tcp-proxy.js';
import { connectAdmin } from '../../support/redis/admin-client.js';
import { describeOnMachine } from '../../support/redis/describe-on-machine.js';
import { RedisCluster } from '../../support/redis/redis-cluster.js';
import { type RedisServer, startRedis } from '../../support/redis/redis-server.js';
import { SentinelSet } from '../../support/redis/sentinel-set.js';
import { ReplicaPair } from '../topologies/replica-pair.js';

/** Not 0: a command in database 0 is one on a connection whose SELECT was refused. */
const DB = 3;
const GRANTED_WITHIN_MS = 10_000;
const ERRORS = [
  'BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.',
  'NOPERM this user has no permissions to run this command',
  'MISCONF Redis is configured to save RDB snapshots, but it is currently unable to persist to disk.',
  'LOADING Redis is loading the dataset in memory',
];
/** All of them are tried on one Redis; elsewhere two, which are others for the next command. */
function errorsFor({ name, handshake }: Kind, command: string): string[] {
  if (name === 'one Redis' || process.env['TEST_SPEED'] === 'long') return ERRORS;
  return ERRORS.filter((_, index) => index % 2 === handshake.indexOf(command) % 2);
}
const LEASE_MS = 20_000;

const LOCKER = ['locker', 'on', '>secret', '~*', '&*', '+@all'];

/** The module options with the server. */
type Where =
  | { readonly connection: RedisConnectionOption }
  | { readonly quorum: { readonly connections: readonly RedisConnectionOption[] } };

/** Servers, and instances that connect to each of them through a network of their own. */
interface Servers extends AsyncDisposable {
  /** The ports that an instance connects to. */
  readonly ports: readonly number[];
  readonly admins: () => readonly Redis[];
  /** Returns an application's options for the servers at these addresses. */
  readonly where: (proxies: readonly TcpProxy[]) => Where;
  readonly db: number;
}

interface Kind {
  readonly name: string;
  /** The commands that its connections send before use. */
  readonly handshake: readonly string[];
  /** The number of connections of one instance that send HELLO, AUTH, SELECT or CLIENT. */
  readonly connections: number;
  readonly options?: Partial<RedisLockModuleOptions>;
  start(): Promise<Servers>;
}

/** Servers that know nothing of each other, or one. */
async function serve(servers: RedisServer[], where: Servers['where']): Promise<Servers> {
  const admins = servers.map(({ port }) => connectAdmin(port));
  return {
    ports: servers.map(({ port }) => port),
    admins: () => admins,
    where,
    db: DB,
    async [Symbol.asyncDispose]() {
      for (const admin of admins) admin.disconnect();
      await Promise.all(servers.map((server) => server.stop()));
    },
  };
}

const onDb = (proxy: TcpProxy | undefined): RedisOptions => ({ host: '127.0.0.1', port: proxy!.port, db: DB });
const natMapOf = (ports: readonly number[], proxies: readonly TcpProxy[]) =>
  Object.fromEntries(ports.map((port, i) => [`127.0.0.1:${port}`, { host: '127.0.0.1', port: proxies[i]!.port }]));

const KINDS: Kind[] = [
  {
    name: 'one Redis',
    connections: 2,
    handshake: ['hello', 'select', 'client setname', 'client setinfo', 'subscribe'],
    start: async () => serve([await startRedis()], ([proxy]) => ({ connection: onDb(proxy) })),
  },
  {
    name: 'one Redis with a password, in the old protocol',
    connections: 2,
    handshake: ['auth', 'select', 'client setname', 'subscribe'],
    start: async () =>
      serve([await startRedis({ args: ['--user', ...LOCKER] })], ([proxy]) => ({
        connection: { ...onDb(proxy), username: 'locker', password: 'secret', protocol: 2 } as RedisOptions,
      })),
  },
  {
    name: 'one Redis with a password that does not know HELLO',
    connections: 2,
    handshake: ['auth', 'select', 'client setname', 'subscribe'],
    start: async () =>
      serve([await startRedis({ args: ['--rename-command', 'HELLO', '', '--user', ...LOCKER] })], ([proxy]) => ({
        connection: { ...onDb(proxy), username: 'locker', password: 'secret' },
      })),
  },
  {
    name: 'a primary and its replica, with durability',
    connections: 3,
    handshake: ['hello', 'select', 'client setname', 'wait', 'subscribe'],
    options: { durability: { replicas: 1, timeoutMs: 500 } },
    async start() {
      const pair = await ReplicaPair.start();
      return {
        ports: [pair.connection.port!],
        admins: () => [pair.admin],
        where: ([proxy]) => ({ connection: onDb(proxy) }),
        db: DB,
        [Symbol.asyncDispose]: () => pair[Symbol.asyncDispose](),
      };
    },
  },
  {
    name: 'a primary that sentinels name',
    connections: 2,
    handshake: ['hello', 'select', 'client setname', 'sentinel', 'subscribe'],
    async start() {
      const set = await SentinelSet.start();
      const { sentinels, name } = set.connection;
      const ports = [set.admin().options.port!, (sentinels![0] as { port: number }).port];
      return {
        ports,
        admins: () => [set.admin()],
        where: (proxies) => ({
          connection: {
            sentinels: [{ host: '127.0.0.1', port: proxies[1]!.port }],
            name,
            natMap: natMapOf(ports, proxies),
            db: DB,
          } as RedisOptions,
        }),
        db: DB,
        [Symbol.asyncDispose]: () => set[Symbol.asyncDispose](),
      };
    },
  },
  {
    name: 'the nodes of a cluster',
    connections: 3,
    handshake: ['hello', 'client setname', 'cluster', 'subscribe'],
    async start() {
      const cluster = await RedisCluster.start({ primaries: 2 });
      const ports = cluster.nodes.map(({ server }) => server.port);
      return {
        ports,
        admins: () => cluster.nodes.map(({ admin }) => admin),
        where: (proxies) => ({
          connection: { cluster: proxies.map(({ url }) => url), natMap: natMapOf(ports, proxies) },
        }),
        db: 0,
        [Symbol.asyncDispose]: () => cluster[Symbol.asyncDispose](),
      };
    },
  },
  {
    name: 'the nodes of a quorum',
    connections: 6,
    handshake: ['hello', 'select', 'client setname', 'subscribe'],
    options: { restartQuarantineMs: 0 },
    start: async () =>
      serve(await Promise.all([startRedis(), startRedis(), startRedis()]), (proxies) => ({
        quorum: { connections: proxies.map(onDb) },
      })),
  },
];

describeOnMachine.each(KINDS)('Redis refuses a command of the handshake with $name', (kind) => {
  let servers: Servers;
  let names = 0;
  const running: (() => Promise<unknown>)[] = [];
  beforeAll(async () => void (servers = await kind.start()), 60_000);
  afterEach(async () => void (await Promise.all(running.splice(0).map((stop) => stop()))));
  afterAll(() => servers?.[Symbol.asyncDispose]());

  const instance = async (keyPrefix: string) => {
    const proxies = await Promise.all(servers.ports.map((port) => TcpProxy.start(port)));
    const options = { keyPrefix, shutdown: { drainMs: 0 }, leaseMs: LEASE_MS, ...kind.options };
    const where = servers.where(proxies);
    const service = createLockService(resolveModuleOptions({ ...options, ...where } as RedisLockModuleOptions));
    service.catch(() => {});
    running.push(async () => {
      await (await service).beforeApplicationShutdown();
      await Promise.all(proxies.map((proxy) => proxy[Symbol.asyncDispose]()));
    });
    return { service, proxies };
  };
  const refuse = (proxies: readonly TcpProxy[], command: string, error: string) => {
    const refusals = proxies.map((proxy) => proxy.refuse(command, error));
    const count = (): number => refusals.reduce((sum, refusal: Refusal) => sum + refusal.count, 0);
    return { count, allow: () => refusals.forEach((refusal) => refusal.allow()) };
  };
  const expectGrant = async (locks: RedisLockService): Promise<void> => {
    const from = performance.now();
    await (await eventually(() => locks.acquire('free', { waitMs: 1_000 }), GRANTED_WITHIN_MS)).release();
    expect(performance.now() - from).toBeLessThan(GRANTED_WITHIN_MS);
  };
  /** Another process holds `theirs` all the time, with a healthy connection. */
  const expectRefused = (locks: RedisLockService): Promise<void> =>
    locks.tryAcquire('theirs').then(
      (lease) => expect(lease).toBeNull(),
      (error: unknown) => expect(error).toMatchObject({ code: 'LOCK_UNAVAILABLE' }),
    );
  const expectNothingElsewhere = async (): Promise<void> => {
    for (const admin of servers.admins()) {
      const used = [...(await admin.info('keyspace')).matchAll(/^db(\d+):/gm)].map(([, db]) => Number(db));
      expect(used.filter((db) => db !== servers.db)).toEqual([]);
    }
  };

  /** Each connection was refused once. */
  const countOf = (command: string): number => (/^(hello|auth|select|client)/.test(command) ? kind.connections : 1);

  it.each(kind.handshake)(
    '%s: it has its locks again, loses no lease, and writes nothing elsewhere',
    async (command) => {
      await Promise.all(
        errorsFor(kind, command).map(async (error) => {
          const keyPrefix = `handshake-${++names}`;
          const other = await instance(keyPrefix);
          const theirs = await (await other.service).acquire('theirs');
          const { service, proxies } = await instance(keyPrefix);
          const atStart = refuse(proxies, command, error);
          await eventually(() => expect(atStart.count()).toBeGreaterThanOrEqual(countOf(command)));
          atStart.allow();
          const locks = await service;
          await expectGrant(locks);
          await expectRefused(locks);
          const held = await locks.acquire('held');
          const later = refuse(proxies, command, error);
          for (const proxy of proxies) proxy.cut();
          await eventually(async () => {
            await locks.tryAcquire('meanwhile').then(
              (lease) => lease?.release(),
              () => {},
            );
            await expectRefused(locks);
            expect(later.count()).toBeGreaterThanOrEqual(countOf(command));
          });
          later.allow();
          await expectGrant(locks);
          expect(await eventually(() => held.verify(), GRANTED_WITHIN_MS)).toBe(true);
          await expectRefused(locks);
          expect(await theirs.verify()).toBe(true);
          await Promise.all([held.release(), theirs.release()]);
        }),
      );
      await expectNothingElsewhere();
    },
  );
});

import { describeOnMachine } from '../../../support/redis/describe-on-machine.js';
import { useInstances } from '../../../support/redis/lock-instances.js';
import { SentinelSet } from '../../../support/redis/sentinel-set.js';
import { useRedisCluster } from '../../../support/redis/redis-cluster.js';
import { startRedisServer, type RedisServer } from '../../../../scripts/redis-server.mjs';
import { findFreePort } from '../../../../scripts/redis/free-port.mjs';
import { CertificateAuthority } from '../../../redis/topologies/certificates.js';
import { tlsArgs } from '../../../redis/topologies/tls-args.js';
import type { RedisConnectionOption } from '../../../../lib/redis/connection/connection-options.js';
import { runHere } from '../run-cli.js';

/** On a busy machine, the connections to all nodes take longer than the 5 s that suffice elsewhere. */
const PATIENT = ['--timeout', '30s'];

const run = (connection: RedisConnectionOption, ...argv: string[]) => {
  const patience = argv.includes('--timeout') ? [] : PATIENT;
  return runHere([...argv, ...patience, '--config', 'locks.mjs'], {
    load: () => Promise.resolve({ default: connection }),
  });
};

describeOnMachine('on a cluster', () => {
  const cluster = useRedisCluster();
  const connection = () => cluster().connection;
  const start = useInstances(connection);

  it('the commands look at every node, and find the prefix', async () => {
    const { locks, instanceId } = await start({ keyPrefix: 'shop' });
    const names = ['a', 'b', 'c', 'd', 'e', 'f'];
    for (const name of names) await locks.acquire(name);
    const { code, stdout, stderr } = await run(connection(), 'ls');
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(
      stdout
        .trimEnd()
        .split('\n')
        .map((line) => line.split('\t').slice(0, 3)),
    ).toEqual(names.map((name) => [name, 'exclusive', instanceId]));
    const { stdout: status } = await run(connection(), 'status');
    expect(status).toMatch(/^redis\tcluster at 127\.0\.0\.1:\d+(, 127\.0\.0\.1:\d+)*, prefix shop$/m);
    expect(await run(connection(), 'why', 'c')).toMatchObject({
      code: 0,
      stdout: expect.stringContaining(`"c" has been held by ${instanceId}`),
    });
  });
});

describeOnMachine('behind sentinels', () => {
  let set: SentinelSet;
  beforeAll(async () => {
    set = await SentinelSet.start();
  });
  afterAll(() => set?.[Symbol.asyncDispose]());
  const start = useInstances(() => set.connection);

  it('the commands ask the primary', async () => {
    const { locks, instanceId } = await start();
    await locks.acquire('a');
    const { code, stdout } = await run(set.connection, 'ls');
    expect({ code, row: stdout.split('\t').slice(0, 3) }).toEqual({ code: 0, row: ['a', 'exclusive', instanceId] });
  });
});

describeOnMachine('behind TLS', () => {
  let authority: CertificateAuthority;
  let server: RedisServer;
  let port: number;
  beforeAll(async () => {
    authority = await CertificateAuthority.create();
    port = await findFreePort();
    const certificate = await authority.sign('server', 'IP:127.0.0.1');
    server = await startRedisServer({ args: tlsArgs({ authority, certificate, port }) });
  });
  afterAll(async () => {
    await server?.stop();
    authority?.[Symbol.dispose]();
  });
  const start = useInstances(() => server.url);

  it('the commands connect by --config, and report if they cannot', async () => {
    const { locks } = await start();
    await locks.acquire('a');
    const { code, stdout } = await run({ host: '127.0.0.1', port, tls: { ca: authority.cert } }, 'ls');
    expect({ code, stdout }).toEqual({ code: 0, stdout: expect.stringMatching(/^a\texclusive\t/) });
    const plain = await run({ host: '127.0.0.1', port }, 'ls', '--timeout', '1s');
    expect(plain).toMatchObject({ code: 3, stderr: expect.stringContaining('TLS') });
  });
});

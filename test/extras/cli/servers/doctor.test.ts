import { type AddressInfo, connect, createServer } from 'node:net';
import type { Redis } from 'ioredis';
import type { Check } from '../../../../lib/extras/cli/doctor/check.js';
import { eventually } from '../../../support/expect/eventually.js';
import { documentedUser } from '../../../support/redis/lock-user.js';
import { RedisCluster } from '../../../support/redis/redis-cluster.js';
import { ReplicatedRedis } from '../../../support/redis/replicated-redis.js';
import { connectAdmin } from '../../../support/redis/admin-client.js';
import { useRedis } from '../../../support/redis/redis-server.js';
import { runHere } from '../run-cli.js';

const redis = useRedis();
let admin: Redis;

beforeAll(() => {
  admin = connectAdmin(redis().port);
});
afterAll(() => admin.disconnect());
afterEach(async () => {
  await admin.flushall();
  await admin.config('SET', 'maxmemory-policy', 'noeviction');
  await admin.config('SET', 'maxmemory', '0');
});

/** The findings of the doctor, by check. The last one of a check counts. */
async function examine(
  url: string,
  options: readonly string[] = [],
): Promise<{ code: number; of: ReadonlyMap<string, Check> }> {
  const { code, stdout } = await runHere(['doctor', '--json', ...options], { env: { REDIS_URL: url } });
  const { checks } = JSON.parse(stdout) as { checks: Check[] };
  return { code, of: new Map(checks.map((each) => [each.check, each])) };
}

const urlOf = (user: string, password: string): string => redis().url.replace('://', `://${user}:${password}@`);

describe('doctor', () => {
  it('finds nothing to change at a Redis that is fit for locks', async () => {
    const { code, of } = await examine(redis().url);
    expect(code).toBe(0);
    for (const check of ['locks', 'version', 'eviction', 'clock', 'round trip', 'rights', 'messages', 'prefix']) {
      expect(of.get(check)).toMatchObject({ check, status: 'ok' });
    }
    expect(of.get('rights')!.message).toContain('default');
  });

  it('prints what to do below of what it has found', async () => {
    await admin.config('SET', 'maxmemory', '500mb');
    await admin.config('SET', 'maxmemory-policy', 'allkeys-lru');
    const { code, stdout } = await runHere(['doctor'], { env: { REDIS_URL: redis().url }, isTerminal: true });
    expect(code).toBe(1);
    expect(stdout).toMatch(
      /WARNING +eviction +maxmemory-policy is allkeys-lru.*\n +→ CONFIG SET maxmemory-policy noevic/,
    );
  });

  it('warns of a Redis that evicts', async () => {
    await admin.config('SET', 'maxmemory-policy', 'volatile-ttl');
    const unlimited = await examine(redis().url);
    expect(unlimited.of.get('eviction')).toMatchObject({ status: 'note' });
    expect(unlimited.code).toBe(0);
    await admin.config('SET', 'maxmemory', '500mb');
    const limited = await examine(redis().url);
    expect(limited.of.get('eviction')).toMatchObject({ status: 'warning' });
    expect(limited.code).toBe(1);
  });

  it('warns of a Redis that is nearly full', async () => {
    const [, used] = /used_memory:(\d+)/.exec(await admin.info('memory'))!;
    await admin.config('SET', 'maxmemory', String(Math.round(Number(used) * 1.05)));
    const { of } = await examine(redis().url);
    expect(of.get('memory')).toMatchObject({ status: 'warning' });
  });

  it('names the address if Redis is unreachable', async () => {
    const { code, of } = await examine('redis://127.0.0.1:1', ['--timeout', '200ms']);
    expect(code).toBe(3);
    expect(of.get('connection')!.message).toContain('ECONNREFUSED');
  });

  it('shows no password', async () => {
    const { code, of } = await examine(urlOf('nobody', 'geheim'), ['--timeout', '300ms']);
    expect(code).toBe(3);
    expect(JSON.stringify([...of])).not.toContain('geheim');
    expect(of.get('connection')!.message).toContain('WRONGPASS');
  });

  it('notes keys of another application, and the instances on the prefix', async () => {
    await admin.mset('lock:theirs:1', '', 'lock:{ours}', '', 'lock:fence', '1');
    const listener = admin.duplicate();
    await listener.subscribe('lock:inbox:api-3:4711/abc');
    const { of } = await examine(redis().url, ['--prefix', 'lock']);
    listener.disconnect();
    expect(of.get('prefix')).toMatchObject({ status: 'note' });
    expect(of.get('prefix')!.message).toContain('"lock:theirs:1"');
    expect(of.get('instances')!.message).toBe('1 instance on the prefix: "api-3:4711".');
  });
});

describe('doctor of a user with few rights', () => {
  it('knows less as a user without INFO, and warns of nothing', async () => {
    const { name, password, rules } = documentedUser();
    await admin.acl('SETUSER', name, ...rules, '-info');
    const { code, of } = await examine(urlOf(name, password));
    expect(code).toBe(0);
    expect(of.get('version')).toMatchObject({ status: 'ok' });
    expect(of.get('rights')).toMatchObject({ status: 'ok' });
    expect(of.get('messages')).toMatchObject({ status: 'ok' });
    expect(of.get('eviction')).toMatchObject({ status: 'unknown' });
    expect(of.get('eviction')!.fix).toContain('+info');
  });

  it('prints commands that give all that is missing', async () => {
    await admin.acl(
      'SETUSER',
      'poor',
      'on',
      '>secret',
      'resetchannels',
      '+acl|whoami',
      '+subscribe',
      '+evalsha',
      '+eval',
    );
    const url = urlOf('poor', 'secret');
    const { stdout, code } = await runHere(['doctor', '--json'], { env: { REDIS_URL: url } });
    expect(code).toBe(3);
    const { checks } = JSON.parse(stdout) as { checks: Check[] };
    const commands = checks.filter(({ check }) => check === 'rights').map(({ fix }) => fix!);
    expect(commands).toHaveLength(2);
    // Redis only reports a missing right to keys after the command itself is allowed, so this may take several rounds.
    let last = commands;
    for (let round = 0; round < 4 && last.length > 0; round++) {
      for (const command of last) {
        const [acl, setuser, user, ...given] = command.split(' ');
        expect([acl, setuser, user]).toEqual(['ACL', 'SETUSER', 'poor']);
        await admin.acl('SETUSER', 'poor', ...given);
      }
      const again = await runHere(['doctor', '--json'], { env: { REDIS_URL: url } });
      const rights = (JSON.parse(again.stdout) as { checks: Check[] }).checks.filter((each) => each.check === 'rights');
      last = rights.flatMap(({ fix }) => (fix === undefined ? [] : [fix]));
    }
    expect(last).toEqual([]);
    await expect(examine(url)).resolves.toMatchObject({ code: 0 });
  });

  it('names the rights without which it knows less', async () => {
    const { rules } = documentedUser();
    const few = rules.filter((rule) => !/^\+(scan|pubsub\|channels)$/.test(rule));
    await admin.acl('SETUSER', 'few', ...few);
    const password = rules.find((rule) => rule.startsWith('>'))!.slice(1);
    const { of } = await examine(urlOf('few', password), ['--prefix', 'lock']);
    expect(of.get('prefix')).toMatchObject({ status: 'unknown', fix: expect.stringContaining('+scan') });
    expect(of.get('instances')).toMatchObject({ status: 'unknown', fix: expect.stringContaining('+pubsub|channels') });
  });

  it('warns if messages do not arrive', async () => {
    const { rules } = documentedUser();
    const withoutChannel = rules.filter((rule) => !rule.startsWith('&'));
    await admin.acl('SETUSER', 'deaf', ...withoutChannel);
    const { code, of } = await examine(urlOf('deaf', rules.find((rule) => rule.startsWith('>'))!.slice(1)));
    expect(code).toBe(1);
    expect(of.get('messages')).toMatchObject({ status: 'warning' });
    expect(of.get('messages')!.fix).toContain('&lock:*');
  });
});

describe('doctor behind a proxy', () => {
  /** Forwards, but for what Redis sends where the client has sent, or Redis sends, this text. */
  const proxyWithout = async (sent: { from: 'client' | 'server'; text: RegExp }) => {
    const proxy = createServer((client) => {
      const server = connect(redis().port, '127.0.0.1');
      let isSwallowed = false;
      client.on('data', (data: Buffer) => {
        if (sent.from === 'client') isSwallowed ||= sent.text.test(data.toString('latin1'));
        server.write(data);
      });
      server.on('data', (data: Buffer) => {
        if (sent.from === 'server' ? !sent.text.test(data.toString('latin1')) : !isSwallowed) client.write(data);
      });
      for (const [one, other] of [
        [client, server],
        [server, client],
      ] as const) {
        one.on('error', () => {});
        one.on('close', () => other.destroy());
      }
    });
    await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
    const { port } = proxy.address() as AddressInfo;
    return { url: `redis://127.0.0.1:${port}`, [Symbol.dispose]: () => void proxy.close() };
  };

  it('that swallows messages warns of it', async () => {
    using proxy = await proxyWithout({ from: 'server', text: /\$7\r\nmessage\r\n/ });
    const { code, of } = await examine(proxy.url, ['--prefix', 'lock']);
    expect(code).toBe(1);
    expect(of.get('messages')).toMatchObject({
      status: 'warning',
      message: expect.stringContaining('A message was published but did not arrive'),
    });
  });

  it('that swallows the answers to PUBLISH has the message heard, and looks at the rest', async () => {
    using proxy = await proxyWithout({ from: 'client', text: /\r\npublish\r\n/i });
    const { of } = await examine(proxy.url, ['--prefix', 'lock']);
    expect(of.get('messages')).toMatchObject({ status: 'ok' });
    expect(of.get('prefix')).toMatchObject({ status: 'ok' });
    expect(of.get('instances')).toMatchObject({ status: 'note' });
  });

  it('that swallows an answer is not taken for a missing right', async () => {
    using proxy = await proxyWithout({ from: 'client', text: /\r\npubsub\r\n\$8\r\nchannels\r\n\$\d+\r\nlock:inbox/i });
    const { of } = await examine(proxy.url, ['--prefix', 'lock', '--timeout', '1s']);
    expect(of.get('instances')).toMatchObject({ status: 'unknown', fix: expect.stringContaining('did not answer') });
  });
});

describe('doctor of several servers', () => {
  it('refuses a replica, and notes replicas', async () => {
    await using primary = await ReplicatedRedis.start([]);
    await using replica = await ReplicatedRedis.start([]);
    await replica.follow(primary);
    await eventually(async () => expect(await primary.admin.info('replication')).toContain('connected_slaves:1'));
    const atPrimary = await examine(`redis://127.0.0.1:${primary.port}`);
    expect(atPrimary.of.get('replicas')).toMatchObject({ status: 'note' });
    expect(atPrimary.of.get('replicas')!.message).toContain('1 replica, but this server saves nothing to disk');
    const atReplica = await examine(`redis://127.0.0.1:${replica.port}`);
    expect(atReplica.code).toBe(3);
    expect(atReplica.of.get('role')).toMatchObject({ status: 'failed' });
    expect(atReplica.of.has('locks')).toBe(false);
  });

  it('looks at each node of a cluster, and refuses one node as if it were all', async () => {
    await using cluster = await RedisCluster.start();
    const load = (): Promise<object> => Promise.resolve({ default: cluster.connection });
    // On a busy machine, the connections to all nodes take a while.
    const argv = ['doctor', '--json', '--config', 'any.mjs', '--prefix', 'lock', '--timeout', '30s'];
    const { stdout, code } = await runHere(argv, { load });
    const { checks, findings } = JSON.parse(stdout) as { checks: Check[]; findings: object[] };
    expect({ code, findings }).toEqual({ code: 0, findings: [] });
    expect(checks.filter(({ check }) => check === 'version').map(({ server }) => server)).toHaveLength(3);
    const node = await examine(`redis://${cluster.nodes[0]!.address}`, ['--prefix', 'lock']);
    expect(node.code).toBe(3);
    expect(node.of.get('cluster')!.fix).toContain('cluster: [...]');
  });
});

import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Redis } from 'ioredis';
import type { Check } from '../../../../lib/extras/cli/doctor/check.js';
import type { Tried } from '../../../../lib/extras/cli/try/try.js';
import { findImpossible } from '../../../support/history/outside-checker.js';
import { connectAdmin } from '../../../support/redis/admin-client.js';
import { CommandMonitor } from '../../../support/redis/command-monitor.js';
import { documentedUser } from '../../../support/redis/lock-user.js';
import { RedisCluster } from '../../../support/redis/redis-cluster.js';
import { useRedis } from '../../../support/redis/redis-server.js';
import { eventually } from '../../../support/expect/eventually.js';
import { runHere } from '../run-cli.js';
import { startCli } from '../run-process.js';

const redis = useRedis();
const folder = mkdtempSync(join(tmpdir(), 'nestjs-redis-lock-try-'));
const history = join(folder, 'tried.jsonl');
let admin: Redis;

beforeAll(() => {
  admin = connectAdmin(redis().port);
});
afterAll(() => {
  admin.disconnect();
  rmSync(folder, { recursive: true });
});
afterEach(() => admin.flushall());

/** On a busy machine, a server may answer late. */
const PATIENT = ['--timeout', '30s'];
const env = () => ({ REDIS_URL: redis().url });
const triedKeys = () => admin.keys('*:try-*');

function read(stdout: string): { try: Tried; checks: readonly Check[] } {
  return JSON.parse(stdout) as { try: Tried; checks: readonly Check[] };
}

describe('doctor --try', () => {
  it('breaks no promise as the documented user, at most 200 commands a second, and leaves nothing', async () => {
    const { name, password, rules } = documentedUser();
    await admin.acl('SETUSER', name, ...rules);
    await admin.set('lock:fence', 1);
    const url = redis().url.replace('://', `://${name}:${password}@`);
    const sentAt: number[] = [];
    const locksOfOthers = new Set<string>();
    await using monitor = await CommandMonitor.start(admin, (args, source) => {
      if (source !== 'lua') sentAt.push(performance.now());
      for (const key of args) if (/^lock:\{(?!probe\})/.test(key)) locksOfOthers.add(key);
    });
    const argv = ['doctor', '--try', '3s', '--yes', '--json', '--seed', '42', '--history', history, ...PATIENT];
    const { code, stdout, stderr } = await runHere(argv, { env: { REDIS_URL: url } });
    await monitor.seenAll();
    expect({ code, stderr, stdout }).toEqual({
      code: 0,
      stderr: '',
      stdout: expect.stringContaining('"violations":[]'),
    });
    const { try: tried, checks } = read(stdout);
    expect(tried).toMatchObject({
      result: expect.stringMatching(/^All guarantees held for 3 s, with \d+ leases and \d+ faults\.$/),
      again: 'npx nestjs-redis-lock doctor --try 3s --seed 42',
      seed: 42,
      refusals: expect.any(Object),
    });
    expect(checks.slice(0, 4).map(({ check, status }) => [check, status])).toEqual([
      ['exclusion', 'ok'],
      ['tokens', 'ok'],
      ['losses', 'ok'],
      ['hand-over', 'ok'],
    ]);
    // Both kinds of fault came, and a client that died lost its lease.
    expect(tried.leases).toBeGreaterThan(20);
    expect(Math.min(tried.faults.connections, tried.faults.clients, tried.lost)).toBeGreaterThan(0);
    const lines = readFileSync(history, 'utf8');
    expect(lines.split('\n').filter((line) => line.includes('"type":"ok","f":"acquire"'))).toHaveLength(tried.leases);
    expect(findImpossible(lines)).toEqual([]);
    expect([...locksOfOthers]).toEqual([]);
    expect(await triedKeys()).toEqual([]);
    const inSecond = sentAt.map((at) => sentAt.filter((other) => other >= at && other < at + 1_000).length);
    expect(Math.max(...inSecond)).toBeLessThanOrEqual(200);
  });

  it('says first what was broken, if Redis forgets its locks meanwhile', async () => {
    const forgetting = setInterval(() => {
      void triedKeys().then((keys) => {
        const locks = keys.filter((key) => key.endsWith('}'));
        if (locks.length > 0) void admin.del(locks);
      });
    }, 20);
    const { code, stdout } = await runHere(['doctor', '--try', '6s', '--yes', '--prefix', 'lock', ...PATIENT], {
      env: env(),
      isTerminal: true,
    });
    clearInterval(forgetting);
    expect(code).toBe(7);
    const [first, again] = stdout.split('\n');
    expect(first).toMatch(/^A guarantee was broken: /);
    expect(again).toMatch(
      /^To repeat the trial with the same random choices: npx nestjs-redis-lock doctor --try 6s --seed \d+$/,
    );
    expect(stdout).toMatch(
      /FAILED +exclusion +("(exclusive-1|exclusive-2|shared)" was held twice|\d+ permits of "semaphore" were held)/,
    );
    await eventually(async () => expect(await triedKeys()).toEqual([]));
  });

  it.each([
    ['SIGINT', 130],
    ['SIGTERM', 143],
  ] as const)('deletes its keys at %s', async (signal, code) => {
    const { child, ended } = startCli(['doctor', '--try', '60s', '--yes', '--prefix', 'lock', ...PATIENT], env());
    await eventually(async () => expect((await triedKeys()).some((key) => key.endsWith('}'))).toBe(true), 60_000);
    child.kill(signal);
    expect(await ended).toMatchObject({
      code,
      stdout: '',
      stderr: 'Stopped. The keys of the trial have been deleted.\n',
    });
    expect(await triedKeys()).toEqual([]);
  });

  it('does nothing without a confirmation', async () => {
    const refused = await runHere(['doctor', '--try', '2s'], { env: env() });
    expect(refused).toMatchObject({ code: 2, stdout: '' });
    expect(refused.stderr).toBe('There is no terminal for the confirmation: add --yes. Nothing was changed.\n');
    const asked = await runHere(['doctor', '--try', '2s', '--prefix', 'lock'], { env: env(), typed: 'n' });
    expect(asked).toMatchObject({ code: 2, stdout: '' });
    expect(asked.stderr).toMatch(/take locks under the prefix lock:try-[0-9a-f]{8} at .* for 2 s, with at most 200/);
    expect(await triedKeys()).toEqual([]);
    expect(await runHere(['doctor', '--seed', '1'], { env: env() })).toMatchObject({ code: 2 });
  });
});

describe('doctor --try on a cluster', () => {
  it('deletes its keys on each node', async () => {
    await using cluster = await RedisCluster.start();
    const { code, stdout } = await runHere(
      ['doctor', '--try', '2s', '--yes', '--json', '--prefix', 'lock', '--config', 'locks.mjs', ...PATIENT],
      { load: () => Promise.resolve({ default: cluster.connection }) },
    );
    expect({ code, violations: read(stdout).try.violations }).toEqual({ code: expect.any(Number), violations: [] });
    expect(read(stdout).try.leases).toBeGreaterThan(0);
    for (const { admin: node } of cluster.nodes) expect(await node.keys('*:try-*')).toEqual([]);
  });
});

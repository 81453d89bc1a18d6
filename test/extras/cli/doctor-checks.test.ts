import { type Check, exitOf } from '../../../lib/extras/cli/doctor/check.js';
import type { ServerFacts } from '../../../lib/extras/cli/doctor/server-facts.js';
import { checksOf } from '../../../lib/extras/cli/doctor/server-checks.js';

const fsync = (policy: string, whileRewriting = 'no') =>
  new Map([
    ['appendfsync', policy],
    ['no-appendfsync-on-rewrite', whileRewriting],
  ]);

const HEALTHY: ServerFacts = {
  info: new Map([
    ['maxmemory_policy', 'noeviction'],
    ['maxmemory', '0'],
    ['used_memory', '1000000'],
    ['aof_enabled', '1'],
    ['role', 'master'],
    ['connected_slaves', '0'],
  ]),
  name: 'Redis',
  version: '7.2.4',
  user: 'default',
  save: '',
  fsync: fsync('always'),
  clock: { aheadMs: 3, uncertaintyMs: 2, roundTrips: { medianMs: 0.2, slowestMs: 1 } },
};

const withInfo = (...fields: [string, string][]): ServerFacts => ({
  ...HEALTHY,
  info: new Map([...HEALTHY.info, ...fields]),
});

function find(facts: ServerFacts, check: string): Check | undefined {
  return checksOf(facts).find((each) => each.check === check);
}

describe('what the facts of a server mean', () => {
  it('reports nothing to do if all is well', () => {
    const findings = checksOf(HEALTHY);
    expect(findings.filter(({ status }) => status !== 'ok').map(({ check }) => check)).toEqual(['replicas']);
    expect(exitOf(findings, [])).toBe('done');
  });

  it.each([
    ['Redis', '6.0.16', 'failed'],
    ['Redis', '5.0.14', 'failed'],
    ['Redis', '6.2.0', 'ok'],
    ['Redis', '7.0.15', 'ok'],
    ['Valkey', '8.1.3', 'ok'],
    ['Redis', undefined, 'unknown'],
  ] as const)('%s %s: %s', (name, version, status) => {
    expect(find({ ...HEALTHY, name, version }, 'version')).toMatchObject({ status });
  });

  it.each([
    [[['aof_enabled', '0']], '', 'note', 'Nothing survives a restart'],
    [[['aof_enabled', '0']], '3600 1', 'note', 'There is no append-only file'],
    [[['aof_enabled', '0']], undefined, 'note', 'There is no append-only file'],
    [[['rdb_last_bgsave_status', 'err']], '3600 1', 'warning', 'could not save'],
    [[['aof_last_write_status', 'err']], '', 'warning', 'could not save'],
  ] as const)('%j, save %j: %s', (fields, save, status, message) => {
    const facts = { ...withInfo(...(fields as unknown as [string, string][])), save };
    expect(find(facts, 'persistence')).toMatchObject({ status, message: expect.stringContaining(message) as string });
  });

  it.each([
    ['always', fsync('always'), 'ok', 'before it is granted'],
    ['once a second', fsync('everysec'), 'note', 'loses the latest ones with appendfsync everysec.'],
    ['not while it is rewritten', fsync('always', 'yes'), 'note', 'with no-appendfsync-on-rewrite yes.'],
    ['who knows when', new Map<string, string>(), 'note', 'unless appendfsync is always, which it does not show'],
  ] as const)('an append-only file that is written to disk %s', (_, settings, status, message) => {
    const finding = find({ ...HEALTHY, fsync: settings }, 'persistence');
    expect(finding).toMatchObject({ status, message: expect.stringContaining(message) as string });
    if (status === 'note') expect(finding!.fix).toContain('restartQuarantineMs');
  });

  it.each([
    ['', '0', '2 replicas, and nothing on disk'],
    ['3600 1', '0', '2 replicas: a fail-over loses'],
    ['', '1', '2 replicas: a fail-over loses'],
    [undefined, '0', '2 replicas: a fail-over loses'],
  ] as const)('replicas beside save %j and aof_enabled %s', (save, aof, message) => {
    const facts = { ...withInfo(['connected_slaves', '2'], ['aof_enabled', aof]), save };
    const finding = find(facts, 'replicas');
    expect(finding).toMatchObject({ status: 'note', message: expect.stringContaining(message) as string });
  });

  it.each([
    [1_500, 2, 'warning', '1.5 s ahead of'],
    [-7_200_000, 2, 'warning', '2 h behind'],
    [999, 2, 'ok', 'agree'],
    // The round trip was too slow to know it.
    [1_500, 900, 'ok', 'agree'],
  ] as const)('a clock that is %s ms ahead, up to %s ms: %s', (aheadMs, uncertaintyMs, status, message) => {
    const facts = { ...HEALTHY, clock: { ...HEALTHY.clock!, aheadMs, uncertaintyMs } };
    expect(find(facts, 'clock')).toMatchObject({ status, message: expect.stringContaining(message) as string });
  });

  it('warns if the round trip is long', () => {
    const facts = { ...HEALTHY, clock: { ...HEALTHY.clock!, roundTrips: { medianMs: 80, slowestMs: 300 } } };
    expect(find(facts, 'round trip')).toMatchObject({ status: 'warning' });
  });

  it('says what a full Redis does, and what it has done', () => {
    const full = [
      ['maxmemory', '1000000'],
      ['evicted_keys', '13954'],
    ] as [string, string][];
    const messages = (facts: ServerFacts) => ['eviction', 'memory'].map((check) => find(facts, check)!.message);
    expect(messages(withInfo(...full))).toEqual([
      'maxmemory-policy is noeviction.',
      '100 % of maxmemory is used: when it is full, Redis refuses new locks.',
    ]);
    expect(messages(withInfo(...full, ['maxmemory_policy', 'allkeys-lru']))).toEqual([
      expect.stringMatching(/two processes hold the same lock\. It has removed 13,?954 keys since it started\.$/),
      '100 % of maxmemory is used: when it is full, Redis removes keys.',
    ]);
  });

  it('is unknown, not a warning, if the user has no permission to ask', () => {
    const findings = checksOf({ ...HEALTHY, info: new Map(), save: undefined });
    expect(findings.filter(({ status }) => status === 'unknown').map(({ check }) => check)).toEqual([
      'eviction',
      'persistence',
    ]);
    expect(exitOf(findings, [])).toBe('done');
  });

  it('names what to do wherever something is to be done', () => {
    const bad = {
      ...withInfo(['maxmemory_policy', 'allkeys-lru'], ['maxmemory', '1000000'], ['role', 'slave']),
      version: '5.0',
    };
    for (const { status, fix } of checksOf(bad)) {
      if (status === 'warning' || status === 'failed') expect(fix).toEqual(expect.stringMatching(/.{10}/));
    }
    expect(exitOf(checksOf(bad), [])).toBe('redis');
  });
});

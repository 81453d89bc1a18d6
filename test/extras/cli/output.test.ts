import { once } from 'node:events';
import { connect } from 'node:net';
import { PassThrough } from 'node:stream';
import { text } from 'node:stream/consumers';
import { COMMANDS } from '../../../lib/extras/cli/commands.js';
import { outcomeOf } from '../../../lib/extras/cli/jobs/jobs.js';
import { changesBetween } from '../../../lib/extras/cli/commands/watch.js';
import { type Check, exitOf } from '../../../lib/extras/cli/doctor/check.js';
import { checksOf } from '../../../lib/extras/cli/doctor/server-checks.js';
import type { ServerFacts } from '../../../lib/extras/cli/doctor/server-facts.js';
import { COMMON_OPTIONS } from '../../../lib/extras/cli/frame/connection.js';
import { findingTable } from '../../../lib/extras/cli/frame/findings.js';
import { durationCell, type Found, Output, timeCell } from '../../../lib/extras/cli/frame/output.js';
import { tellMissing } from '../../../lib/extras/cli/frame/roll.js';
import { Terminal } from '../../../lib/extras/cli/frame/terminal.js';
import { PageServer } from '../../../lib/extras/cli/ui/page-server.js';
import type { ConsoleAnswers } from '../../../lib/extras/console/answers/console-answers.js';
import type { Finding } from '../../../lib/features/fleet/core/findings/finding.js';
import type { FleetInstance, FleetReport } from '../../../lib/features/fleet/core/roll/lock-fleet.js';
import { longDuration } from '../../../lib/kernel/util/durations.js';
import { fleetReport } from '../../features/fleet/fleet-reports.js';
import { runHere } from './run-cli.js';

function printed(found: Found, { isTerminal = false, isJson = false, env = {} } = {}): string {
  const stdout = Object.assign(new PassThrough(), { isTTY: isTerminal });
  const stderr = new PassThrough();
  const terminal = new Terminal({ stdin: new PassThrough(), stderr });
  new Output({ stdout, stderr, env }, terminal, isJson).print(found);
  expect(stderr.read()).toBeNull();
  return String(stdout.read() ?? '');
}

const found: Found = {
  json: { locks: ['a'] },
  shown: [
    {
      columns: ['RESOURCE', 'LEFT'],
      rows: [
        ['order:7', durationCell(591_000)],
        ['b', durationCell(20)],
      ],
    },
  ],
};

it('the output is a table with a heading on a terminal', () => {
  expect(printed(found, { isTerminal: true, env: { NO_COLOR: '1' } })).toBe(
    'RESOURCE  LEFT\norder:7   9 min 51 s\nb         20 ms\n',
  );
});

it.each([
  [{}, true],
  [{ NO_COLOR: '' }, true],
  [{ NO_COLOR: '1' }, false],
  [{ TERM: 'dumb' }, false],
])('the table has a bold heading unless %j forbids it', (env, isBold) => {
  expect(printed(found, { isTerminal: true, env }).startsWith('\u001b[1m')).toBe(isBold);
});

it('the output has one line per row elsewhere, without a heading, and with whole milliseconds', () => {
  expect(printed(found)).toBe('order:7\t591000\nb\t20\n');
});

it('a finding has its sentence and its remedy in one row for a program', () => {
  const action = { text: 'Wake it.', command: 'npx nestjs-redis-lock who shop-1' };
  const finding = { severity: 'critical', kind: 'holderSilent', sentence: 'shop-1 is silent.', action } as Finding;
  const shown = [findingTable([finding], 'tsv')];
  expect(printed({ json: {}, shown })).toBe(
    'critical\tholderSilent\t\tshop-1 is silent.\tWake it.\tnpx nestjs-redis-lock who shop-1\n',
  );
});

it('the JSON output is one line, with the version of the schema', () => {
  expect(printed(found, { isJson: true, isTerminal: true })).toBe('{"schemaVersion":1,"locks":["a"]}\n');
});

it('the end of a run begins with the message of its error', () => {
  const run = {
    tick: '2026-11-26T02:00:00.000Z',
    startedAt: 1,
    instanceId: 'jobs-1',
    rerun: true,
    manual: false,
    catchUp: false,
    outcome: 'error' as const,
    errorName: 'MailError',
    errorCode: 'ETIMEDOUT',
    errorMessage: 'no answer from the mail gateway in 30 s',
  };
  expect(outcomeOf({ ...run, attempt: 2 })).toBe(
    'error "no answer from the mail gateway in 30 s" MailError ETIMEDOUT (attempt 2)',
  );
  expect(outcomeOf(run, 12)).toBe('error "no answer..." MailError ETIMEDOUT');
});

it('an empty table has a message on a terminal, and no output elsewhere', () => {
  const nothing = { json: {}, shown: [{ columns: ['A'], rows: [], ifEmpty: 'Nothing.' }] };
  expect(printed(nothing, { isTerminal: true })).toBe('Nothing.\n');
  expect(printed(nothing)).toBe('');
});

it('control characters of a name are escaped, so that rows, columns and the terminal are safe', () => {
  const name = 'a\u001b[2J\tb\nc\u202ed\u009b';
  const hostile = { json: { name }, shown: [{ columns: ['A', 'B'], rows: [[name, 'end']] }] };
  expect(printed(hostile)).toBe('a\\u001b[2J\\u0009b\\u000ac\\u202ed\\u009b\tend\n');
  const json = printed(hostile, { isJson: true });
  expect(json).not.toMatch(/[^\n\x20-\x7e]/);
  expect(JSON.parse(json)).toEqual({ schemaVersion: 1, name });
});

it.each([
  [20, '20 ms'],
  [1_500, '1.5 s'],
  [119_000, '119 s'],
  [591_000, '9 min 51 s'],
  [600_000, '10 min'],
  [7_500_000, '2 h 5 min'],
  [90_061_000, '1 d 1 h'],
])('%d ms are %s', (ms, text) => expect(longDuration(ms)).toBe(text));

it('times are relative for a person, and absolute for a program', () => {
  expect(timeCell(1_000, 4_000)).toEqual({ shown: '3 s ago', raw: '1970-01-01T00:00:01.000Z' });
  expect(timeCell(5_000, 4_000)).toMatchObject({ shown: 'in 1 s' });
});

const NOWHERE = { env: { REDIS_URL: 'redis://:hunter2@127.0.0.1:1' } };

describe('help', () => {
  it.each([['--help'], ['-h'], ['help']])('of the program is data: %s', async (...argv) => {
    const { code, stdout, stderr } = await runHere(argv);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    for (const { name, summary } of COMMANDS) {
      expect(stdout.split('\n')).toContainEqual(expect.stringMatching(new RegExp(`^  ${name} `)));
      expect(stdout).toContain(summary);
    }
    expect(stdout.split('\n').filter((line) => line.length > 120)).toEqual([]);
  });

  it.each(COMMANDS.map(({ name }) => name))('of %s names each option, and needs no Redis', async (name) => {
    const command = COMMANDS.find((each) => each.name === name)!;
    for (const argv of [
      [name, '--help'],
      ['help', name],
    ]) {
      const { code, stdout } = await runHere(argv);
      expect(code).toBe(0);
      for (const option of Object.keys({ ...command.options, ...COMMON_OPTIONS })) {
        expect(stdout).toContain(`--${option}`);
      }
    }
  });

  it('prints to stderr without a command', async () => {
    const { code, stdout, stderr } = await runHere([]);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toContain('Usage: nestjs-redis-lock <command>');
  });

  it('passes arguments after -- on unchanged', async () => {
    expect((await runHere(['ls', '--timeout', '100ms', '--', '--help'], NOWHERE)).stdout).not.toContain('Usage');
  });

  it('says the version', async () => {
    expect(await runHere(['--version'])).toMatchObject({ code: 0, stdout: '1.2.3\n' });
  });
});

describe('a command line that is wrong', () => {
  it.each<[string[], string]>([
    [['lss'], 'There is no command "lss". Did you mean ls?'],
    [['jbos'], 'Did you mean jobs?'],
    [['flushall'], 'There is no command "flushall". nestjs-redis-lock --help lists the commands.'],
    [['ls', '--waitng'], 'ls has no option "--waitng". Did you mean --waiting?'],
    [['ls', '--waiting=yes'], '--waiting takes no value.'],
    [['ls', '--limit'], '--limit needs a value: --limit <number>.'],
    [['ls', '--limit', '--json'], '--limit needs a value'],
    [['ls', '--limit=0'], '--limit must be a whole number, 1 or more, not "0".'],
    [['ls', '--timeout', '30d'], '--timeout may be at most 60 min, not 30d.'],
    [['job', 'nightly', '--pause', '--resume'], 'Pass only one of --history, --pause'],
    [['job', 'nightly', '--pause', 'tonight'], '--pause must be a duration such as'],
    [
      ['exec', 'order:7', '--', ''],
      'exec needs a command after --: exec … -- command …. If you passed a shell variable, check that it is set.',
    ],
    [['ls', '--timeout', '5'], '--timeout must be a duration such as 500ms, 30s'],
    [['ls', 'a', 'b'], 'ls takes no argument "b".'],
    [['why'], 'why needs a resource.'],
    [['ls', '--prefix', '{x}'], '--prefix must be 1 to 100 characters'],
    [['ls', '--url', 'redis://a', '--config', 'b'], 'Pass either --url or --config, not both.'],
    [['job', 'a', '--run', '--resume'], 'Pass only one of --history, --pause, --resume and --run.'],
    [['completion', 'tcsh'], 'completion supports bash, zsh, fish'],
  ])('%j ends with 2 and says how to write it', async (argv, message) => {
    const { code, stdout, stderr } = await runHere(argv, NOWHERE);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toContain(message);
  });

  it('lists the ways to configure Redis', async () => {
    const { code, stderr } = await runHere(['ls']);
    expect(code).toBe(2);
    expect(stderr).toBe('Pass the address of Redis with --url, REDIS_URL in the environment, or --config.\n');
  });

  it.each([
    ['redis-cli', 'connection must be a URL'],
    ['redis://', 'connection must be a URL'],
  ])('says what is wrong with the URL %s', async (url, message) => {
    const { code, stderr } = await runHere(['ls', '--url', url]);
    expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringContaining(message) });
  });
});

describe('an unreachable Redis', () => {
  it('ends with 3 within the time, with one sentence and without the password', async () => {
    const { code, stdout, stderr } = await runHere(['ls', '--timeout', '300ms'], NOWHERE);
    expect({ code, stdout }).toEqual({ code: 3, stdout: '' });
    expect(stderr).toBe(
      'The command line is not connected to Redis at 127.0.0.1:1 (connect ECONNREFUSED 127.0.0.1:1).\n',
    );
  });

  it('warns of a password that others can see', async () => {
    const { stderr } = await runHere(['ls', '--timeout', '100ms', '--url', NOWHERE.env.REDIS_URL]);
    expect(stderr).toContain('--url has a password in it, which every user of this machine can see.');
    expect(stderr).not.toContain('hunter2');
  });
});

describe('--config', () => {
  const withModule = (exported: object) => ({ load: () => Promise.resolve(exported) });
  it.each<[object, string]>([
    [{}, 'has no default export'],
    [{ default: { uri: 'redis://a' } }, 'as another library takes it'],
    [{ default: 'redis://a', keyPrefix: 7 }, 'keyPrefix of --config'],
  ])('that exports %j is refused', async (exported, message) => {
    const { code, stderr } = await runHere(['ls', '--config', 'locks.mjs'], withModule(exported));
    expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringContaining(message) });
  });

  it('that cannot be loaded is refused', async () => {
    const { code, stderr } = await runHere(['ls', '--config', 'locks.mjs']);
    expect({ code, stderr }).toEqual({ code: 2, stderr: '--config "locks.mjs" cannot be loaded: no module\n' });
  });
});

it.each(['bash', 'zsh', 'fish'])('completion for %s names each command and option', async (shell) => {
  const { code, stdout } = await runHere(['completion', shell]);
  expect(code).toBe(0);
  for (const { name, options } of COMMANDS) {
    expect(stdout).toContain(name);
    for (const option of Object.keys(options)) expect(stdout).toContain(option);
  }
});

it('completion with --json prints the script as JSON', async () => {
  const { code, stdout } = await runHere(['completion', 'bash', '--json']);
  const body = JSON.parse(stdout) as { shell: string; script: string };
  expect({ code, shell: body.shell }).toEqual({ code: 0, shell: 'bash' });
  expect(`${body.script}\n`).toBe((await runHere(['completion', 'bash'])).stdout);
});

it('a scan that was cut is a partial result, which stderr explains', () => {
  const notes: string[] = [];
  const output = { note: (line: string) => void notes.push(line) };
  expect(tellMissing(fleetReport(), output, null)).toBe(false);
  expect(tellMissing(fleetReport({ isScanCut: true }), output, null)).toBe(true);
  expect(notes).toEqual(['Redis has more than 10000 locks, and only some of them were checked.']);
});

describe('the server of ui', () => {
  let server: PageServer;
  let url: URL;

  beforeEach(async () => {
    const answers = {
      file: () => ({ status: 200, headers: {}, body: 'the page' }),
      view: () => Promise.reject(new Error('a bug')),
    } as unknown as ConsoleAnswers;
    server = new PageServer(answers, '/secret/');
    url = new URL(await server.listen(0));
  });

  afterEach(() => server.close());

  /** With a target that no HTTP client would send. @returns the status */
  async function get(target: string): Promise<number> {
    const socket = connect(Number(url.port), url.hostname);
    await once(socket, 'connect');
    socket.write(`GET ${target} HTTP/1.1\r\nHost: ${url.host}\r\nConnection: close\r\n\r\n`);
    return Number((await text(socket)).split(' ')[1]);
  }

  it.each(['//', '///', '//[', 'http://', 'http://[/', '/\\[', '*'])(
    'refuses a target that is no path of the console, and goes on: %s',
    async (target) => {
      expect([400, 404]).toContain(await get(target));
      expect(await get('/secret/')).toBe(200);
    },
  );

  it('answers 500 if the console fails, and continues', async () => {
    expect(await get('/secret/api/now')).toBe(500);
    expect(await get('/secret/')).toBe(200);
  });
});

const lease = (resource: string, fencingToken: number, heldMs = 0): FleetInstance['held'][number] => ({
  resource,
  mode: 'exclusive',
  fencingToken,
  heldMs,
  leftMs: 10_000,
  group: 'Orders.pay',
  isRenewed: true,
  isLeaked: false,
});
const wait = (resource: string, call: number, waitedMs = 0): FleetInstance['waiting'][number] => ({
  call,
  resource,
  mode: 'exclusive',
  waitedMs,
  group: 'Orders.pay',
  holds: [],
});
const instance = (instanceId: string, has: Partial<FleetInstance> = {}): FleetInstance =>
  ({
    instanceId,
    held: [],
    waiting: [],
    leaderships: [],
    lastMinute: null,
    more: { held: 0, waiting: 0, leaderships: 0, jobs: 0 },
    ...has,
  }) as unknown as FleetInstance;
const roll = (...instances: FleetInstance[]): FleetReport => ({
  askedAt: 5,
  asked: instances.length,
  completeness: 'complete',
  instances,
  silent: [],
  unreadable: 0,
  unlisted: [],
  isScanCut: false,
  deadlocks: [],
  service: 'default',
  subscribed: [],
});
const between = (before: FleetReport, after: FleetReport) =>
  changesBetween(before, after).map(({ event, resource }) => [event, resource]);

it('a wait that ends with a grant is two changes, at the time of the second poll', () => {
  const waits = roll(instance('a', { waiting: [wait('x', 1)] }));
  const holds = roll(instance('a', { held: [lease('x', 7)] }));
  const nothing = roll(instance('a'));
  expect(changesBetween(nothing, waits)).toEqual([
    { at: 5, event: 'waits', instance: 'a', resource: 'x', work: 'Orders.pay', forMs: 0 },
  ]);
  expect(changesBetween(waits, holds)).toEqual([
    { at: 5, event: 'granted', instance: 'a', resource: 'x', fencingToken: 7, work: 'Orders.pay' },
  ]);
  expect(between(holds, nothing)).toEqual([['released', 'x']]);
  expect(between(waits, nothing)).toEqual([['gaveUp', 'x']]);
  expect(between(holds, holds)).toEqual([]);
});

it('another lease of the same resource is a release and a grant', () => {
  const first = roll(instance('a', { held: [lease('x', 7)] }));
  expect(between(first, roll(instance('a', { held: [lease('x', 39)] })))).toEqual([
    ['granted', 'x'],
    ['released', 'x'],
  ]);
  expect(between(first, roll(instance('a'), instance('b', { held: [lease('x', 39)] })))).toEqual([
    ['released', 'x'],
    ['appeared', undefined],
    ['granted', 'x'],
  ]);
});

it('an instance that does not answer has released nothing', () => {
  const both = roll(instance('a', { held: [lease('x', 7)] }), instance('b'));
  expect(between(both, roll(instance('b')))).toEqual([['gone', undefined]]);
});

it('a lock that did not fit into an answer is not reported as released', () => {
  const full = { held: 1, waiting: 1, leaderships: 0, jobs: 0 };
  const before = roll(instance('a', { held: [lease('x', 7)], waiting: [wait('y', 1)] }));
  expect(between(before, roll(instance('a', { more: full })))).toEqual([]);
});

it('lost leases and leaderships are reported', () => {
  const counts = (lost: number) => ({ forMs: 1, acquired: 0, notAcquired: 0, lost, timedOut: 0 });
  const leads = (isLeader: boolean) => [{ name: 'mailer', isLeader, elections: 1 }];
  const before = roll(instance('a', { lastMinute: counts(1), leaderships: leads(false) }));
  const after = roll(instance('a', { lastMinute: counts(3), leaderships: leads(true) }));
  expect(changesBetween(before, after)).toEqual([
    { at: 5, event: 'lost', instance: 'a', count: 2 },
    { at: 5, event: 'leads', instance: 'a', resource: 'mailer' },
  ]);
  // The window moves on, and the events of its first second drop out.
  expect(between(after, before)).toEqual([['leadsNoMore', 'mailer']]);
});

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
    [[['aof_enabled', '0']], '', 'note', 'Redis saves nothing to disk'],
    [[['aof_enabled', '0']], '3600 1', 'note', 'Redis writes no append-only file'],
    [[['aof_enabled', '0']], undefined, 'note', 'Redis writes no append-only file'],
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
    ['', '0', '2 replicas, but this server saves nothing to disk'],
    ['3600 1', '0', '2 replicas: a failover loses'],
    ['', '1', '2 replicas: a failover loses'],
    [undefined, '0', '2 replicas: a failover loses'],
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
      expect.stringMatching(/two processes can hold the same lock\. It has removed 13,?954 keys since it started\.$/),
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

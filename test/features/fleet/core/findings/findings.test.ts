import { readFileSync } from 'node:fs';
import { type Finding, FINDING_KINDS, type SeenJob } from '../../../../../lib/features/fleet/core/findings/finding.js';
import { findings } from '../../../../../lib/features/fleet/core/findings/findings.js';
import type { JobInfo, JobRun } from '../../../../../lib/features/jobs/core/job-info.js';
import { fleetInstance, fleetReport, heldLease, unlistedHolder, waitingCall } from '../../fleet-reports.js';

const NOW = 1_800_000_000_000;
const MINUTE = 60_000;
const DAY = 24 * 60 * MINUTE;
const SHOP = 'shop-1:10488:gtlvzz';

const waits = (calls: number, resource: string, waitedMs: number) =>
  Array.from({ length: calls }, (_, index) => waitingCall(index + 1, resource, { waitedMs: waitedMs - index }));
const fleetOf = (...instances: ReturnType<typeof fleetInstance>[]) => fleetReport({ instances });
const run = (startedAgoMs: number, has: Partial<JobRun> = {}): JobRun => ({
  tick: new Date(NOW - startedAgoMs).toISOString(),
  startedAt: NOW - startedAgoMs,
  endedAt: NOW - startedAgoMs + 2_000,
  outcome: 'ok',
  instanceId: SHOP,
  rerun: false,
  manual: false,
  catchUp: false,
  ...has,
});
const job = (has: Partial<JobInfo> = {}, runs: readonly JobRun[] = [run(MINUTE)]): SeenJob => ({
  job: {
    name: 'nightly',
    isHere: false,
    missed: 0,
    cron: '0 3 * * *',
    nextDueAt: NOW + MINUTE,
    ...(runs[0] && { lastRun: runs[0] }),
    instances: [{ instanceId: SHOP, seenAt: NOW - MINUTE }],
    instanceCount: 1,
    ...has,
  },
  runs,
});
const withJob = fleetOf(fleetInstance(SHOP, { jobs: ['nightly'] }));
const healthy = { status: 'up', problems: [] } as const;
const error = (times: number) =>
  Array.from({ length: times }, (_, index) =>
    run((index + 1) * MINUTE, { outcome: 'error', errorName: 'TypeError', errorMessage: 'x is not a function' }),
  );

type Expected = Pick<Finding, 'severity' | 'kind' | 'sentence'> & { readonly command: string } & Partial<Finding>;

const CASES: readonly [string, Parameters<typeof findings>, Expected][] = [
  [
    'a Redis that is out of memory',
    [
      undefined,
      undefined,
      { status: 'down', problems: [{ code: 'OOM', message: 'Redis is out of memory and rejects writes.' }] },
    ],
    {
      severity: 'critical',
      kind: 'redisDown',
      sentence: 'Locks are unavailable. Redis is out of memory and rejects writes.',
      action: { text: 'Raise maxmemory, or remove other data.', command: 'npx nestjs-redis-lock doctor' },
      command: 'npx nestjs-redis-lock doctor',
    },
  ],
  [
    'a Redis that may evict locks',
    [fleetOf(), [], { status: 'degraded', problems: [{ code: 'EVICTION', message: 'Redis removes keys.' }] }],
    {
      severity: 'critical',
      kind: 'redisProblem',
      sentence: 'Redis removes keys.',
      command: 'npx nestjs-redis-lock doctor',
    },
  ],
  [
    'calls that wait for each other, by the names of both instances',
    [
      fleetReport({
        instances: [
          fleetInstance('a', {
            held: [heldLease('account:1', 32, { group: 'Bank.move' })],
            waiting: waits(1, 'account:2', 8_000),
          }),
          fleetInstance('b', {
            held: [heldLease('account:2', 64, { group: '_other' })],
            waiting: waits(1, 'account:1', 9_000),
          }),
        ],
        deadlocks: [
          [
            {
              instanceId: 'a',
              isThisProcess: true,
              group: 'Bank.move',
              holds: 'account:1',
              wants: 'account:2',
              callSite: 'move (dist/bank.js:4:2)',
            },
            { instanceId: 'b', isThisProcess: false, group: '_other', holds: 'account:2', wants: 'account:1' },
          ],
        ],
      }),
    ],
    {
      severity: 'critical',
      kind: 'deadlock',
      sentence:
        'Deadlock: Bank.move on a holds "account:1" and waits for "account:2" at dist/bank.js:4:2. ' +
        'b holds "account:2" and waits for "account:1".',
      culprit: { instanceId: 'a', work: 'Bank.move', callSite: 'move (dist/bank.js:4:2)' },
      since: NOW - 9_000,
      blocked: { calls: 2, works: ['Orders.pay'] },
      command: 'npx nestjs-redis-lock release account:1 --token 32',
    },
  ],
  [
    'a dead holder that calls wait for',
    [
      fleetReport({
        instances: [fleetInstance('a', { waiting: waits(2, 'order:7$(x)', 8_000) })],
        unlisted: [unlistedHolder('order:7$(x)', SHOP, { life: 'dead', label: { group: 'Orders.ship' } })],
      }),
    ],
    {
      severity: 'critical',
      kind: 'holderDead',
      sentence: `"order:7$(x)" is held by Orders.ship on ${SHOP}, which is dead. 2 calls are waiting, the oldest for 8 s. The lock is free in 9 s.`,
      culprit: { instanceId: SHOP, work: 'Orders.ship' },
      blocked: { calls: 2, works: ['Orders.pay'] },
      command: "npx nestjs-redis-lock release 'order:7$(x)' --token 64",
    },
  ],
  [
    'a frozen holder',
    [
      fleetReport({
        instances: [fleetInstance('a', { waiting: waits(1, 'order:7', 8_000) })],
        silent: [SHOP],
        unlisted: [unlistedHolder('order:7', SHOP, { life: 'silent' })],
      }),
    ],
    {
      severity: 'critical',
      kind: 'holderSilent',
      sentence: `"order:7" is held by ${SHOP}, which does not answer: it is frozen, or its event loop is blocked. 1 call has waited for 8 s.`,
      command: `npx nestjs-redis-lock who ${SHOP}`,
    },
  ],
  [
    'a holder without a subscription, which nobody may end',
    [fleetReport({ unlisted: [unlistedHolder('order:7', SHOP)] })],
    {
      severity: 'warning',
      kind: 'holderUnknown',
      sentence: `"order:7" is held by ${SHOP}, which is not known to be subscribed: it may be alive or dead.`,
      command: 'npx nestjs-redis-lock why order:7',
    },
  ],
  [
    'a lease that was never released',
    [
      fleetOf(
        fleetInstance(SHOP, {
          held: [heldLease('import:acme', 32, { isLeaked: true, callSite: 'Imports.run (dist/imports.js:83:56)' })],
        }),
      ),
    ],
    {
      severity: 'warning',
      kind: 'leaked',
      sentence: `"import:acme" was leaked by ${SHOP}: it was acquired at Imports.run (dist/imports.js:83:56) and never released, and no work runs under it.`,
      culprit: { instanceId: SHOP, work: 'Orders.pay', callSite: 'Imports.run (dist/imports.js:83:56)' },
      command: 'npx nestjs-redis-lock release import:acme --token 32',
    },
  ],
  [
    'a queue that grows',
    [
      fleetOf(
        fleetInstance(SHOP, { held: [heldLease('order:42', 32)] }),
        fleetInstance('a', { waiting: waits(50, 'order:42', 95_000) }),
      ),
    ],
    {
      severity: 'critical',
      kind: 'longWait',
      sentence: `"order:42" has been held for 5 s by Orders.pay on ${SHOP}, which is alive. 50 calls are waiting, the oldest for 95 s.`,
      resource: 'order:42',
      since: NOW - 95_000,
      blocked: { calls: 50, works: ['Orders.pay'] },
      command: `npx nestjs-redis-lock who ${SHOP}`,
    },
  ],
  [
    'waits that time out',
    [
      fleetOf(
        fleetInstance('a', { timeouts: [{ resource: 'order:7', calls: 3 }] }),
        fleetInstance('b', { timeouts: [{ resource: 'order:7', calls: 4 }] }),
      ),
    ],
    {
      severity: 'warning',
      kind: 'timeouts',
      sentence: '"order:7": 7 calls timed out in the last minute.',
      command: 'npx nestjs-redis-lock contention',
    },
  ],
  [
    'locks that two instances have taken in opposite orders, at the same two sites',
    [
      fleetOf(
        ...['a', 'b'].map((instanceId) =>
          fleetInstance(instanceId, {
            lockOrders: [
              [
                { holds: 'account:1', wants: 'account:2', callSite: 'move (dist/bank.js:4:2)' },
                { holds: 'account:2', wants: 'account:1', callSite: 'back (dist/bank.js:9:2)' },
              ],
            ],
          }),
        ),
      ),
    ],
    {
      severity: 'warning',
      kind: 'lockOrder',
      sentence:
        'a takes locks in different orders, which can deadlock. It locked "account:2" while it held "account:1" at ' +
        'dist/bank.js:4:2. It locked "account:1" while it held "account:2" at dist/bank.js:9:2.',
      culprit: { instanceId: 'a', callSite: 'move (dist/bank.js:4:2)' },
      command: 'npx nestjs-redis-lock who a',
    },
  ],
  [
    'a leadership that changes hands too often',
    [
      fleetOf(
        fleetInstance('a', { leaderships: [{ name: 'mailer', isLeader: true, elections: 4 }] }),
        fleetInstance('b', { leaderships: [{ name: 'mailer', isLeader: false, elections: 9 }] }),
      ),
    ],
    {
      severity: 'warning',
      kind: 'leaderFlaps',
      sentence: 'The leadership "mailer" has changed hands 13 times in the last ten minutes: b was elected 9 times.',
      culprit: { instanceId: 'b' },
      command: 'npx nestjs-redis-lock instances',
    },
  ],
  [
    'jobs, and no instance at all',
    [fleetOf(), [job()]],
    {
      severity: 'critical',
      kind: 'noInstances',
      sentence: 'No instance is connected: no job runs ("nightly").',
      command: 'npx nestjs-redis-lock jobs',
    },
  ],
  [
    'an instance that does not answer',
    [fleetReport({ silent: [SHOP] })],
    {
      severity: 'warning',
      kind: 'instanceSilent',
      sentence: `${SHOP} does not answer: it is frozen, too busy, or of another version.`,
      command: `npx nestjs-redis-lock who ${SHOP}`,
    },
  ],
  [
    'an instance that receives no messages',
    [fleetOf(fleetInstance(SHOP, { hearing: false }))],
    {
      severity: 'warning',
      kind: 'instanceDeaf',
      sentence: `${SHOP} receives no messages, so its waiting calls get locks up to a second late.`,
      command: `npx nestjs-redis-lock who ${SHOP}`,
    },
  ],
  [
    'a blocked event loop',
    [fleetOf(fleetInstance(SHOP, { blockedMs: 4_200 }))],
    {
      severity: 'warning',
      kind: 'instanceBlocked',
      sentence: `${SHOP} had its event loop blocked for 4.2 s in the last minute.`,
      command: `npx nestjs-redis-lock who ${SHOP}`,
    },
  ],
  [
    'an instance whose renewals fail',
    [fleetOf(fleetInstance(SHOP, { health: 'renewalsFail' }))],
    {
      severity: 'warning',
      kind: 'renewalsFail',
      sentence: `${SHOP} could not renew a lease in the last minute.`,
      command: `npx nestjs-redis-lock who ${SHOP}`,
    },
  ],
  [
    'many lost leases',
    [fleetOf(fleetInstance(SHOP, { lostLately: 3 }))],
    {
      severity: 'warning',
      kind: 'leasesLost',
      sentence: `${SHOP} lost 3 leases in the last ten minutes.`,
      command: `npx nestjs-redis-lock who ${SHOP}`,
    },
  ],
  [
    'an old version',
    [fleetOf(fleetInstance('a', { version: '0.10.0' }), fleetInstance(SHOP, { version: '0.9.1' }))],
    {
      severity: 'note',
      kind: 'oldVersion',
      sentence: `${SHOP} runs nestjs-redis-lock 0.9.1, and others run 0.10.0.`,
      command: `npx nestjs-redis-lock who ${SHOP}`,
    },
  ],
  [
    'answers of a newer version',
    [fleetReport({ unreadable: 2 })],
    {
      severity: 'note',
      kind: 'unreadable',
      sentence:
        '2 answers to the roll call could not be read: sent by a newer version of nestjs-redis-lock, or forged.',
      command: 'npx nestjs-redis-lock --version',
    },
  ],
  [
    'a job that fails each time',
    [withJob, [job({}, error(10))]],
    {
      severity: 'critical',
      kind: 'jobFails',
      sentence:
        `The job "nightly" failed in all of its last 10 runs. The last error on ${SHOP}: TypeError: "x is not a function". ` +
        'Its last run started 60 s ago. The next run is due in 60 s.',
      culprit: { instanceId: SHOP },
      since: NOW - 10 * MINUTE,
      command: 'npx nestjs-redis-lock job nightly --history',
    },
  ],
  [
    'a job whose ticks nobody claimed',
    [withJob, [job({}, [run(MINUTE, { outcome: 'missed' }), run(2 * MINUTE, { outcome: 'missed' }), run(DAY)])]],
    {
      severity: 'warning',
      kind: 'jobMissed',
      sentence:
        'The job "nightly" missed its last 2 ticks: no instance claimed them. Its last run started 1 d ago. The next run is due in 60 s.',
      command: 'npx nestjs-redis-lock job nightly --run',
    },
  ],
  [
    'a job that never ran when it was due',
    [withJob, [job({}, [run(MINUTE, { outcome: 'missed' })])]],
    {
      severity: 'warning',
      kind: 'jobMissed',
      sentence:
        'The job "nightly" missed its last tick: no instance claimed it. It has never run. The next run is due in 60 s.',
      command: 'npx nestjs-redis-lock job nightly --run',
    },
  ],
  [
    'a job that no instance has any more',
    [
      fleetOf(fleetInstance('a')),
      [job({ instances: [{ instanceId: SHOP, seenAt: NOW - DAY }], nextDueAt: undefined as never }, [run(DAY)])],
    ],
    {
      severity: 'warning',
      kind: 'jobNowhere',
      sentence: `No instance has the job "nightly" now: ${SHOP} was last seen with it 1 d ago. Its last run started 1 d ago.`,
      culprit: { instanceId: SHOP },
      since: NOW - DAY,
      command: 'npx nestjs-redis-lock job nightly',
    },
  ],
  [
    'a job that has been paused for more than a day',
    [withJob, [job({ pause: { at: NOW - 2 * DAY, by: 'ann', reason: 'OPS-17' } })]],
    {
      severity: 'warning',
      kind: 'jobPaused',
      sentence:
        'The job "nightly" was paused by ann 2 d ago, until it is resumed: "OPS-17". Its last run started 60 s ago. The next run is due in 60 s.',
      command: 'npx nestjs-redis-lock job nightly --resume',
    },
  ],
  [
    'a run that takes longer than usual',
    [withJob, [job({ running: run(5 * MINUTE, { outcome: undefined as never, endedAt: undefined as never }) })]],
    {
      severity: 'warning',
      kind: 'jobLong',
      sentence: `The job "nightly" has run for 5 min on ${SHOP}: its last run took 2 s.`,
      command: `npx nestjs-redis-lock who ${SHOP}`,
    },
  ],
  [
    'ticks that are skipped during one run',
    [withJob, [job({ running: run(5 * MINUTE), skippedAt: NOW - 3_000 })]],
    {
      severity: 'warning',
      kind: 'jobOverlaps',
      sentence: `The job "nightly" has run for 5 min on ${SHOP}, and its ticks are skipped: the last one was due 3 s ago.`,
      command: `npx nestjs-redis-lock who ${SHOP}`,
    },
  ],
  [
    'instances that disagree about a schedule',
    [withJob, [job({ otherSchedule: { cron: '0 4 * * *', timeZone: 'Europe/Vienna', instanceId: 'b', seenAt: NOW } })]],
    {
      severity: 'warning',
      kind: 'jobDiffers',
      sentence:
        'The job "nightly" has two schedules, and runs by both: "0 3 * * *", and "0 4 * * * Europe/Vienna" on b. ' +
        'Its last run started 60 s ago. The next run is due in 60 s.',
      culprit: { instanceId: 'b' },
      command: 'npx nestjs-redis-lock job nightly',
    },
  ],
];

it.each(CASES)('%s is the one finding', (_, seen, { command, ...expected }) => {
  const found = findings(...seen);
  expect(found).toMatchObject([expected]);
  expect(found[0]!.action).toEqual({ text: expect.stringMatching(/\.$/), command });
});

it('each kind has a case, and a section in docs/operations/at-3-am.md', () => {
  expect(new Set(CASES.map(([, , { kind }]) => kind))).toEqual(new Set(FINDING_KINDS));
  const [, sections = ''] = /^## Findings$([^]*?)^## /m.exec(readFileSync('docs/operations/at-3-am.md', 'utf8')) ?? [];
  const titles = [...sections.matchAll(/^### (\w+)$/gm)].map(([, title]) => title);
  expect(new Set(titles)).toEqual(new Set(FINDING_KINDS));
});

describe('there is no finding for', () => {
  it.each<[string, Parameters<typeof findings>]>([
    ['a healthy fleet', [withJob, [job()], healthy]],
    ['a short wait', [fleetOf(fleetInstance('a', { held: [heldLease('x', 32)], waiting: waits(3, 'x', 900) }))]],
    [
      'a deployment',
      [fleetOf(fleetInstance('a', { leaderships: [{ name: 'mailer', isLeader: true, elections: 4 }] }))],
    ],
    [
      'a job of an instance that has not answered',
      [fleetReport({ instances: [fleetInstance('a')], silent: [SHOP] }), [job()]],
    ],
  ])('%s', (name, seen) => {
    expect(findings(...seen).filter(({ kind }) => kind !== 'instanceSilent')).toEqual([]);
  });
});

it('a second stuck resource has a line of its own, and the worst is first', () => {
  const a = fleetInstance('a', { waiting: [...waits(50, 'order:42', 95_000), ...waits(1, 'import:acme', 95_000)] });
  const holder = fleetInstance(SHOP, {
    held: [heldLease('order:42', 32), heldLease('import:acme', 64, { isLeaked: true })],
    blockedMs: 5_000,
  });
  const found = findings(fleetOf(a, holder), [], {
    status: 'degraded',
    problems: [{ code: 'SLOW', message: 'Slow.' }],
  });
  expect(found.map(({ kind, resource }) => [kind, resource])).toEqual([
    ['longWait', 'order:42'],
    ['leaked', 'import:acme'],
    ['redisProblem', undefined],
    ['instanceBlocked', undefined],
  ]);
});

// A shop at work, as the server of the console would tell it: for the tests of the page, and for pictures of it.
/** @typedef {import('../../lib/extras/console/bodies.js').LockRow} LockRow */

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const LEASE_MS = 30 * SECOND;
const RENEWED_EVERY_MS = LEASE_MS / 3;
const VERSION = '0.1.0';

const INSTANCES = [
  ['checkout-1:18:f3a9', 6, 2, 421],
  ['checkout-2:18:0c71', 5, 1, 398],
  ['checkout-3:18:be42', 4, 0, 407],
  ['invoices-1:22:77d0', 2, 0, 38],
  ['jobs-1:31:a41e', 3, 0, 12],
  ['jobs-2:31:9b05', 1, 0, 9],
  ['orders-api-1:27:5ce8', 7, 3, 512],
  ['orders-api-2:27:d214', 6, 2, 498],
  ['orders-api-3:27:81fb', 5, 1, 506],
  ['stock-sync-1:40:6ad3', 3, 0, 64],
  ['stock-sync-2:40:e19c', 2, 1, 57],
];
const SILENT = ['checkout-4:18:2d6f'];

/** Columns: resource, mode, life, instance, group, call site, held for, waiting calls, oldest wait. */
const LEASES = [
  ['cart:c-90417', 'reentrant', 'alive', 'checkout-1:18:f3a9', 'Carts.merge', 'carts.service.ts:88:21', 1_900, 0],
  [
    'catalog:import',
    'write',
    'alive',
    'stock-sync-1:40:6ad3',
    'Catalog.import',
    'catalog.import.ts:41:17',
    92_000,
    2,
    41_000,
  ],
  ['cron:nightly-reorder', 'exclusive', 'alive', 'jobs-1:31:a41e', 'Stock.nightlyReorder', undefined, 214_000, 0],
  [
    'customer:8841:merge',
    'exclusive',
    'alive',
    'orders-api-3:27:81fb',
    'Customers.merge',
    'customers.service.ts:132:9',
    6_200,
    1,
    2_400,
  ],
  [
    'export:datev',
    'exclusive',
    'notRenewed',
    'invoices-1:22:77d0',
    'Exports.datev',
    'datev.export.ts:57:13',
    141_000,
    0,
  ],
  [
    'invoice:2026-11:run',
    'exclusive',
    'alive',
    'invoices-1:22:77d0',
    'Invoices.monthlyRun',
    'invoices.run.ts:34:28',
    431_000,
    1,
    12_000,
  ],
  [
    'leader:outbox-relay',
    'exclusive',
    'alive',
    'orders-api-1:27:5ce8',
    'everything else',
    undefined,
    3 * DAY + 4 * HOUR,
    2,
  ],
  ['leader:price-feed', 'exclusive', 'alive', 'stock-sync-2:40:e19c', 'everything else', undefined, 5 * HOUR, 1],
  [
    'order:48213',
    'exclusive',
    'alive',
    'orders-api-1:27:5ce8',
    'Orders.pay',
    'orders.service.ts:212:31',
    9_800,
    3,
    8_900,
  ],
  ['order:48219', 'exclusive', 'alive', 'checkout-2:18:0c71', 'Orders.place', 'orders.service.ts:97:31', 1_200, 0],
  [
    'order:48220',
    'exclusive',
    'alive',
    'orders-api-2:27:d214',
    'Orders.cancel',
    'orders.service.ts:260:9',
    3_100,
    1,
    2_100,
  ],
  [
    'payments:psp',
    'semaphore',
    'alive',
    'checkout-1:18:f3a9',
    'Payments.capture',
    'payments.service.ts:64:19',
    2_300,
    2,
    1_900,
  ],
  [
    'payments:psp',
    'semaphore',
    'alive',
    'checkout-3:18:be42',
    'Payments.capture',
    'payments.service.ts:64:19',
    1_100,
    2,
    1_900,
  ],
  ['price-list:eu', 'read', 'alive', 'orders-api-2:27:d214', 'Prices.quote', undefined, 700, 0],
  ['price-list:eu', 'read', 'alive', 'checkout-3:18:be42', 'Prices.quote', undefined, 400, 0],
  ['search:reindex', 'exclusive', 'alive', 'jobs-2:31:9b05', 'Search.reindex', 'search.index.ts:28:11', 1_540_000, 0],
  ['shipment:71022', 'exclusive', 'dead', 'orders-api-4:27:c0de', undefined, undefined, 26_000, 1, 22_000],
  [
    'stock:sku-2291',
    'exclusive',
    'alive',
    'stock-sync-1:40:6ad3',
    'Stock.sync',
    'stock.sync.ts:73:15',
    17_400,
    5,
    16_800,
  ],
  ['stock:sku-7710', 'exclusive', 'alive', 'orders-api-3:27:81fb', 'Stock.reserve', 'stock.service.ts:45:27', 900, 0],
  [
    'voucher:SPRING-20',
    'exclusive',
    'released',
    'checkout-2:18:0c71',
    'Vouchers.redeem',
    'vouchers.service.ts:51:9',
    4_300,
    0,
  ],
];

const CELLS = [
  ['Orders.pay', 'Stock.sync', 486_000, 212],
  ['Orders.place', 'Stock.sync', 214_000, 131],
  ['Orders.cancel', 'Orders.pay', 141_000, 48],
  ['Stock.reserve', 'Stock.sync', 98_000, 77],
  ['Prices.quote', 'Catalog.import', 83_000, 19],
  ['Payments.capture', 'Payments.capture', 61_000, 340],
  ['Invoices.correct', 'Invoices.monthlyRun', 42_000, 3],
  ['Orders.pay', 'Orders.cancel', 12_400, 14],
  ['Stock.reserve', 'Catalog.import', 9_100, 4],
  ['Carts.merge', 'Orders.place', 2_300, 6],
];

const JOBS = [
  ['nightly-reorder', '0 2 * * *', 'Europe/Berlin', 'ooooooxooooooR', 0],
  ['outbox-sweep', '*/5 * * * *', undefined, 'oooooooooooooo', 0],
  ['invoice-reminders', '0 8 * * 1-5', 'Europe/Berlin', 'ooooooooooxooo', 0],
  ['price-feed', '*/15 * * * *', undefined, 'oooolooooooooo', 0],
  ['datev-export', '30 4 1 * *', 'Europe/Berlin', 'ooooox', 0],
  ['cart-expiry', '*/10 * * * *', undefined, 'oooommoooooooo', 2],
  ['newsletter', '0 17 * * 4', 'Europe/Berlin', 'oooo', 0],
  ['stock-snapshot', '0 * * * *', undefined, 'oooooocooooooo', 0],
];

/**
 * The bodies of each view.
 *
 * @param {object} [world]
 * @param {number} [world.from] when it began, in epoch milliseconds
 * @param {readonly string[]} [world.actions] the actions that the page may offer
 * @param {number} [world.locks] the number of locks beside the shop's
 * @param {number} [world.instances] the number of instances beside the shop's
 * @param {boolean} [world.isCalm] `true` for no waiters and no findings
 * @param {readonly string[]} [world.resources] names of further locks
 */
export function shop({
  from = Date.now(),
  actions = [],
  locks = 0,
  instances = 0,
  isCalm = false,
  resources = [],
} = {}) {
  let token = 1_791_763_000_001;
  const rowOf = ([resource, mode, life, instanceId, group, callSite, heldMs, waiters = 0, oldest]) => {
    const fencingToken = (token += 17);
    return {
      key: `${resource} ${fencingToken}`,
      resource,
      mode,
      life,
      instanceId,
      group,
      callSite,
      fencingToken,
      since: from - heldMs,
      waiters,
      ...(oldest && { oldestWaitSince: from - oldest }),
    };
  };
  const many = Array.from({ length: locks }, (_, place) => [
    `order:${100_000 + place}`,
    'exclusive',
    'alive',
    INSTANCES[place % INSTANCES.length][0],
    'Orders.pay',
    'orders.service.ts:212:31',
    1_000 + ((place * 37) % 60_000),
    0,
  ]);
  const own = isCalm ? LEASES.filter(([, , life, , , , , waiters]) => life === 'alive' && !waiters) : LEASES;
  const named = resources.map((resource) => [
    resource,
    'exclusive',
    'alive',
    'checkout-1:18:f3a9',
    resource,
    resource,
    900_000,
    1,
    800_000,
  ]);
  const leases = [...own, ...named, ...many].map(rowOf);
  /** As far as its holder lives, it is renewed. @type {(row: any, at: number) => LockRow} */
  const renewed = (row, at) => {
    const isFixed = row.life === 'notRenewed';
    const isDead = row.life === 'dead';
    const age = at - row.since;
    const last = row.life === 'alive' ? age - (age % RENEWED_EVERY_MS) : 0;
    return {
      ...row,
      until: isFixed ? row.since + 10 * MINUTE : isDead ? from + 4_000 + LEASE_MS / 3 : row.since + last + LEASE_MS,
    };
  };
  const silent = isCalm ? [] : SILENT;
  const heard = INSTANCES.length + instances;
  const fleet = {
    completeness: silent.length > 0 ? 'partial' : 'complete',
    heard,
    asked: heard + silent.length,
    silent,
    silentCount: silent.length,
    unreadable: 0,
    unlistedHeld: 0,
    unlistedWaiting: 0,
  };
  const head = (at) => ({ schemaVersion: 1, service: 'default', at });
  const waits = () =>
    leases.filter(({ oldestWaitSince }) => oldestWaitSince).sort((a, b) => a.oldestWaitSince - b.oldestWaitSince);
  return {
    session: (at) => ({
      ...head(at),
      version: VERSION,
      title: 'Garden & Tools shop',
      services: ['default'],
      actions,
      historyMessages: true,
      leaseMs: LEASE_MS,
    }),

    now(at) {
      const waiting = leases.reduce((sum, { waiters }) => sum + waiters, 0);
      const [oldest] = waits();
      return {
        ...head(at),
        fleet,
        findings: isCalm ? [] : findingsOf(from),
        redis: { status: 'up', topology: 'sentinel', roundTripMs: 0.6, problems: [] },
        held: leases.length,
        waiting,
        oldestWaitSince: oldest?.oldestWaitSince ?? null,
        lastMinute: {
          forMs: MINUTE,
          acquired: 2_514 + Math.floor((at - from) / 700),
          notAcquired: isCalm ? 0 : 31,
          lost: 0,
          timedOut: isCalm ? 0 : 4,
        },
        locks: leases
          .map((row) => renewed(row, at))
          .sort(byTrouble)
          .slice(0, 10),
        lockCount: leases.length,
      };
    },

    locks(at, query) {
      const filter = (query.get('filter') ?? '').toLowerCase();
      const [group, state, sort = 'trouble'] = ['group', 'state', 'sort'].map((name) => query.get(name) || undefined);
      const by = { wait: 'oldestWaitSince', instance: 'instanceId' }[sort.replace('-', '')] ?? sort.replace('-', '');
      const rows = leases
        .map((row) => renewed(row, at))
        .filter(
          (row) =>
            !filter ||
            [row.resource, row.instanceId, row.group, row.callSite].some((text) =>
              text?.toLowerCase().includes(filter),
            ),
        )
        .filter((row) => !group || row.group === group)
        .filter((row) => state !== 'waited' || row.waiters > 0)
        .filter((row) => state !== 'trouble' || !['alive', 'released'].includes(row.life))
        .sort((a, b) =>
          by === 'trouble'
            ? byTrouble(a, b)
            : (a[by] === b[by] ? 0 : (a[by] ?? '') < (b[by] ?? '') ? -1 : 1) * (sort.startsWith('-') ? -1 : 1),
        );
      const groups = [...new Set(leases.flatMap((row) => row.group ?? []))].sort((a, b) => (a < b ? -1 : 1));
      return { ...head(at), fleet, rows: rows.slice(0, Number(query.get('limit') || 100)), total: rows.length, groups };
    },

    lock(at, query) {
      const resource = query.get('resource') ?? '';
      const holders = leases.filter((row) => row.resource === resource).map((row) => renewed(row, at));
      const [first] = holders;
      const waiters = first?.waiters ?? 0;
      const ids = [
        'orders-api-2:27:d214',
        'checkout-1:18:f3a9',
        'orders-api-3:27:81fb',
        'checkout-3:18:be42',
        'stock-sync-2:40:e19c',
      ];
      const groups = ['Orders.pay', 'Orders.place', 'Stock.reserve', 'Orders.pay', 'Orders.pay'];
      const calls = Array.from({ length: waiters }, (_, place) => ({
        key: `${ids[place % 5]}/${place}`,
        instanceId: ids[place % 5],
        mode: first.mode,
        since: from - (first.oldestWaitSince ? from - first.oldestWaitSince : 0) + place * 2_700,
        group: groups[place % 5],
        callSite: 'orders.service.ts:212:31',
        ...(place === 0 && { holds: ['order:48231'] }),
      }));
      return {
        ...head(at),
        fleet,
        resource,
        mode: first?.mode ?? 'free',
        cause: first ? 'holderSlow' : 'free',
        sentences: first
          ? [
              `"${resource}" is held by ${first.instanceId} for 21 s (mode ${first.mode}, token ${first.fencingToken}).`,
              'It was last renewed 1.4 s ago, in time: the lease has 28 s left.',
              `${waiters} calls in all: the oldest has waited for 21 s.`,
              'The holder is alive and slow.',
            ]
          : [`"${resource}" is free: no process holds it, and none waits for it.`],
        holders: holders.map((row) => ({
          ...row,
          leaseMs: LEASE_MS,
          depth: 1,
          conclusion:
            row.life === 'alive'
              ? `renewed between two checks: the holder is alive. Its work: ${row.group} ${row.callSite}.`
              : 'not subscribed, and two renewals are missing: the holder is dead, free in 8 s.',
        })),
        holderCount: holders.length,
        queue: calls,
        queueCount: calls.length,
        calls,
        callCount: calls.length,
        ...(first?.mode === 'semaphore' && { permits: { total: 4, available: 2 } }),
      };
    },

    blockers: (at) => ({
      ...head(at),
      fleet,
      cells: isCalm ? [] : CELLS.map(([waiter, holder, waitedMs, calls]) => ({ waiter, holder, waitedMs, calls })),
      cellCount: isCalm ? 0 : CELLS.length,
      now: isCalm
        ? []
        : [
            { waiter: 'Orders.pay', holder: 'Stock.sync', waitedMs: 16_800 + at - from, calls: 5 },
            { waiter: 'Prices.quote', holder: 'Catalog.import', waitedMs: 41_000 + at - from, calls: 2 },
            { waiter: 'Orders.cancel', holder: 'Orders.pay', waitedMs: 8_900 + at - from, calls: 3 },
          ],
      isCounting: true,
      deadlocks: [],
    }),

    jobs(at, query) {
      const filter = query.get('filter') ?? '';
      const state = query.get('state');
      const all = JOBS.map((job) => jobOf(job, from));
      const rows = all
        .filter((row) => row.name.includes(filter))
        .filter(
          (row) =>
            !state ||
            row.state === state ||
            (state === 'missed' && row.missed > 0) ||
            (state === 'failed' && !['ok', undefined].includes(row.lastRun?.outcome)),
        )
        .sort((a, b) => (a.name < b.name ? -1 : 1));
      return { ...head(at), rows, total: rows.length };
    },

    job(at, query) {
      const found = JOBS.find(([name]) => name === query.get('name'));
      if (!found) return undefined;
      const { history, ...row } = jobOf(found, from);
      return {
        ...head(at),
        job: row,
        instances: ['jobs-1:31:a41e', 'jobs-2:31:9b05'].map((instanceId, place) => ({
          instanceId,
          seenAt: from - 4_000 - place * 9_000,
        })),
        runs: history,
      };
    },

    leaders(at) {
      const rows = [
        ['outbox-relay', 'orders-api-1:27:5ce8', 3 * DAY + 4 * HOUR, 2, 1],
        ['price-feed', 'stock-sync-2:40:e19c', 5 * HOUR, 1, 3],
        ['search-indexer', 'jobs-2:31:9b05', 26 * HOUR, 1, 0],
      ].map(([name, instanceId, leadsMs, candidates, elections], place) => {
        const since = from - leadsMs - 3_100 * place;
        return {
          name,
          instanceId,
          life: 'alive',
          fencingToken: 1_700_000 + place,
          since,
          until: at + LEASE_MS - ((at - since) % RENEWED_EVERY_MS),
          candidates,
          elections,
        };
      });
      return { ...head(at), fleet, rows, total: rows.length };
    },

    instances(at, query) {
      const filter = query.get('filter') ?? '';
      const isTrouble = query.get('state') === 'trouble';
      const many = Array.from({ length: instances }, (_, place) => [
        `orders-api-${10 + place}:27:aa${place}`,
        place % 9,
        0,
        400 + (place % 50),
      ]);
      const all = [
        ...silent.map((instanceId) => ({ instanceId, state: 'silent' })),
        ...[...INSTANCES, ...many].map(([instanceId, held, waiting, acquired], place) => ({
          instanceId,
          state: 'up',
          version: VERSION,
          startedAt: from - (place % 4 === 3 ? 5 * HOUR : 3 * DAY + 4 * HOUR),
          loopDelayMs: place === 9 ? 312 : 1 + (place % 5),
          blockedMs: place === 9 ? 1_840 : 12,
          hearing: place !== 10 || isCalm,
          held,
          waiting,
          leads: { 6: ['outbox-relay'], 10: ['price-feed'], 5: ['search-indexer'] }[place] ?? [],
          jobs: instanceId.startsWith('jobs') ? 8 : 0,
          acquired,
        })),
      ];
      const rows = all
        .filter(({ instanceId }) => instanceId.includes(filter))
        .filter(({ state, hearing, blockedMs }) => !isTrouble || state !== 'up' || !hearing || blockedMs > SECOND);
      return { ...head(at), fleet, rows: rows.slice(0, Number(query.get('limit') || 100)), total: rows.length };
    },
  };
}

/** Waited for the longest first, then what is held for the longest time. */
function byTrouble(a, b) {
  const rank = ({ oldestWaitSince, life }) =>
    (oldestWaitSince ? 2 : 0) + (['alive', 'released', 'notRenewed'].includes(life) ? 0 : 1);
  const since = ({ oldestWaitSince, since: from }) => oldestWaitSince ?? from;
  return rank(b) - rank(a) || since(a) - since(b);
}

/** @returns {import('../../lib/features/fleet/core/findings/finding.js').Finding[]} */
function findingsOf(from) {
  const finding = (severity, kind, sentence, text, command, more = {}) => {
    return { severity, kind, sentence, action: { text, command: `npx nestjs-redis-lock ${command}` }, ...more };
  };
  return [
    finding(
      'critical',
      'holderDead',
      '"shipment:71022" is held by orders-api-4:27:c0de, which is dead. 1 call has waited for 22 s. It is free in 14 s.',
      'No work runs under it: wait until it expires, or end the lease.',
      'release shipment:71022 --token 1791763000273',
      {
        resource: 'shipment:71022',
        culprit: { instanceId: 'orders-api-4:27:c0de' },
        since: from - 22_000,
        blocked: { calls: 1, works: ['Shipments.label'] },
      },
    ),
    finding(
      'warning',
      'longWait',
      '"stock:sku-2291": 5 calls wait, the oldest for 17 s. It is held by Stock.sync on stock-sync-1:40:6ad3 for 17 s, which is alive.',
      'Look at what it does. It keeps working even if you end the lease.',
      'who stock-sync-1:40:6ad3',
      {
        resource: 'stock:sku-2291',
        culprit: { instanceId: 'stock-sync-1:40:6ad3', work: 'Stock.sync', callSite: 'stock.sync.ts:73:15' },
        since: from - 16_800,
        blocked: { calls: 5, works: ['Orders.pay', 'Orders.place', 'Stock.reserve'] },
      },
    ),
    finding(
      'warning',
      'instanceSilent',
      'checkout-4:18:2d6f does not answer: it is frozen, too busy, or of another version.',
      'Look at its process, or restart it.',
      'who checkout-4:18:2d6f',
      { culprit: { instanceId: 'checkout-4:18:2d6f' } },
    ),
    finding(
      'warning',
      'jobMissed',
      'The job "cart-expiry" missed its last 2 ticks: no instance claimed them. Its last run started 22 min ago. It is due in 7 min 23 s.',
      'Look for instances that were down or blocked at that time. To catch up, run it now.',
      'job cart-expiry --run',
      { resource: 'cart-expiry', since: from - 160_000 },
    ),
    finding(
      'note',
      'jobPaused',
      'The job "newsletter" was paused by ann@garden.example 3 h ago, for another 14 h. Its last run started 5 d ago.',
      'Resume it if the reason no longer holds.',
      'job newsletter --resume',
      { resource: 'newsletter', since: from - 3 * HOUR },
    ),
  ];
}

const OUTCOMES = { o: 'ok', x: 'error', l: 'lost', c: 'crashed', m: 'missed', R: undefined };

function jobOf([name, cron, timeZone, ends, missed], from) {
  const everyMs = cron.startsWith('*/') ? Number(/\d+/.exec(cron)[0]) * MINUTE : cron === '0 * * * *' ? HOUR : DAY;
  const slot = from - (from % everyMs);
  const history = [...ends].toReversed().map((end, place) => {
    const outcome = OUTCOMES[end];
    const startedAt =
      end === 'R'
        ? from - 214_000
        : slot - (place + (ends.endsWith('R') ? 0 : everyMs === DAY ? 0 : 0)) * everyMs + 140;
    return {
      tick: new Date(startedAt - 140).toISOString(),
      startedAt,
      ...(outcome &&
        outcome !== 'missed' &&
        outcome !== 'crashed' && { endedAt: startedAt + 1_400 + ((place * 977) % 2_600) }),
      ...(outcome && { outcome }),
      instanceId: place % 3 === 1 ? 'jobs-2:31:9b05' : 'jobs-1:31:a41e',
      rerun: false,
      manual: name === 'invoice-reminders' && place === 2,
      ...(name === 'invoice-reminders' && place === 2 && { by: 'ann@garden.example' }),
      catchUp: false,
      ...(outcome === 'error' && {
        errorName: 'PrinterTimeoutError',
        errorCode: 'ETIMEDOUT',
        errorMessage: 'no answer from the mail gateway in 30 s',
      }),
    };
  });
  const [lastRun] = history;
  const isPaused = name === 'newsletter';
  const running = lastRun.outcome === undefined ? lastRun : undefined;
  return {
    name,
    state: running ? 'running' : isPaused ? 'paused' : 'waits',
    cron,
    ...(timeZone && { timeZone }),
    nextDueAt: slot + everyMs,
    ...(running && { running }),
    lastRun,
    lastSuccessAt: history.find(({ outcome }) => outcome === 'ok')?.endedAt,
    ...(isPaused && { pause: { at: from - 3 * HOUR, by: 'ann@garden.example', until: from + 14 * HOUR } }),
    missed,
    instanceCount: 2,
    history,
  };
}

// A shop at work, for the tests of the page and for pictures of it. The console derives all that it shows from these facts.
import type { SeenJob } from '../../lib/features/fleet/core/findings/finding.js';
import type { JobRun } from '../../lib/features/jobs/core/job-info.js';
import { OTHER_GROUP } from '../../lib/kernel/api/holder.js';
import type { LockMode } from '../../lib/kernel/api/lock-mode.js';
import { FleetSource } from '../../test/extras/console/fleet-source.js';
import { fleetInstance, heldLease, unlistedHolder, waitingCall } from '../../test/features/fleet/fleet-reports.js';

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const LEASE_MS = 30 * SECOND;
const RENEWED_EVERY_MS = LEASE_MS / 3;
const FIXED_MS = 10 * MINUTE;
const ANN = 'ann@garden.example';

type Row = readonly [string, string, string, string, string, string];

/** Rows, whose cells are two spaces or more apart. */
const table = (text: string): Row[] => {
  const lines = text.trim().split('\n');
  return lines.map((line) => line.trim().split(/\s{2,}/) as unknown as Row);
};

/** Columns: instance, grants a minute, age in hours. */
const INSTANCES = table(`
  checkout-1:18:f3a9    421  76
  checkout-2:18:0c71    398  76
  checkout-3:18:be42    407  76
  invoices-1:22:77d0    38   5
  jobs-1:31:a41e        12   76
  jobs-2:31:9b05        9    76
  orders-api-1:27:5ce8  512  77
  orders-api-2:27:d214  498  5
  orders-api-3:27:81fb  506  76
  stock-sync-1:40:6ad3  64   76
  stock-sync-2:40:e19c  57   76
`);
const SILENT = 'checkout-4:18:2d6f';
const DEAF = 'stock-sync-2:40:e19c';
const SLOW = 'stock-sync-1:40:6ad3';

/** Columns: resource, mode (`fixed`: exclusive and not renewed), instance, seconds, group, call site. */
const LEASES = table(`
  cart:c-90417           reentrant  checkout-1:18:f3a9    1.9    Carts.merge           carts.service.ts:88:21
  catalog:import         write      stock-sync-1:40:6ad3  92     Catalog.import        catalog.import.ts:41:17
  cron:nightly-reorder   exclusive  jobs-1:31:a41e        214    Stock.nightlyReorder  stock.jobs.ts:19:5
  customer:8841:merge    exclusive  orders-api-3:27:81fb  6.2    Customers.merge       customers.service.ts:132:9
  export:datev           fixed      invoices-1:22:77d0    141    Exports.datev         datev.export.ts:57:13
  invoice:2026-11:run    exclusive  invoices-1:22:77d0    431    Invoices.monthlyRun   invoices.run.ts:34:28
  order:48213            exclusive  orders-api-1:27:5ce8  9.8    Orders.pay            orders.service.ts:212:31
  order:48219            exclusive  checkout-2:18:0c71    1.2    Orders.place          orders.service.ts:97:31
  order:48220            exclusive  orders-api-2:27:d214  3.1    Orders.cancel         orders.service.ts:260:9
  order:48231            exclusive  orders-api-2:27:d214  16.9   Orders.ship           shipping.service.ts:77:9
  payments:psp           semaphore  checkout-1:18:f3a9    2.3    Payments.capture      payments.service.ts:64:19
  payments:psp           semaphore  checkout-3:18:be42    1.1    Payments.capture      payments.service.ts:64:19
  price-list:eu          read       orders-api-2:27:d214  0.7    Prices.quote          prices.service.ts:30:11
  price-list:eu          read       checkout-3:18:be42    0.4    Prices.quote          prices.service.ts:30:11
  search:reindex         exclusive  jobs-2:31:9b05        1540   Search.reindex        search.index.ts:28:11
  stock:sku-2291         exclusive  stock-sync-1:40:6ad3  17.4   Stock.sync            stock.sync.ts:73:15
  stock:sku-7710         exclusive  orders-api-3:27:81fb  0.9    Stock.reserve         stock.service.ts:45:27
  leader:outbox-relay    exclusive  orders-api-1:27:5ce8  273600  -
  leader:price-feed      exclusive  stock-sync-2:40:e19c  18000   -
  leader:search-indexer  exclusive  jobs-2:31:9b05        93600   -
`);
const DEAD = { resource: 'shipment:71022', instanceId: 'orders-api-4:27:c0de', heldMs: 26 * SECOND };

/** Columns: resource, instance, seconds, group, what its caller holds. */
const WAITS = table(`
  catalog:import       orders-api-2:27:d214  2.9   Prices.quote
  catalog:import       checkout-1:18:f3a9    2.2   Prices.quote
  customer:8841:merge  checkout-1:18:f3a9    2.4   Customers.merge
  invoice:2026-11:run  invoices-1:22:77d0    2.6   Invoices.correct
  order:48213          orders-api-2:27:d214  2.8   Orders.cancel
  order:48213          checkout-3:18:be42    1.7   Orders.place
  order:48213          orders-api-3:27:81fb  1.2   Orders.pay
  order:48220          orders-api-3:27:81fb  2.1   Orders.pay
  payments:psp         checkout-2:18:0c71    1.9   Payments.capture
  payments:psp         checkout-2:18:0c71    0.8   Payments.capture
  shipment:71022       orders-api-3:27:81fb  22    Shipments.label
  stock:sku-2291       orders-api-2:27:d214  16.8  Orders.pay     order:48231
  stock:sku-2291       checkout-1:18:f3a9    14.1  Orders.place
  stock:sku-2291       orders-api-3:27:81fb  11.4  Stock.reserve
  stock:sku-2291       checkout-3:18:be42    8.7   Orders.pay
  stock:sku-2291       stock-sync-2:40:e19c  6     Orders.pay
`);

/** Columns: group that waited, group of the holder, seconds, calls. */
const BLOCKERS = table(`
  Orders.pay        Stock.sync           486   212
  Orders.place      Stock.sync           214   131
  Orders.cancel     Orders.pay           141   48
  Stock.reserve     Stock.sync           98    77
  Prices.quote      Catalog.import       83    19
  Payments.capture  Payments.capture     61    340
  Invoices.correct  Invoices.monthlyRun  42    3
  Orders.pay        Orders.cancel        12.4  14
  Stock.reserve     Catalog.import       9.1   4
  Carts.merge       Orders.place         2.3   6
`);

/** Columns: leadership, elections lately, leader and candidates. */
const LEADERSHIPS = table(`
  outbox-relay    1  orders-api-1:27:5ce8  orders-api-2:27:d214  orders-api-3:27:81fb
  price-feed      3  stock-sync-2:40:e19c  stock-sync-1:40:6ad3
  search-indexer  0  jobs-2:31:9b05        jobs-1:31:a41e
`);

/** Columns: name, expression, time zone, how the runs ended, the newest last. */
const JOBS = table(`
  cart-expiry        */10 * * * *  -              oooooooooooomm
  datev-export       30 4 1 * *    Europe/Berlin  ooooox
  invoice-reminders  0 8 * * 1-5   Europe/Berlin  ooooooooooxooo
  newsletter         0 17 * * 4    Europe/Berlin  oooo
  nightly-reorder    0 2 * * *     Europe/Berlin  ooooooxooooooR
  outbox-sweep       */5 * * * *   -              oooooooooooooo
  price-feed         */15 * * * *  -              oooolooooooooo
  stock-snapshot     0 * * * *     -              oooooocooooooo
`);
const OUTCOMES: Readonly<Record<string, JobRun['outcome']>> = {
  o: 'ok',
  x: 'error',
  l: 'lost',
  c: 'crashed',
  m: 'missed',
};

interface Lease {
  readonly resource: string;
  readonly mode: string;
  readonly instanceId: string;
  readonly since: number;
  readonly group: string;
  readonly callSite?: string;
  readonly fencingToken: number;
}
interface Wait extends Pick<Lease, 'resource' | 'instanceId' | 'since' | 'group'> {
  readonly holds?: string | undefined;
}

export interface World {
  /** When it is as the tables say, in epoch milliseconds. */
  readonly from?: number;
  /** The number of locks beside the shop's. */
  readonly locks?: number;
  /** `true` for no waiting calls and no findings. */
  readonly isCalm?: boolean;
  /** Names of further locks, each with a call that waits. */
  readonly resources?: readonly string[];
}

export class Shop extends FleetSource {
  leases: readonly Lease[];
  waits: readonly Wait[];
  /** What is known of a process without a subscription. */
  deadLife: 'dead' | 'unknown' = 'dead';
  readonly #from: number;
  readonly #isCalm: boolean;

  constructor({ from = Date.now(), locks = 0, isCalm = false, resources = [] }: World = {}) {
    super();
    this.#from = from;
    this.#isCalm = isCalm;
    const isWaited = ([resource, mode]: Row): boolean => mode === 'fixed' || WAITS.some(([name]) => name === resource);
    const checkout = { instanceId: 'checkout-1:18:f3a9' };
    this.leases = [
      ...LEASES.filter((row) => !(isCalm && isWaited(row))).map(
        ([resource, mode, instanceId, seconds, group, callSite]) => {
          const since = from - Number(seconds) * SECOND;
          return { resource, mode, instanceId, since, group: group === '-' ? OTHER_GROUP : group, callSite };
        },
      ),
      ...resources.map((name) => ({
        ...checkout,
        resource: name,
        mode: 'exclusive',
        since: from - 15 * MINUTE,
        group: name,
      })),
      ...Array.from({ length: locks }, (_, place) => ({
        resource: `order:${100_000 + place}`,
        mode: 'exclusive',
        instanceId: INSTANCES[place % INSTANCES.length]![0],
        since: from - SECOND - ((place * 37) % MINUTE),
        group: 'Orders.pay',
      })),
    ].map((lease, place) => ({ ...lease, fencingToken: 1_791_763_008 + 64 * place }));
    this.waits = [
      ...(isCalm ? [] : WAITS).map(([resource, instanceId, seconds, group, holds]) => {
        return { resource, instanceId, since: from - Number(seconds) * SECOND, group, holds };
      }),
      ...resources.map((resource) => ({ ...checkout, resource, since: from - 13 * MINUTE, group: 'Orders.pay' })),
    ];
    this.seenJobs = JOBS.map((row) => this.#jobOf(row));
    this.silent = isCalm ? [] : [SILENT];
  }

  /** Lets time pass: leases are renewed, and what begins later is not there yet. */
  passTo(at: number): void {
    this.at = at;
    const isCalm = this.#isCalm;
    const begun = <T extends { readonly since: number }>(all: readonly T[]) => all.filter(({ since }) => since <= at);
    this.instances = INSTANCES.map(([instanceId, grants, hours], place) => {
      const own = <T extends { readonly instanceId: string }>(all: readonly T[]) =>
        all.filter((each) => each.instanceId === instanceId);
      const [isDeaf, isSlow] = [DEAF, SLOW].map((each) => !isCalm && each === instanceId);
      const timedOut = isCalm || place > 3 || at < this.#from - 2 * MINUTE ? 0 : 1;
      return fleetInstance(instanceId, {
        uptimeMs: at - this.#from + Number(hours) * HOUR,
        loopDelayMs: isSlow ? 312 : 1 + (place % 5),
        blockedMs: isSlow ? 1_840 : 12,
        hearing: !isDeaf,
        held: own(begun(this.leases)).map((lease) => this.#held(lease)),
        waiting: own(begun(this.waits)).map(({ resource, since, group, holds }, call) => {
          const held = this.leases.filter((lease) => lease.resource === holds);
          const nested = held.length > 0 && { callSite: 'orders.service.ts:212:31' };
          return waitingCall(call + 1, resource, { waitedMs: at - since, group, holds: held, ...nested });
        }),
        leaderships: LEADERSHIPS.flatMap(([name, elections, leader, ...candidates]) => {
          const isLeader = leader === instanceId;
          if (!isLeader && !candidates.includes(instanceId)) return [];
          return { name, isLeader, elections: isLeader ? Number(elections) : 0 };
        }),
        jobs: instanceId.startsWith('jobs') ? JOBS.map(([name]) => name) : [],
        lastMinute: {
          forMs: MINUTE,
          acquired: Math.round(Number(grants) * (1 + Math.sin(at / MINUTE + place / 9) / 9)),
          notAcquired: timedOut,
          lost: 0,
          timedOut,
        },
        timeouts: timedOut > 0 ? [{ resource: 'stock:sku-2291', calls: timedOut }] : [],
        blockers: (isCalm ? [] : BLOCKERS.slice(place * 5, place * 5 + 5)).map(([waiter, holder, seconds, calls]) => {
          return { waiter, holder, waitedMs: Number(seconds) * SECOND, calls: Number(calls) };
        }),
      });
    });
    const { resource, instanceId, heldMs } = DEAD;
    const ageMs = at - this.#from;
    const lease = {
      fencingToken: 1_791_762_944,
      heldMs: heldMs + ageMs,
      ttlMs: Math.max(0, 9 * SECOND - ageMs),
      life: this.deadLife,
    };
    this.unlisted = isCalm || heldMs + ageMs < 0 ? [] : [unlistedHolder(resource, instanceId, lease)];
  }

  #held({ resource, mode, since, group, callSite, fencingToken }: Lease) {
    const heldMs = this.at - since;
    const isRenewed = mode !== 'fixed';
    return heldLease(resource, fencingToken, {
      mode: isRenewed ? (mode as LockMode) : 'exclusive',
      heldMs,
      leftMs: isRenewed ? LEASE_MS - (heldMs % RENEWED_EVERY_MS) : FIXED_MS - heldMs,
      group,
      isRenewed,
      ...(callSite !== undefined && { callSite }),
    });
  }

  #jobOf([name, cron, zone, ends]: Row): SeenJob {
    const from = this.#from;
    const everyMs = cron.startsWith('*/') ? Number(/\d+/.exec(cron)![0]) * MINUTE : cron === '0 * * * *' ? HOUR : DAY;
    const slot = from - (from % everyMs);
    const instances = ['jobs-1:31:a41e', 'jobs-2:31:9b05'].map((instanceId) => ({ instanceId, seenAt: from - 4_000 }));
    const runs = Array.from(this.#isCalm ? 'oooooo' : ends)
      .toReversed()
      .map((end, place): JobRun => {
        const outcome = OUTCOMES[end];
        const startedAt = (outcome ? slot - place * everyMs : from - 214 * SECOND) + 140;
        const manual = name === 'invoice-reminders' && place === 2;
        const hasEnded = outcome === 'ok' || outcome === 'error' || outcome === 'lost';
        return {
          tick: new Date(startedAt - 140).toISOString(),
          startedAt,
          instanceId: instances[place % 3 === 1 ? 1 : 0]!.instanceId,
          rerun: false,
          manual,
          catchUp: false,
          ...(outcome && { outcome }),
          ...(hasEnded && { endedAt: startedAt + everyMs / 400 + ((place * 977) % 2_600) }),
          ...(manual && { by: ANN }),
          ...(outcome === 'error' && {
            errorName: 'PrinterTimeoutError',
            errorCode: 'ETIMEDOUT',
            errorMessage: 'no answer from the mail gateway in 30 s',
          }),
        };
      });
    const lastRun = runs[0]!;
    const lastSuccessAt = runs.find(({ outcome }) => outcome === 'ok')?.endedAt;
    const isPaused = name === 'newsletter' && !this.#isCalm;
    return {
      job: {
        name,
        isHere: false,
        cron,
        ...(zone !== '-' && { timeZone: zone }),
        ...(isPaused
          ? { pause: { at: from - 3 * HOUR, by: ANN, until: from + 14 * HOUR } }
          : { nextDueAt: slot + everyMs }),
        ...(lastRun.outcome === undefined && { running: lastRun }),
        lastRun,
        ...(lastSuccessAt !== undefined && { lastSuccessAt }),
        missed: runs.filter(({ outcome }) => outcome === 'missed').length,
        instances,
        instanceCount: instances.length,
      },
      runs,
    };
  }
}

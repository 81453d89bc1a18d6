import { fileURLToPath } from 'node:url';
import { Prometheus } from '../../../test/support/prometheus/prometheus.js';
import { useRedis } from '../../../test/support/redis/redis-server.js';
import type { ShopProcess } from '../../demo/shop-process.mjs';
import { waitUntil } from '../../demo/wait-until.mjs';
import { useFleet } from '../use-fleet.js';
import { ALERTS, asGrafanaAsks, dashboard, valuesQuery } from './dashboard.js';

/** The third instance is the slow one of the story: its payments take long. */
const SLOW_PAYMENT_MS = 500;

const redis = useRedis();
const fleet = useFleet(
  redis,
  [{ name: 'shop-1' }, { name: 'shop-2' }, { name: 'shop-3', env: { PAYMENT_MS: String(SLOW_PAYMENT_MS) } }],
  // The report never runs, also at midnight. A stocktaking takes longer than several scrapes.
  { DRAW_SCHEDULE: '* * * * * *', REPORT_SCHEDULE: '0 0 29 2 *', SHELF_MS: '800' },
);
const shop = (number: 1 | 2 | 3): ShopProcess => fleet().named(`shop-${number}`)!;
const fast = (index: number): ShopProcess => shop(index % 2 === 0 ? 1 : 2);

let prometheus: Prometheus;
beforeAll(async () => {
  const targets = fleet().shops.map(({ url }) => url);
  prometheus = await Prometheus.start({ targets, rules: [fileURLToPath(ALERTS)] });
  // The series of decorated methods are there before anything has happened.
  await prometheus.scraped();
}, 120_000);
afterAll(async () => {
  await prometheus?.stop();
});

/** The value of a metric, over all instances. */
const sum = (series: string): Promise<number> => prometheus.value(`sum(nestjs_redis_lock_${series})`);

describe('before anything has happened', () => {
  it.each([
    ['acquire_total{lock_group="StockService.order",outcome="acquired"}'],
    ['held{lock_group="StocktakingService.count"}'],
    ['lost_total{lock_group="CheckoutService.checkOut",reason="notRenewed"}'],
    ['once_calls_total{lock_group="BestsellersService.read",outcome="run"}'],
    ['job_runs_total{lock_job="nightly-report",outcome="ok"}'],
    ['job_last_success{lock_job="nightly-report"}'],
  ])('%s is 0 in each of three processes', async (series) => {
    const samples = await prometheus.query(`sum by (instance) (nestjs_redis_lock_${series})`);
    expect(samples.map(({ value }) => value)).toEqual([0, 0, 0]);
  });
});

describe('after a known load', () => {
  const ORDERS = 30;
  const PAYMENT_MS = 20;
  const order = '{lock_group="StockService.order"}';

  beforeAll(async () => {
    await shop(1).put('/stock/tea', { units: ORDERS });
    const answers = await Promise.all(Array.from({ length: ORDERS }, (_, i) => fast(i).post('/stock/tea/orders')));
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(ORDERS);
    await prometheus.scraped();
  }, 120_000);

  it('every call and every lease was counted, where it was made', async () => {
    const samples = await prometheus.query(
      'sum by (instance) (nestjs_redis_lock_acquire_total{lock_group="StockService.order",outcome="acquired"})',
    );
    const byUrl = new Map(samples.map(({ labels, value }) => [`http://${labels['instance']}`, value]));
    expect(fleet().shops.map(({ url }) => byUrl.get(url))).toEqual([ORDERS / 2, ORDERS / 2, 0]);
    expect(await sum(`acquire_total${order}`)).toBe(ORDERS);
    expect(await sum(`wait_time_count${order}`)).toBe(ORDERS);
    expect(await sum(`hold_time_count${order}`)).toBe(ORDERS);
    expect(await sum(`hold_time_bucket{lock_group="StockService.order",le="+Inf"}`)).toBe(ORDERS);
  });

  it('nothing is held, and no call waits', async () => {
    expect(await sum(`held${order}`)).toBe(0);
    expect(await sum(`waiting${order}`)).toBe(0);
  });

  it('the times are those of the work, in seconds', async () => {
    const heldS = await sum(`hold_time_sum${order}`);
    expect(heldS).toBeGreaterThan((ORDERS * PAYMENT_MS * 0.9) / 1_000);
    expect(heldS).toBeLessThan(20);
    // They are all sent at once: most find the lock taken. How many are in front of each depends on how fast they arrive.
    const waitedS = await sum(`wait_time_sum${order}`);
    expect(waitedS).toBeGreaterThan(heldS);
    expect(waitedS).toBeLessThan(ORDERS * 20);
    expect(await sum(`blocked_time_total${order}`)).toBeGreaterThan(waitedS / 2);
    expect(await sum(`blocked_time_total${order}`)).toBeLessThan(waitedS * 1.1);
  });

  it('a lease is seen while it is held, and a call that found it taken', async () => {
    const count = shop(1).post('/stock/tea/counts');
    await waitUntil('the stocktaking runs', async () => (await shop(1).lock('count:tea')).holders.length > 0);
    expect((await shop(2).post('/stock/tea/counts')).status).toBe(423);
    await waitUntil('Prometheus sees the stocktaking', async () => {
      return (await sum('held{lock_group="StocktakingService.count"}')) === 1;
    });
    expect((await count).status).toBe(201);
    await prometheus.scraped();
    const series = 'acquire_total{lock_group="StocktakingService.count",outcome=';
    expect([await sum(`${series}"acquired"}`), await sum(`${series}"busy"}`)]).toEqual([1, 1]);
    expect(await sum('held{lock_group="StocktakingService.count"}')).toBe(0);
  });

  it('jobs ran on one instance each, and succeeded just now', async () => {
    expect(await sum('job_runs_total{lock_job="prize-draw",outcome="ok"}')).toBeGreaterThan(0);
    const ago = 'time() - max(nestjs_redis_lock_job_last_success{lock_job="prize-draw"})';
    expect(await prometheus.value(ago)).toBeLessThan(10);
  });

  it('one instance leads', async () => {
    const leading = () => sum('leader_state{lock_leadership="mailer"}');
    await waitUntil('Prometheus sees a leader', async () => (await leading()) > 0);
    expect(await leading()).toBe(1);
  });
});

it('a lease that an operator ends is counted as lost, and fires its alert', async () => {
  await shop(1).put('/stock/jam', { units: 1 });
  const count = shop(1).post('/stock/jam/counts');
  const [holder] = await waitUntil('the stocktaking runs', async () => {
    const { holders } = await shop(1).lock('count:jam');
    return holders.length > 0 && holders;
  });
  await shop(1).operate('DELETE', `/locks/count:jam/leases/${holder!.fencingToken}`);
  expect((await count).status).toBe(503);
  await prometheus.scraped();
  expect(await sum('lost_total')).toBe(1);

  const alert = await waitUntil('the alert fires', async () => {
    return (await prometheus.alerts()).find(({ labels }) => labels['alertname'] === 'RedisLockLost');
  });
  expect(alert).toMatchObject({
    state: 'firing',
    labels: { severity: 'critical', job: 'shop', lock_group: 'StocktakingService.count' },
    annotations: { summary: expect.stringContaining('Work of StocktakingService.count continued without its lock') },
  });
});

/**
 * Points are credited in 20 ms, under the lock of the customer. The checkout of another instance holds it as well, for as long as its
 * payments take. Nothing fails, and the instances that wait do nothing wrong.
 */
describe('requests are slow, and nothing but Prometheus is asked', () => {
  const CHECKOUTS = 4;
  const CREDITS = 6;
  /** The time range of a typical look at it. */
  let range: string;

  beforeAll(async () => {
    const began = Date.now();
    await shop(1).put('/stock/pot', { units: CHECKOUTS });
    for (let i = 0; i < CHECKOUTS; i++) await fast(i).post(`/baskets/slow-${i}/items`, { sku: 'pot' });
    for (let i = 0; i < CHECKOUTS; i++) {
      const checkout = shop(3).post(`/baskets/slow-${i}/checkout`, { customer: 'alice' });
      await waitUntil('it has the lock', async () => (await shop(1).lock('customer:alice')).holders.length > 0);
      const credits = Array.from({ length: CREDITS }, (_, j) => fast(j).post('/customers/alice/points', { points: 1 }));
      const answers = await Promise.all([checkout, ...credits]);
      expect(answers.map(({ status }) => status)).toEqual(Array(CREDITS + 1).fill(201));
    }
    await prometheus.scraped();
    range = `[${Math.ceil((Date.now() - began) / 1_000)}s]`;
  }, 120_000);

  const top = async (expression: string, label: string) => {
    const [sample, ...others] = await prometheus.query(`topk(1, ${expression})`);
    expect(others).toEqual([]);
    return { name: sample!.labels[label], value: sample!.value };
  };
  const p95 = (metric: string, of = '') =>
    `histogram_quantile(0.95, sum by (lock_group, le) (rate(nestjs_redis_lock_${metric}_bucket${of}${range})))`;

  it('names the group that waits, and how long', async () => {
    const { name, value } = await top(p95('wait_time'), 'lock_group');
    expect(name).toBe('LoyaltyService.credit');
    // They came while the payment was under way.
    expect(value).toBeGreaterThan(SLOW_PAYMENT_MS / 2 / 1_000);
    expect(value).toBeLessThan(10);
  });

  it('names the group that they wait for, and how long that one holds the lock', async () => {
    const blocked = 'nestjs_redis_lock_blocked_time_total{lock_group="LoyaltyService.credit"}';
    const { name, value } = await top(`sum by (lock_holder_group) (rate(${blocked}${range}))`, 'lock_holder_group');
    expect(name).toBe('CheckoutService.checkOut');
    const all = await prometheus.value(`sum(rate(${blocked}${range}))`);
    // The rest they wait for each other, for longer on a busy machine.
    expect(value / all).toBeGreaterThan(0.5);

    const held = await prometheus.value(p95('hold_time', `{lock_group="${name}"}`));
    expect(held).toBeGreaterThan(SLOW_PAYMENT_MS / 1_000);
  });
});

describe('the shipped rules', () => {
  it('are all evaluated without an error', async () => {
    const rules = await prometheus.rules();
    expect(rules.length).toBeGreaterThan(10);
    expect(rules.filter(({ health }) => health !== 'ok')).toEqual([]);
  });

  it('say how bad it is, what it is, and which page helps', async () => {
    for (const { labels, annotations } of await prometheus.rules()) {
      expect(labels['severity']).toMatch(/^(critical|warning|info)$/);
      expect(annotations['summary']).toMatch(/\.$/);
      expect(annotations['runbook']).toMatch(/^docs\/operations\/metrics\.md#[a-z-]+$/);
      expect(annotations['description']).toContain(`See ${annotations['runbook']}.`);
    }
  });
});

describe('the dashboard', () => {
  const queries = dashboard.panels.flatMap(({ title, targets = [] }) =>
    targets.map(({ refId, expr }) => [`${title} ${refId}`, expr] as const),
  );

  it('asks the data source that is chosen, and nothing stands upon something else', () => {
    const panels = dashboard.panels.filter(({ type }) => type !== 'row');
    for (const { targets, datasource } of panels) {
      expect(datasource!.uid).toBe('${datasource}');
      for (const { datasource: own } of targets!) expect(own.uid).toBe('${datasource}');
    }
    const cells = panels.flatMap(({ gridPos: { x, y, w, h } }) =>
      Array.from({ length: w * h }, (_, i) => `${x + (i % w)},${y + Math.floor(i / w)}`),
    );
    expect(new Set(cells).size).toBe(cells.length);
    expect(dashboard.templating.list.map(({ name }) => name)).toEqual(['datasource', 'service', 'group']);
  });

  it.each(
    dashboard.templating.list.filter(({ type }) => type === 'query').map((variable) => [variable.name, variable]),
  )('has values for $%s', async (_, variable) => expect(await prometheus.query(valuesQuery(variable))).not.toEqual([]));

  it.each(queries)('%s has data', async (_, expression) => {
    const samples = await prometheus.query(asGrafanaAsks(expression));
    expect(samples.filter(({ value }) => Number.isFinite(value))).not.toEqual([]);
  });
});

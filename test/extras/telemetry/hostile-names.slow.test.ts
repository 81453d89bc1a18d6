import { PrometheusExporter, PrometheusSerializer } from '@opentelemetry/exporter-prometheus';
import { MeterProvider } from '@opentelemetry/sdk-metrics';
import { Registry } from 'prom-client';
import { lockMetrics } from 'nestjs-redis-lock/prom-client';
import { openTelemetry } from 'nestjs-redis-lock/telemetry';
import { GROUP } from '../../../lib/kernel/api/resource.js';
import { MAX_GROUPS } from '../../../lib/kernel/events/observers.js';
import { claimsOn } from '../../support/world/forgetful.js';
import { fitting, HOSTILE_TEXTS, unsafeIn } from '../../support/expect/hostile-texts.js';
import { settle } from '../../support/world/fake-clock.js';
import { type Instance, LockWorld } from '../../support/world/lock-world.js';
import { type ExposedSeries, parseExposition } from './exposition.js';

const TEXTS = Object.values(HOSTILE_TEXTS);
/** The constant part of each run of a job. */
const RUN = { tick: '1', overlap: 'skip', onCrash: 'skip', claimTtlMs: 60_000, lock: {} } as const;

/** Both packages that print for Prometheus. */
function useBoth() {
  const exporter = new PrometheusExporter({ preventServerStart: true });
  const registry = new Registry();
  const telemetry = [
    openTelemetry({ meterProvider: new MeterProvider({ readers: [exporter] }), traces: false }),
    lockMetrics(registry),
  ];
  const scrape = async (): Promise<[string, ExposedSeries[]][]> => {
    const { resourceMetrics } = await exporter.collect();
    const text = new PrometheusSerializer('', false, undefined, true, true).serialize(resourceMetrics);
    return [
      ['OpenTelemetry', parseExposition(text)],
      ['prom-client', parseExposition(await registry.metrics())],
    ];
  };
  return { telemetry, scrape };
}

const distinct = (series: readonly ExposedSeries[], label: string) =>
  new Set(series.flatMap(({ labels }) => labels[label] ?? []));

describe('what Prometheus scrapes of names that are hostile', () => {
  let world: LockWorld;
  let other: Instance;

  beforeEach(() => {
    world = new LockWorld();
    other = world.instance('b');
  });

  async function useAll(locks: Instance['locks']): Promise<void> {
    for (const text of TEXTS) {
      await locks.using(`${fitting(text, 500)}:7`, undefined, () => {});
      // Another process holds it, under a label of its own.
      const held = await other.locks.acquire('stock', { label: { group: fitting(text, 90) } });
      const waiting = locks.acquire('stock', { waitMs: 60_000 });
      await world.clock.advance(1_000);
      await held.release();
      await settle();
      await (await waiting).release();
    }
  }

  it('is what was counted, one line a series, with no text of a resource or of a neighbour as it is', async () => {
    const { telemetry, scrape } = useBoth();
    const { locks } = world.instance('a', { telemetry, service: 'shop "1"\\\n\u0000\u202e' });
    const jobs = locks.jobs.runs(claimsOn(world.server));
    for (let i = 0; i < 2 * MAX_GROUPS; i++) await locks.using(`group-${i}:7`, undefined, () => {});
    await useAll(locks);
    for (const text of TEXTS) {
      await jobs.run({ ...RUN, job: fitting(text, 500) }, async () => {});
      const leadership = locks.campaign(fitting(text, 500), {});
      await settle();
      await leadership.resign();
    }
    for (const [printer, series] of await scrape()) {
      expect(series.length).toBeGreaterThan(100);
      const isOurs = ({ name }: ExposedSeries) => /^(nestjs_redis_lock_|target_info|otel_scope)/.test(name);
      expect(series.filter((each) => !isOurs(each))).toEqual([]);
      const values = series.flatMap(({ labels }) => Object.values(labels));
      expect([printer, values.flatMap((value) => unsafeIn(value) ?? [])]).toEqual([printer, []]);
      const groups = [...distinct(series, 'lock_group'), ...distinct(series, 'lock_holder_group')];
      expect(groups.filter((group) => !GROUP.test(group))).toEqual([]);
      expect(distinct(series, 'lock_group').size).toBe(MAX_GROUPS + 1);
      expect(distinct(series, 'lock_holder_group').size).toBeLessThanOrEqual(TEXTS.length + 2);
      expect(distinct(series, 'lock_service')).toEqual(new Set([String.raw`shop "1"\\u000a\u0000\u202e`]));
      expect(distinct(series, 'lock_job').size).toBe(TEXTS.length);
      expect(distinct(series, 'lock_leadership').size).toBe(TEXTS.length);
      // Names survive the exposition format.
      for (const text of [
        HOSTILE_TEXTS['HTML'],
        HOSTILE_TEXTS['quotes and backslashes'],
        fitting(HOSTILE_TEXTS['emoji']!, 500),
      ]) {
        expect(distinct(series, 'lock_job')).toContain(text);
      }
    }
  });
});

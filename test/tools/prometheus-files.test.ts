import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { LOCK_METRICS, type LockAttribute, LockMetric, prometheusNameOf } from '../../lib/extras/telemetry/names.js';
import { root } from '../../scripts/setup.mjs';

const SHIPPED = ['alerts.yml', 'alerts.test.yml', 'dashboard.json'];

/** Every series that Prometheus can have, with the labels that it may have. */
const KNOWN = new Map<string, Set<string>>();
for (const metric of Object.values(LockMetric)) {
  const { kind, attributes } = LOCK_METRICS[metric];
  const labels = attributes.map(labelOf);
  const name = prometheusNameOf(metric);
  if (kind !== 'histogram') KNOWN.set(name, new Set(labels));
  else for (const end of ['bucket', 'sum', 'count']) KNOWN.set(`${name}_${end}`, new Set([...labels, 'le']));
}
const OURS = new Set([...KNOWN.values()].flatMap((labels) => [...labels]));
/** The labels that Prometheus adds to each series. */
const OF_PROMETHEUS = ['job', 'instance'];

function labelOf(attribute: LockAttribute): string {
  return attribute.replaceAll('.', '_');
}

function read(file: string): string {
  return readFileSync(join(root, 'docs/operations/prometheus', file), 'utf8').replaceAll('\\"', '"');
}

describe.each(SHIPPED)('docs/operations/prometheus/%s', (file) => {
  const text = read(file);
  const series = [...text.matchAll(/\b(nestjs_redis_lock_\w+)(?:\{([^}]*)\})?/g)];

  it('names only metrics that there are', () => {
    expect(series.length).toBeGreaterThan(10);
    expect(series.map(([, name]) => name!).filter((name) => !KNOWN.has(name))).toEqual([]);
  });

  it('selects by labels that the metric has', () => {
    const wrong = series.flatMap(([, name, selectors = '']) => {
      const labels = [...selectors.matchAll(/(\w+)\s*(?:=~|!~|!=|=)/g)].map(([, label]) => label!);
      const known = new Set([...KNOWN.get(name!)!, ...OF_PROMETHEUS]);
      return labels.filter((label) => !known.has(label)).map((label) => `${name}: ${label}`);
    });
    expect(wrong).toEqual([]);
  });

  it('groups by labels that there are', () => {
    const labels = [...text.matchAll(/\bby \(([\w, ]+)\)/g)].flatMap(([, list]) => list!.split(/, */));
    expect(labels.filter((label) => !OURS.has(label) && !OF_PROMETHEUS.includes(label))).toEqual([]);
  });
});

it('the alerts and the dashboard together show every metric', () => {
  const text = SHIPPED.map(read).join('\n');
  const shown = Object.values(LockMetric).filter((metric) => new RegExp(`\\b${prometheusNameOf(metric)}`).test(text));
  expect(shown).toEqual(Object.values(LockMetric));
});

it('every alert has a test next to it', () => {
  const alerts = [...read('alerts.yml').matchAll(/- alert: (\w+)/g)].map(([, name]) => name);
  const tried = new Set([...read('alerts.test.yml').matchAll(/alertname: (\w+)/g)].map(([, name]) => name));
  expect(alerts.length).toBeGreaterThan(10);
  expect(alerts.filter((name) => !tried.has(name))).toEqual([]);
});

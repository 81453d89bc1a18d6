import { readFileSync } from 'node:fs';

export const ALERTS = new URL('../../../docs/operations/prometheus/alerts.yml', import.meta.url);
const DASHBOARD = new URL('../../../docs/operations/prometheus/dashboard.json', import.meta.url);

export interface Panel {
  readonly type: string;
  readonly title: string;
  readonly datasource?: { readonly uid: string };
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number };
  readonly targets?: readonly {
    readonly refId: string;
    readonly expr: string;
    readonly datasource: { readonly uid: string };
  }[];
}

export interface Variable {
  readonly name: string;
  readonly type: string;
  readonly query: string | { readonly query: string };
}

interface Dashboard {
  readonly schemaVersion: number;
  readonly panels: readonly Panel[];
  readonly templating: { readonly list: readonly Variable[] };
}

export const dashboard = JSON.parse(readFileSync(DASHBOARD, 'utf8')) as Dashboard;

/** Fills in variables like Grafana does with "All" chosen in each. */
export function asGrafanaAsks(expression: string): string {
  const asked = expression
    .replaceAll(/\$(service|group)\b/g, '.*')
    .replaceAll('$__rate_interval', '1m')
    .replaceAll('$__range', '1h');
  if (asked.includes('$')) throw new Error(`Nothing stands for a variable in ${asked}`);
  return asked;
}

/** The query behind `label_values(metric, label)`. */
export function valuesQuery({ query }: Variable): string {
  const text = typeof query === 'string' ? query : query.query;
  const [, series, label] = /^label_values\((.*), (\w+)\)$/.exec(text) ?? [];
  if (!series) throw new Error(`Not label_values(series, label): ${text}`);
  return `group by (${label}) (${asGrafanaAsks(series)})`;
}

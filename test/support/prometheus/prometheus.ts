import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { findFreePort } from '../../../scripts/redis/free-port.mjs';
import { findTools, PROMETHEUS } from '../process/toolchain.mjs';
import { PipedServer } from '../server/piped-server.js';

export interface PrometheusOptions {
  /** Addresses to scrape: `http://127.0.0.1:3000`, always at `/metrics`. */
  readonly targets: readonly string[];
  readonly scrapeMs?: number;
  /** Files with rules. */
  readonly rules?: readonly string[];
}

/** One element of an instant vector. */
export interface Sample {
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

export interface Rule {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  /** `unknown` until it was evaluated. */
  readonly health: 'ok' | 'err' | 'unknown';
  readonly lastError?: string;
}

export interface ActiveAlert {
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  readonly state: 'pending' | 'firing';
}

const READY_MS = 30_000;
const SCRAPE_MS = 30_000;
const POLL_MS = 20;
const PORT_ATTEMPTS = 5;

/**
 * A private Prometheus of the machine: on a free port of the loopback, its data in a temporary folder, gone when this process is.
 */
export class Prometheus {
  private constructor(
    readonly url: string,
    readonly folder: string,
    private readonly server: PipedServer,
    private readonly targets: number,
  ) {}

  static async start(options: PrometheusOptions): Promise<Prometheus> {
    const [program] = findTools([PROMETHEUS]) as [string];
    for (let attempt = 1; ; attempt++) {
      try {
        return await Prometheus.startOn(await findFreePort(), program, options);
      } catch (error) {
        // Another process took the port between our look at it and the start.
        if (attempt === PORT_ATTEMPTS || !/address already in use/i.test((error as Error).message)) throw error;
      }
    }
  }

  private static async startOn(port: number, program: string, options: PrometheusOptions): Promise<Prometheus> {
    const folder = mkdtempSync(join(tmpdir(), 'prometheus-'));
    const data = join(folder, 'data');
    mkdirSync(data);
    writeFileSync(join(folder, 'prometheus.yml'), JSON.stringify(configuration(options)));
    const command = [
      program,
      `--config.file=${join(folder, 'prometheus.yml')}`,
      `--storage.tsdb.path=${data}`,
      `--web.listen-address=127.0.0.1:${port}`,
      '--log.level=warn',
    ] as const;
    const server = new PipedServer({ command, folder, signal: 'TERM' });
    const prometheus = new Prometheus(`http://127.0.0.1:${port}`, folder, server, options.targets.length);
    for (const deadline = Date.now() + READY_MS; !(await prometheus.serves(data)); await sleep(POLL_MS)) {
      const { log } = server;
      if (Date.now() < deadline && !/level=error|err=|Error /.test(log)) continue;
      await server.stop();
      throw new Error(`${program} on port ${port} is not ready. Its log:\n${log}`);
    }
    return prometheus;
  }

  /** The value of an expression now, or at a time in milliseconds since the epoch: a vector, or one sample without labels. */
  async query(expression: string, at?: number): Promise<Sample[]> {
    const { resultType, result } = await this.ask<QueryData>('/api/v1/query', {
      query: expression,
      ...(at !== undefined && { time: String(at / 1_000) }),
    });
    if (resultType === 'scalar') return [{ labels: {}, value: Number(result[1]) }];
    if (resultType !== 'vector') throw new Error(`${expression} is a ${resultType}`);
    return result.map(({ metric, value: [, value] }) => ({ labels: metric, value: Number(value) }));
  }

  /** The only value of an expression. */
  async value(expression: string): Promise<number> {
    const samples = await this.query(expression);
    if (samples.length !== 1) throw new Error(`${expression} has ${samples.length} values: ${JSON.stringify(samples)}`);
    return samples[0]!.value;
  }

  async alerts(): Promise<ActiveAlert[]> {
    return (await this.ask<{ alerts: ActiveAlert[] }>('/api/v1/alerts')).alerts;
  }

  async rules(): Promise<Rule[]> {
    const { groups } = await this.ask<{ groups: { rules: Rule[] }[] }>('/api/v1/rules');
    return groups.flatMap(({ rules }) => rules);
  }

  /** Resolves when each target was scraped, from now on, without an error. */
  async scraped(): Promise<void> {
    const from = Date.now();
    for (const deadline = from + SCRAPE_MS; ; await sleep(POLL_MS)) {
      const { activeTargets } = await this.ask<{ activeTargets: Target[] }>('/api/v1/targets', { state: 'active' });
      const isFresh = ({ lastScrape, health }: Target) => health === 'up' && Date.parse(lastScrape) > from;
      if (activeTargets.length === this.targets && activeTargets.every(isFresh)) return;
      if (Date.now() > deadline) throw new Error(`Not all targets were scraped: ${JSON.stringify(activeTargets)}`);
    }
  }

  async stop(): Promise<void> {
    await this.server.stop();
  }

  /** Returns true if it is ready and has these data: another server could have won a race for the port. */
  private async serves(data: string): Promise<boolean> {
    try {
      if (!(await fetch(`${this.url}/-/ready`, { signal: AbortSignal.timeout(SCRAPE_MS) })).ok) return false;
      return (await this.ask<Record<string, string>>('/api/v1/status/flags'))['storage.tsdb.path'] === data;
    } catch {
      return false;
    }
  }

  private async ask<T>(path: string, parameters: Record<string, string> = {}): Promise<T> {
    const response = await fetch(`${this.url}${path}?${new URLSearchParams(parameters).toString()}`, {
      signal: AbortSignal.timeout(SCRAPE_MS),
    });
    const body = (await response.json()) as { status: string; data: T; error?: string };
    if (body.status !== 'success') throw new Error(`${path} ${JSON.stringify(parameters)}: ${body.error}`);
    return body.data;
  }
}

interface Target {
  readonly health: string;
  readonly lastScrape: string;
}

type QueryData =
  | { resultType: 'scalar'; result: [number, string] }
  | { resultType: 'vector'; result: { metric: Record<string, string>; value: [number, string] }[] }
  | { resultType: 'matrix' | 'string'; result: never };

/** JSON is YAML. */
function configuration({ targets, scrapeMs = 500, rules = [] }: PrometheusOptions): object {
  return {
    global: { scrape_interval: `${scrapeMs}ms`, scrape_timeout: `${scrapeMs}ms`, evaluation_interval: '1s' },
    rule_files: rules,
    scrape_configs: [{ job_name: 'shop', static_configs: [{ targets: targets.map((url) => new URL(url).host) }] }],
  };
}

import { parse } from 'yaml';
import { runHere } from '../extras/cli/run-cli.js';
import { useRedis } from '../support/redis/redis-server.js';
import { blocksOf, tablesOf } from './guides.js';

const PAGE = 'docs/operations/troubleshooting.md';

describe('docs/operations/troubleshooting.md', () => {
  const redis = useRedis();

  const commands = tablesOf(PAGE).flatMap(({ header, rows }) =>
    rows.map((row) => /`([^`]+)`/.exec(row[header.indexOf('Command')]!)?.[1]),
  );

  it('has a command in each row', () => {
    expect(commands.length).toBeGreaterThan(20);
    expect(commands).not.toContain(undefined);
  });

  // 1: there is no such lock or job, on this empty Redis. 2 would be a wrong command line.
  it.each([...new Set(commands)])('`%s` is a command that looks', async (command) => {
    const argv = command!.replace(/--for \w+/, '--for 1s').split(' ');
    const { code, stderr } = await runHere([...argv, '--url', redis().url]);
    expect([stderr, code <= 1]).toEqual([stderr, true]);
  });
});

describe('docs/operations/kubernetes.md', () => {
  interface Deployment {
    readonly spec: { readonly template: { readonly spec: Pod } };
  }
  interface Pod {
    readonly terminationGracePeriodSeconds: number;
    readonly containers: readonly [
      {
        readonly lifecycle: { readonly preStop: { readonly sleep: { readonly seconds: number } } };
        readonly readinessProbe: { readonly httpGet: { readonly path: string } };
        readonly livenessProbe: { readonly httpGet: { readonly path: string } };
      },
    ];
  }
  const blocks = blocksOf('docs/operations/kubernetes.md');
  const manifest = blocks.find(({ language }) => language === 'yaml')!.code;
  const main = blocks.find(({ language }) => language === 'ts')!.code;
  const pod = (parse(manifest) as Deployment).spec.template.spec;

  it('has a grace period of what it is made of', () => {
    const [, ...parts] = /# preStop (\d+) \+ drainMs (\d+) .* (\d+) \+ reserve (\d+)/.exec(manifest)!.map(Number);
    const [preStop, drain] = parts;
    expect(pod.terminationGracePeriodSeconds).toBe(parts.reduce((sum, each) => sum + each));
    expect(preStop).toBe(pod.containers[0].lifecycle.preStop.sleep.seconds);
    expect(drain! * 1_000).toBe(Number(/drainMs: ([\d_]+)/.exec(main)![1]!.replace('_', '')));
  });

  it('has the probes that the page on health has as routes', () => {
    const [{ readinessProbe, livenessProbe }] = pod.containers;
    const health = blocksOf('docs/operations/health.md')
      .map(({ code }) => code)
      .join();
    for (const { httpGet } of [readinessProbe, livenessProbe]) {
      expect(health).toContain(`@Get('${httpGet.path.slice(1)}')`);
    }
  });
});

import { existsSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Registry } from 'prom-client';
import { lockMetrics } from 'nestjs-redis-lock/prom-client';
import { eventually } from '../expect/eventually.js';
import { fitting, HOSTILE_TEXTS } from '../expect/hostile-texts.js';
import { LockWorld } from '../world/lock-world.js';
import { settle } from '../world/fake-clock.js';
import { Prometheus } from './prometheus.js';

/** The state of a socket in /proc/net/tcp. */
const LISTEN = '0A';

it('scrapes a target on the loopback only, answers queries, and leaves nothing behind', async () => {
  let scrapes = 0;
  const hostile = await scrapeOfHostileNames();
  const target = createServer((_, response) => {
    response.setHeader('content-type', 'text/plain; version=0.0.4');
    response.end(`seen_total{group="a"} ${++scrapes}\n${hostile}`);
  });
  await new Promise<void>((resolve) => void target.listen(0, '127.0.0.1', resolve));
  const { port } = target.address() as AddressInfo;

  const prometheus = await Prometheus.start({ targets: [`http://127.0.0.1:${port}`] });
  let folder: string;
  try {
    await prometheus.scraped();
    await eventually(async () => expect(await prometheus.value('seen_total{group="a"}')).toBeGreaterThan(0));
    expect(await prometheus.query('seen_total{group="b"}')).toEqual([]);
    const leaderships = await prometheus.query('nestjs_redis_lock_leader_state');
    expect(leaderships).toHaveLength(Object.keys(HOSTILE_TEXTS).length);
    expect(leaderships.map(({ labels }) => labels['lock_leadership'])).toContain(HOSTILE_TEXTS['HTML']);
    expect(await prometheus.query('{__name__=~"x|y"}')).toEqual([]);
    await expect(prometheus.query('seen_total{')).rejects.toThrow(/parse error/);

    folder = prometheus.folder;
    expect(existsSync(folder)).toBe(true);
    expect(listenersOn(Number(new URL(prometheus.url).port))).toEqual(['0100007F']);
  } finally {
    await prometheus.stop();
    await new Promise((resolve) => target.close(resolve));
  }
  expect(existsSync(folder)).toBe(false);
  await expect(fetch(prometheus.url)).rejects.toThrow('fetch failed');
});

/** What a process shows whose leaderships are called like that. */
async function scrapeOfHostileNames(): Promise<string> {
  const registry = new Registry();
  const { locks } = new LockWorld().instance('a', { telemetry: [lockMetrics(registry)] });
  for (const text of Object.values(HOSTILE_TEXTS)) {
    const leadership = locks.campaign(fitting(text, 500));
    await settle();
    await leadership.resign();
  }
  return registry.metrics();
}

/** The local addresses, as Linux writes them, on which a process listens. */
function listenersOn(port: number): string[] {
  const ending = `:${port.toString(16).toUpperCase().padStart(4, '0')}`;
  const sockets = ['tcp', 'tcp6'].flatMap((file) =>
    readFileSync(`/proc/net/${file}`, 'utf8').trim().split('\n').slice(1),
  );
  return sockets
    .map((line) => line.trim().split(/\s+/))
    .filter(([, local, , state]) => local!.endsWith(ending) && state === LISTEN)
    .map(([, local]) => local!.slice(0, -ending.length));
}

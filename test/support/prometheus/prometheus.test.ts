import { existsSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Prometheus } from './prometheus.js';

/** The state of a socket in /proc/net/tcp. */
const LISTEN = '0A';

it('scrapes a target on the loopback only, answers queries, and leaves nothing behind', async () => {
  let scrapes = 0;
  const target = createServer((_, response) => {
    response.setHeader('content-type', 'text/plain; version=0.0.4').end(`seen_total{group="a"} ${++scrapes}\n`);
  });
  await new Promise<void>((resolve) => void target.listen(0, '127.0.0.1', resolve));
  const { port } = target.address() as AddressInfo;

  const prometheus = await Prometheus.start({ targets: [`http://127.0.0.1:${port}`], scrapeMs: 100 });
  let folder: string;
  try {
    await prometheus.scraped();
    expect(await prometheus.value('seen_total{group="a"}')).toBeGreaterThan(0);
    expect(await prometheus.query('seen_total{group="b"}')).toEqual([]);
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

import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { jest } from '@jest/globals';
import { type Lease, type LockOptions, RedisLockService } from 'nestjs-redis-lock';
import { eventually } from '../../support/expect/eventually.js';
import { inMemory, useApps } from '../../nest/nest-apps.js';
import { deadMansSwitch } from './dead-mans-switch.js';

/** An HTTP server that answers each ping, unless `hangs` is set: then it keeps the answers. */
async function startMonitor() {
  const seen: string[] = [];
  const kept: ServerResponse[] = [];
  const monitor = { seen, kept, url: '', hangs: false, status: 200, close: () => {} };
  const server = createServer((request, response) => {
    seen.push(`${request.method} ${request.url}`);
    if (monitor.hangs) kept.push(response);
    else response.writeHead(monitor.status).end();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  monitor.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  monitor.close = () => {
    server.close();
    server.closeAllConnections();
  };
  return monitor;
}

describe("the dead man's switch of docs/operations/jobs.md", () => {
  const start = useApps();
  let monitor: Awaited<ReturnType<typeof startMonitor>>;
  /** The time-out of each ping, in the order of the events. They end by hand. */
  let timeouts: { readonly ms: number; readonly end: () => void }[];
  let warnings: () => string[];
  let runs: number;
  let locks: RedisLockService;

  beforeEach(async () => {
    runs = 0;
    timeouts = [];
    jest.spyOn(AbortSignal, 'timeout').mockImplementation((ms) => {
      const controller = new AbortController();
      timeouts.push({ ms, end: () => controller.abort(new DOMException('Too late', 'TimeoutError')) });
      return controller.signal;
    });
    monitor = await startMonitor();
    const checks = new Map(['nightly', 'hourly'].map((job) => [job, `${monitor.url}/${job}`]));
    const { app, log } = await start({ imports: [inMemory({ observers: [deadMansSwitch(checks)] })] });
    locks = app.get(RedisLockService);
    warnings = () => log.at('warn').filter((line) => line.startsWith('No ping'));
  });
  afterEach(() => {
    monitor.close();
    jest.restoreAllMocks();
  });

  function run(job: string, work: (lease: Lease) => unknown = () => 'done', lock: LockOptions = {}): Promise<unknown> {
    const tick = `tick-${++runs}`;
    return locks.runSingleton({ job, tick, overlap: 'skip', onCrash: 'skip', claimTtlMs: 60_000, lock }, work);
  }
  const arrived = (...pings: string[]) => eventually(() => expect(monitor.seen).toEqual(pings));

  it('says when a job starts, and how it ends; other jobs are not watched', async () => {
    expect(await run('unwatched')).toBe('done');
    expect(await run('nightly')).toBe('done');
    await arrived('HEAD /nightly/start', 'HEAD /nightly');
    const broken = new Error('no paper');
    await expect(run('hourly', () => Promise.reject(broken))).rejects.toBe(broken);
    await arrived('HEAD /nightly/start', 'HEAD /nightly', 'HEAD /hourly/start', 'HEAD /hourly/fail');
    expect(timeouts.map(({ ms }) => ms)).toEqual([5_000, 10_000, 5_000, 10_000]);
    expect(warnings()).toEqual([]);
  });

  it('a run that lost its lease has failed', async () => {
    const work = async ({ resource, fencingToken, signal }: Lease): Promise<void> => {
      const aborted = once(signal, 'abort');
      await locks.forceRelease(resource, { fencingToken });
      await aborted;
      signal.throwIfAborted();
    };
    await expect(run('nightly', work, { leaseMs: 300 })).rejects.toMatchObject({ code: 'LEASE_LOST' });
    await arrived('HEAD /nightly/start', 'HEAD /nightly/fail');
  });

  it('the end of a short run does not overtake its start', async () => {
    monitor.hangs = true;
    expect(await run('nightly')).toBe('done');
    await arrived('HEAD /nightly/start');
    // Other jobs do not wait for it.
    expect(await run('hourly')).toBe('done');
    await arrived('HEAD /nightly/start', 'HEAD /hourly/start');
    monitor.hangs = false;
    const [nightly, hourly] = monitor.kept;
    nightly!.end();
    await arrived('HEAD /nightly/start', 'HEAD /hourly/start', 'HEAD /nightly');
    hourly!.end();
    await arrived('HEAD /nightly/start', 'HEAD /hourly/start', 'HEAD /nightly', 'HEAD /hourly');
  });

  it('a monitor that hangs holds up no job, and its pings are given up in time', async () => {
    monitor.hangs = true;
    for (let i = 0; i < 50; i++) expect(await run('nightly')).toBe('done');
    await arrived('HEAD /nightly/start');
    const closed = once(monitor.kept[0]!, 'close');
    expect(timeouts).toHaveLength(100);
    for (const { end } of timeouts) end();
    await closed;
    await eventually(() => expect(warnings()).toHaveLength(100));
    expect(warnings()[0]).toBe('No ping for nightly: Too late');
    // Pings that were late before their turn were dropped.
    monitor.hangs = false;
    expect(await run('nightly')).toBe('done');
    await arrived('HEAD /nightly/start', 'HEAD /nightly/start', 'HEAD /nightly');
  });

  it('a monitor that is down, or does not know the check, costs a line in the log', async () => {
    monitor.status = 404;
    expect(await run('nightly')).toBe('done');
    const unknown = 'No ping for nightly: The monitor answered with 404';
    await eventually(() => expect(warnings()).toEqual([unknown, unknown]));
    monitor.close();
    expect(await run('hourly')).toBe('done');
    const down = expect.stringMatching(/^No ping for hourly: connect ECONNREFUSED 127\.0\.0\.1:\d+$/);
    await eventually(() => expect(warnings().slice(2)).toEqual([down, down]));
  });
});

import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { RedisLockService } from 'nestjs-redis-lock';
import { RedisLockConsoleModule } from 'nestjs-redis-lock/console';
import { inMemory, useApps } from '../../../nest/nest-apps.js';
import { commandCounts, resetCounts, useAdmin, useInstances } from '../../../support/redis/lock-instances.js';
import { type RedisServer, useRedis } from '../../../support/redis/redis-server.js';

const VIEWERS = 20;
const VIEWS = ['now', 'locks', 'instances', 'blockers'];
const SECONDS = 8;

describe('20 viewers of the console', () => {
  const redis = useRedis();
  const admin = useAdmin(() => redis().url);
  const otherRedis = useRedis();
  const otherAdmin = useAdmin(() => otherRedis().url);
  const start = useInstances(() => redis().url);
  const startApp = useApps();
  const clients: Redis[] = [];
  afterEach(() => clients.splice(0).forEach((client) => client.disconnect()));

  const startConsole = async ({ url: connection } = redis()): Promise<string> => {
    const console = RedisLockConsoleModule.forRoot({ path: 'ops/locks', unguarded: 'I know' });
    const { app, url } = await startApp({
      imports: [inMemory({ connection, keyPrefix: 'lock' }), console],
    });
    await (await app.get(RedisLockService).acquire('warm')).release();
    return `${url}/ops/locks/api`;
  };
  /** The questions of all roll calls, as every instance hears them. */
  const rollCalls = async (): Promise<string[]> => {
    const heard: string[] = [];
    const listener = new Redis(redis().url, { disconnectTimeout: 0 });
    clients.push(listener);
    listener.on('message', (_channel: string, message: string) => heard.push(message));
    await listener.subscribe('lock:roll:0');
    return heard;
  };
  /** As the page does: every two seconds, with the tag of the answer before. */
  const watch = async (address: string, untilMs: number): Promise<number[]> => {
    const statuses: number[] = [];
    let tag: string | null = null;
    while (performance.now() < untilMs) {
      const answer: Response = await fetch(address, { headers: tag === null ? {} : { 'if-none-match': tag } });
      await answer.text();
      tag = answer.headers.get('etag') ?? tag;
      statuses.push(answer.status);
      await sleep(2_000);
    }
    return statuses;
  };
  /** Lets all of them look for some seconds, each at another moment. */
  const watchAll = async (
    apis: readonly string[],
    viewers: number,
  ): Promise<{ statuses: number[]; seconds: number }> => {
    const from = performance.now();
    const all = Array.from({ length: viewers }, async (_, index) => {
      await sleep((index * 2_000) / viewers);
      return watch(`${apis[index % apis.length]}/${VIEWS[index % VIEWS.length]}`, from + SECONDS * 1_000);
    });
    const statuses = (await Promise.all(all)).flat();
    return { statuses, seconds: (performance.now() - from) / 1_000 };
  };
  const commands = async (of = admin()): Promise<number> => {
    const { info: _info, config: _config, ...counts } = await commandCounts(of);
    return Object.values(counts).reduce((sum, each) => sum + each, 0);
  };

  it('cost one roll call a second together, with two instances of the application, and nothing afterwards', async () => {
    const apis = [await startConsole(), await startConsole()];
    const [holder, waiter] = [await start(), await start()];
    const lease = await holder.locks.acquire('order:7', { leaseMs: 120_000 });
    const waiting = waiter.locks.acquire('order:7', { waitMs: 60_000 });
    const heard = await rollCalls();

    const { statuses, seconds } = await watchAll(apis, VIEWERS);
    const asked = heard.length;
    expect([200, 304]).toEqual(expect.arrayContaining([...new Set(statuses)]));
    expect(statuses.length).toBeGreaterThan(2 * VIEWERS);
    expect(asked).toBeGreaterThan(2);
    expect(asked).toBeLessThanOrEqual(Math.floor(seconds) + 1);
    await lease.release();
    await (await waiting).release();

    // Their last question may stand for a second.
    await sleep(1_500);
    await resetCounts(admin());
    heard.length = 0;
    await sleep(3_000);
    expect([await commands(), heard]).toEqual([0, []]);
  });

  it('cost Redis no more than a single viewer of the same views', async () => {
    const costOf = async (viewers: number, server: RedisServer, its: Redis): Promise<number> => {
      const api = await startConsole(server);
      await start({ connection: server.url });
      await sleep(1_500);
      await resetCounts(its);
      const { seconds } = await watchAll([api], viewers);
      return (await commands(its)) / seconds;
    };
    // One for each view, at other moments: what stands for a second is asked for at most once in it.
    const [few, many] = await Promise.all([
      costOf(VIEWS.length, redis(), admin()),
      costOf(VIEWERS, otherRedis(), otherAdmin()),
    ]);
    process.stdout.write(
      `${few.toFixed(1)} commands a second for ${VIEWS.length}, ${many.toFixed(1)} for ${VIEWERS}\n`,
    );
    // Each of the four is asked every other second, and of the twenty every second at most.
    expect(many).toBeLessThanOrEqual(few * 2);
  });
});

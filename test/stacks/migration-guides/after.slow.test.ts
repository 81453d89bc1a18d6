import type { INestApplicationContext, Type } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { useAdmin } from '../../support/redis/lock-instances.js';
import { useRedis } from '../../support/redis/redis-server.js';
import { LogBook } from '../../nest/nest-apps.js';

type Work = () => Promise<void>;

const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** Two ran, and never at the same time. */
const ALONE = { ran: 2, atOnce: 1 };

/** All of them start in the same moment. How many ran, and how many at most at once. */
async function crowd(
  ...calls: readonly ((work: Work) => Promise<unknown>)[]
): Promise<{ ran: number; atOnce: number }> {
  let running = 0;
  let ran = 0;
  let atOnce = 0;
  const work = async (): Promise<void> => {
    ran++;
    atOnce = Math.max(atOnce, ++running);
    await sleep(100);
    running--;
  };
  await Promise.all(calls.map((call) => call(work)));
  return { ran, atOnce };
}

/** All pods are to be asked for the same tick of ten minutes. */
async function farFromTheNextTick(): Promise<void> {
  const untilNext = 600_000 - (Date.now() % 600_000);
  if (untilNext < 20_000) await sleep(untilNext + 100);
}

describe('the code that docs/migration leads to, in two pods', () => {
  const redis = useRedis();
  const admin = useAdmin(() => redis().url);
  const running: INestApplicationContext[] = [];

  beforeEach(async () => {
    process.env.REDIS_URL = redis().url;
    await admin().flushall();
  });
  afterEach(async () => {
    await Promise.all(running.splice(0).map((app) => app.close()));
  });

  async function startOne<T>(AppModule: Type, Service: Type<T>): Promise<T> {
    const testing = Test.createTestingModule({ imports: [AppModule] }).setLogger(new LogBook());
    const app = await testing.compile();
    running.push(app);
    await app.init();
    return app.get(Service);
  }
  const startTwo = async <T>(AppModule: Type, Service: Type<T>): Promise<[T, T]> => [
    await startOne(AppModule, Service),
    await startOne(AppModule, Service),
  ];

  it('from redlock: one pod transfers at a time, whatever the order of the accounts, and one builds the report', async () => {
    const { AppModule, Accounts } = await import('./redlock/after.js');
    const [one, two] = await startTwo(AppModule, Accounts);
    const transfers = crowd(
      (work) => one.transfer('a', 'b', work),
      (work) => two.transfer('b', 'a', work),
    );
    expect(await transfers).toEqual(ALONE);
    let other: boolean | undefined;
    const built = await one.tryReport(async () => void (other = await two.tryReport(async () => {})));
    expect([built, other]).toEqual([true, false]);
  });

  it('from redis-semaphore: one pod imports at a time, and two download, or one what is large', async () => {
    const { AppModule, Imports } = await import('./redis-semaphore/after.js');
    const [one, two] = await startTwo(AppModule, Imports);
    expect(
      await crowd(
        (work) => one.load(work),
        (work) => two.load(work),
      ),
    ).toEqual(ALONE);
    const small = [one, two, one, two].map((pod) => (work: Work) => pod.download(false, work));
    expect(await crowd(...small)).toEqual({ ran: 4, atOnce: 2 });
    expect(await crowd((work) => one.download(true, work), small[1]!)).toEqual(ALONE);
  });

  it.each([
    ['murlock', { id: '7' }, () => import('./murlock/after.js').then((it) => [it.AppModule, it.Orders])],
    ['SET NX', '7', () => import('./set-nx/after.js').then((it) => [it.AppModule, it.Invoices])],
  ])('from %s: one pod handles a payment at a time', async (_, order, load) => {
    const [AppModule, Service] = (await load()) as [Type, Type<{ pay(order: unknown, work: Work): Promise<void> }>];
    const pods = await startTwo(AppModule, Service);
    expect(await crowd(...pods.map((pod) => (work: Work) => pod.pay(order, work)))).toEqual(ALONE);
  });

  it('from @nestjs-redis/lock: one pod counts or moves at a time', async () => {
    const { AppModule, Stock } = await import('./nestjs-redis/after.js');
    const [one, two] = await startTwo(AppModule, Stock);
    expect(
      await crowd(
        (work) => one.count(work),
        (work) => two.count(work),
      ),
    ).toEqual(ALONE);
    const moves = crowd(
      (work) => one.move('a', 'b', work),
      (work) => two.move('b', 'a', work),
    );
    expect(await moves).toEqual(ALONE);
  });

  it('from SET NX, while both releases run: one handles a payment, and the old one sends no reminder again', async () => {
    await farFromTheNextTick();
    const [before, both] = [await import('./set-nx/before.js'), await import('./set-nx/both.js')];
    const old = await startOne(before.AppModule, before.Invoices);
    const next = await startOne(both.AppModule, both.Invoices);
    expect(
      await crowd(
        (work) => old.pay('7', work),
        (work) => next.pay('7', work),
      ),
    ).toEqual(ALONE);
    const sent: string[] = [];
    next.send = async () => void sent.push('new');
    old.send = async () => void sent.push('old');
    await next.remind();
    await old.remind();
    expect(sent).toEqual(['new']);
  });
});

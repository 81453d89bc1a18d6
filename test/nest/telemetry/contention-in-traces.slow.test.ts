import { Injectable } from '@nestjs/common';
import { DistributedLock, key, RedisLockModule } from 'nestjs-redis-lock';
import { openTelemetry } from 'nestjs-redis-lock/telemetry';
import { eventually } from '../../support/expect/eventually.js';
import { useRedis } from '../../support/redis/redis-server.js';
import { type SeenSpan, TracedWorld, useAsyncContexts } from '../../support/world/traced-world.js';
import { useApps } from '../nest-apps.js';

const ACCOUNTS = 3;
const CALLERS = 12;
const SLOW_MS = 500;

const worksFor = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

@Injectable()
class Orders {
  @DistributedLock((account: number) => key`account:${account}`)
  async pay(_account: number): Promise<void> {
    await worksFor(2);
  }

  @DistributedLock((account: number) => key`refund:${account}`)
  async refund(_account: number): Promise<void> {
    await worksFor(2);
  }
}

@Injectable()
class NightlyReport {
  /**
   * The hidden cause: takes the lock of one account and is slow, and still runs when all callers of that account have
   * arrived.
   */
  @DistributedLock('account:1')
  async run(allHaveCome: () => Promise<void>): Promise<void> {
    await allHaveCome();
    await worksFor(SLOW_MS);
  }
}

useAsyncContexts();
const redis = useRedis();
const start = useApps();

/** Imitates a trace backend, which only knows the spans. */
class Backend {
  constructor(private readonly spans: readonly SeenSpan[]) {}

  /** The total wait of each group in seconds, longest first. */
  get waits(): [group: string, seconds: number][] {
    return sums(this.#acquired.map(({ attributes }) => [attributes['lock.group'], attributes['lock.wait_time']]));
  }

  /** For which groups this group has waited, by the links of its spans. */
  blockersOf(group: string): [group: string, seconds: number][] {
    return sums(
      this.#linksOf(group).map(({ attributes }) => [
        attributes['lock.holder.group'],
        attributes['lock.holder.wait_time'],
      ]),
    );
  }

  /** The names of the traces that this group has waited for, longest first. */
  blockingTracesOf(group: string): string[] {
    const traces = sums(
      this.#linksOf(group).map(({ trace, attributes }) => [trace, attributes['lock.holder.wait_time']]),
    );
    return traces.map(([id]) => this.spans.find(({ trace, parent }) => trace === id && parent === undefined)!.name);
  }

  get #acquired(): readonly SeenSpan[] {
    return this.spans.filter(({ name }) => name.startsWith('acquire '));
  }

  #linksOf(group: string) {
    return this.#acquired.filter(({ attributes }) => attributes['lock.group'] === group).flatMap(({ links }) => links);
  }
}

function sums(pairs: readonly (readonly [unknown, unknown])[]): [string, number][] {
  const totals = new Map<string, number>();
  for (const [name, seconds] of pairs) totals.set(String(name), (totals.get(String(name)) ?? 0) + Number(seconds));
  return [...totals].sort(([, a], [, b]) => b - a);
}

it.each([
  ['in another instance', 2],
  ['in the same instance', 1],
])('spans alone show who waits, how long, and for whom: a slow holder %s', async (_, instances) => {
  const traces = new TracedWorld();
  const apps = await Promise.all(
    Array.from({ length: instances }, () =>
      start({
        imports: [
          RedisLockModule.forRoot({
            connection: redis().url,
            telemetry: openTelemetry({ metrics: false, tracerProvider: traces.provider }),
          }),
        ],
        providers: [Orders, NightlyReport],
      }),
    ),
  );
  const [first, last] = [apps[0]!.app, apps.at(-1)!.app];
  const orders = first.get(Orders);
  const report = last.get(NightlyReport);
  let isLoaded = true;
  const began = performance.now();
  const paying = Array.from({ length: ACCOUNTS }, () => 0);
  const load = Array.from({ length: CALLERS }, async (_, caller) => {
    while (isLoaded) {
      const account = caller % ACCOUNTS;
      paying[account]!++;
      await traces.request('POST /pay', () => orders.pay(account));
      paying[account]!--;
      await traces.request('POST /refund', () => orders.refund(caller));
      // Without a pause, payments would wait for each other nearly all the time.
      await worksFor(20);
    }
  });
  await worksFor(100);
  const callers = CALLERS / ACCOUNTS;
  const allHaveCome = async () => {
    await eventually(() => expect(paying[1]).toBe(callers));
    // The busier the machine, the longer payments wait for each other. So they wait for the report for longer than for
    // all that came before it, and little comes after it.
    await worksFor(3 * (performance.now() - began));
    isLoaded = false;
  };
  await traces.request('cron nightly', () => report.run(allHaveCome));
  await Promise.all(load);

  const backend = new Backend(traces.spans);
  const [[waiter, seconds], ...others] = backend.waits as [[string, number], ...[string, number][]];
  expect(waiter).toBe('Orders.pay');
  // The callers of that account have waited for the report, side by side.
  expect(seconds).toBeGreaterThan((callers * SLOW_MS * 0.9) / 1_000);
  expect(others.every(([, waited]) => waited < seconds / 2)).toBe(true);

  const [[blocker, blocked]] = backend.blockersOf('Orders.pay') as [[string, number]];
  expect(blocker).toBe('NightlyReport.run');
  expect(blocked).toBeGreaterThan((callers * SLOW_MS * 0.8) / 1_000);
  expect(blocked).toBeLessThanOrEqual(seconds + 0.001);
  expect(backend.blockingTracesOf('Orders.pay')[0]).toBe('cron nightly');
});

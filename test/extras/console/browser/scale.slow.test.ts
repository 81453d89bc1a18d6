import { RedisLockService } from 'nestjs-redis-lock';
import { useCrowds } from '../../../support/process/crowd.js';
import { useRedis } from '../../../support/redis/redis-server.js';
import { useRealConsole, type RealConsole } from './real-console.js';

const IS_LONG = process.env['TEST_SPEED'] === 'long';
/** A thousand instances take long to start. Whatever grows faster than they do shows with fewer of them. */
const [PROCESSES, IN_EACH] = IS_LONG ? [8, 125] : [4, 75];
const INSTANCES = PROCESSES * IN_EACH;
const LEASES = 10;
const LOCKS = INSTANCES * LEASES;
const VIEWS = [
  'now',
  'locks',
  'instances',
  'lock?resource=order%3Acrowd-3-7%3A0',
  // The page takes as long for so many rows in a small fleet, where a roll call takes next to no time.
  ...(IS_LONG ? ['locks?limit=1000'] : []),
];
const ROUNDS = 2;

describe(`the console of ${INSTANCES} instances that hold ${LOCKS} locks`, () => {
  const redis = useRedis();
  const startCrowd = useCrowds(() => redis().url);
  const open = useRealConsole(() => redis().url);

  it('shows each view about as fast as Redis can be asked', async () => {
    await startCrowd({ processes: PROCESSES, inEach: IN_EACH, leases: LEASES });
    // The same, without anything to show: what the browser and the application take.
    const empty = await firstViews(await open({ keyPrefix: 'empty' }));
    const real = await open();
    const from = performance.now();
    const { instances } = await real.app.get(RedisLockService).fleet({ timeoutMs: 4_000 });
    const rollCallMs = performance.now() - from;
    expect(instances).toHaveLength(INSTANCES + 1);

    const full = await firstViews(real);
    process.stdout.write(
      `first views in ms: ${JSON.stringify(full)}; of an empty fleet: ${JSON.stringify(empty)}; ` +
        `a roll call of ${INSTANCES + 1}: ${Math.round(rollCallMs)} ms\n`,
    );
    for (const view of VIEWS) {
      expect([view, Math.min(...full[view]!)]).toEqual([view, expect.any(Number)]);
      expect(Math.min(...full[view]!)).toBeLessThan(10 * (Math.min(...empty[view]!) + rollCallMs));
    }

    const { page, go, complaints } = real;
    await go('now');
    const rows = page.getByRole('table', { name: 'Locks', exact: true }).locator('tbody tr');
    const shown = (count: number): string => count.toLocaleString('en');
    await page.getByText(`${shown(INSTANCES + 1)} of ${shown(INSTANCES + 1)} instances`).waitFor();
    expect(await page.locator('dl.figures dd').first().innerText()).toBe(shown(LOCKS));
    await go('locks?limit=1000');
    await page.getByText(`${shown(LOCKS - 1_000)} more.`).waitFor();
    expect(await rows.count()).toBe(1_000);
    await go('locks?sort=-waiters');
    await page.getByText(`${shown(LOCKS - 100)} more.`).waitFor();
    expect(await page.locator('h1').innerText()).toBe(`Locks ${shown(LOCKS)}`);
    expect(await rows.count()).toBe(100);
    const last = `crowd-${PROCESSES - 1}-${IN_EACH - 1}:9`;
    await page.getByRole('searchbox').fill(last);
    await page.getByText('Instance').first().waitFor();
    await page.getByRole('link', { name: `order:${last}`, exact: true }).waitFor();
    expect(await rows.count()).toBe(1);
    expect(complaints).toEqual([]);
  }, 240_000);
});

/** From the moment when the address is entered until there are rows, or it is said that there are none. */
async function firstViews({ page, url }: RealConsole): Promise<Record<string, number[]>> {
  const times: Record<string, number[]> = {};
  for (let round = 0; round < ROUNDS; round++) {
    for (const view of VIEWS) {
      // Nothing is shared with the view before.
      await new Promise((resolve) => setTimeout(resolve, 1_100));
      await page.goto('about:blank');
      await page.goto(`${url}#${view}`);
      await page.locator('main table').first().waitFor();
      (times[view] ??= []).push(Math.round(Number(await page.evaluate('performance.now()'))));
    }
  }
  return times;
}

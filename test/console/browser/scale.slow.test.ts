import { RedisLockService } from 'nestjs-redis-lock';
import { useCrowds } from '../../support/process/crowd.js';
import { useRedis } from '../../support/redis/redis-server.js';
import { rowsOf } from './open-console.js';
import { useRealConsole, type RealConsole } from './real-console.js';

const PROCESSES = 8;
const IN_EACH = 125;
const LEASES = 10;
const VIEWS = ['now', 'locks', 'instances', 'locks?limit=1000', 'lock?resource=order%3Acrowd-3-7%3A0'];
const ROUNDS = 3;

describe('the console of 1,000 instances that hold 10,000 locks', () => {
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
    expect(instances).toHaveLength(PROCESSES * IN_EACH + 1);

    const full = await firstViews(real);
    process.stdout.write(
      `first views in ms: ${JSON.stringify(full)}; of an empty fleet: ${JSON.stringify(empty)}; ` +
        `a roll call of 1,001: ${Math.round(rollCallMs)} ms\n`,
    );
    for (const view of VIEWS) {
      expect([view, Math.min(...full[view]!)]).toEqual([view, expect.any(Number)]);
      expect(Math.min(...full[view]!)).toBeLessThan(10 * (Math.min(...empty[view]!) + rollCallMs));
    }

    const { page, go, complaints } = real;
    await go('now');
    await page.getByText('1,001 of 1,001 instances').waitFor();
    expect(await page.locator('dl.figures dd').first().innerText()).toBe('10,000');
    await go('locks?sort=-waiters');
    expect(await page.locator('h1').innerText()).toBe('Locks 10,000');
    expect(await rowsOf(page, 'Locks')).toHaveLength(100);
    await page.getByText('9,900 more.').waitFor();
    await page.getByRole('searchbox').fill('crowd-7-124:9');
    await page.getByText('Instance').first().waitFor();
    await page.getByRole('link', { name: 'order:crowd-7-124:9', exact: true }).waitFor();
    expect(await rowsOf(page, 'Locks')).toHaveLength(1);
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

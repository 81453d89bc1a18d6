import type { DynamicModule } from '@nestjs/common';
import { RedisLockService } from 'nestjs-redis-lock';
import { RedisLockConsoleModule } from 'nestjs-redis-lock/console';
import { PLATFORMS } from '../../../nest/platforms.js';
import { type Browser, launchBrowser } from '../../../support/process/browser.mjs';
import { SURROUNDINGS, type Surroundings, useSurroundings } from '../console-apps.js';

const HOSTILE = '<img src=x onerror=alert(1)>';
const CONSOLE: DynamicModule = RedisLockConsoleModule.forRoot({
  path: 'ops/locks',
  unguarded: 'I know',
  actions: ['release'],
  who: () => 'ann',
});

/** Each two of platform, prefix, proxy and helmet meet. What is answered in all of them, `http.test.ts` says. */
const isTried =
  (platform: string) =>
  ({ prefix, proxy, helmet }: Surroundings): boolean => {
    const isExpress = (prefix === '') !== (proxy === 'strips');
    const isPaired = isExpress === (platform === 'Express') && helmet === ((proxy !== 'keeps') === isExpress);
    return isPaired || process.env['TEST_SPEED'] === 'long';
  };

const start = useSurroundings();
let browser: Browser;
beforeAll(async () => {
  browser = await launchBrowser();
}, 120_000);
afterAll(() => browser?.close());

describe.each(PLATFORMS)('the page that %s serves', (name, adapter) => {
  it.each(SURROUNDINGS.filter(isTried(name)))(
    'loads, lists and releases without a complaint, with %j',
    async (surroundings) => {
      const { app, page: address } = await start(adapter(), CONSOLE, surroundings);
      const lease = await app.get(RedisLockService).acquire(HOSTILE);
      const context = await browser.newContext();
      try {
        const page = await context.newPage();
        const complaints: string[] = [];
        page.on('console', (message) => complaints.push(message.text()));
        page.on('pageerror', (error) => complaints.push(error.message));
        await page.goto(address);
        await page.getByRole('heading', { level: 1, name: 'Nothing needs attention' }).waitFor();
        for (const view of ['Blockers', 'Jobs', 'Leaders', 'Instances', 'Locks']) {
          await page.getByRole('navigation').getByRole('link', { name: view, exact: true }).click();
          await page.getByRole('heading', { level: 1, name: view }).waitFor();
          await page.locator('main[aria-busy="true"]').waitFor({ state: 'detached' });
        }
        await page.getByRole('link', { name: HOSTILE }).click();
        await page.getByRole('button', { name: 'Release…' }).click();
        await page.getByLabel('Reason').fill('a test');
        await page.getByRole('button', { name: 'Release this lease' }).click();
        await page.getByText('Released for ann.').waitFor();
        expect(complaints).toEqual([]);
      } finally {
        await context.close();
        await lease.release().catch(() => {});
      }
    },
  );
});

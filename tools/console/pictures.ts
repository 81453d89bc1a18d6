// npm run console:pictures [-- <folder> [<part of a name>]]   a picture of each view of the console, at three sizes and in both schemes
import { mkdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { launchBrowser, type Page } from '../../test/support/process/browser.mjs';
import { serveShop } from './shop-server.js';

const folder = resolve(process.argv[2] ?? join(import.meta.dirname, '../../node_modules/.cache/console-pictures'));
const part = process.argv[3] ?? '';
const isWanted = (name: string): boolean => name.includes(part);
mkdirSync(folder, { recursive: true });

const VIEWS = {
  now: '#now',
  locks: '#locks',
  lock: '#lock?resource=stock%3Asku-2291',
  blockers: '#blockers',
  jobs: '#jobs',
  job: '#job?name=invoice-reminders',
  leaders: '#leaders',
  instances: '#instances',
};
/** Dialogs that are opened from a view. */
const FOLLOWS: Readonly<Record<string, string>> = { lock: 'release', jobs: 'pause' };
const SIZES = {
  narrow: { width: 390, height: 844 },
  laptop: { width: 1280, height: 800 },
  large: { width: 1920, height: 1080 },
};
/** In the afternoon, so that jobs have times of a working day. */
const FROM = Date.parse('2026-11-26T13:42:37Z');

/** Begins at the same moment for each picture, however long the others have taken. */
function rewind(): void {
  const opened = Date.now();
  server.now = () => FROM + Date.now() - opened;
}

/** Each look is an answer, and the small lines need some. */
async function passTenMinutes(page: Page): Promise<void> {
  for (let left = 28; left >= 0; left--) {
    server.now = () => FROM - left * 20_000;
    const answered = page.waitForResponse(/api\/now/);
    await page.evaluate("document.dispatchEvent(new Event('visibilitychange'))");
    await answered;
  }
  rewind();
}

const browser = await launchBrowser();
const server = await serveShop({
  from: FROM,
  actions: ['release', 'runJob', 'pauseJob', 'resumeJob'],
});
try {
  for (const colorScheme of ['light', 'dark'] as const) {
    for (const [size, viewport] of Object.entries(SIZES)) {
      const context = await browser.newContext({
        viewport,
        colorScheme,
        locale: 'en-GB',
        timezoneId: 'Europe/Berlin',
        deviceScaleFactor: size === 'narrow' ? 2 : 1,
      });
      const page = await context.newPage();
      page.on('console', (message) => console.log(message.text()));
      page.on('pageerror', (error) => console.log(error.message));
      const shoot = async (name: string): Promise<void> => {
        await page.screenshot({
          path: join(folder, `${name}-${size}-${colorScheme}.png`),
          fullPage: size === 'narrow',
        });
      };
      for (const [name, hash] of Object.entries(VIEWS)) {
        if (![name, FOLLOWS[name] ?? name].some((each) => isWanted(`${each}-${size}-${colorScheme}`))) continue;
        await page.goto('about:blank');
        rewind();
        await page.goto(server.url + hash);
        await page.locator('main[aria-busy="true"]').waitFor({ state: 'detached' });
        if (name === 'now') await passTenMinutes(page);
        await page.waitForTimeout(1_100);
        await shoot(name);
        if (name === 'lock') {
          // The second look at it has a conclusion.
          await page.waitForTimeout(2_000);
          await shoot(name);
          await page.getByRole('button', { name: 'Release…' }).click();
          await shoot('release');
        }
        if (name === 'jobs') {
          await page.getByRole('button', { name: 'Pause cart-expiry' }).click();
          await shoot('pause');
        }
      }
      server.instead = {
        status: 503,
        body: {
          error: {
            code: 'REDIS_UNAVAILABLE',
            message: 'Redis is out of memory and rejects writes. Raise maxmemory, or remove other data.',
          },
        },
      };
      if (isWanted(`away-${size}-${colorScheme}`)) {
        await page.goto('about:blank');
        await page.goto(`${server.url}#now`);
        await page.getByText('Locks are unavailable.').waitFor();
        await shoot('away');
      }
      server.instead = undefined;
      await context.close();
    }
  }
} finally {
  await browser.close();
  await server.stop();
}
console.log(folder);

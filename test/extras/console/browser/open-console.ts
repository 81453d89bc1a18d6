import { serveShop } from '../../../../tools/console/shop-server.js';
import { type Browser, type BrowserContext, launchBrowser, type Page } from '../../../support/process/browser.mjs';

/** The time limit for a browser on a busy machine. */
export const PATIENT_MS = 20_000;

type World = Parameters<typeof serveShop>[0];
type ServedShop = Awaited<ReturnType<typeof serveShop>>;
type Look = Parameters<Browser['newContext']>[0];

/** The page in a browser, with the console of a shop. */
export interface OpenConsole {
  readonly shop: ServedShop;
  readonly page: Page;
  readonly context: BrowserContext;
  /** Browser errors. */
  readonly complaints: string[];
  /** Opens a view: what stands behind the # of the address. */
  go(place: string): Promise<void>;
}

/** One browser for the tests of a file; a shop and a page for each of them. */
export function useConsole() {
  let browser: Browser;
  const opened: { end(): Promise<void> }[] = [];

  beforeAll(async () => {
    browser = await launchBrowser();
  }, 120_000);
  afterEach(async () => {
    for (const { end } of opened.splice(0)) await end();
  });
  afterAll(() => browser?.close());

  return async (world?: World, look?: Look): Promise<OpenConsole> => {
    const shop = await serveShop(world);
    opened.push({ end: () => shop.stop() });
    const context = await browser.newContext(look);
    opened.unshift({ end: () => context.close() });
    context.setDefaultTimeout(PATIENT_MS);
    const page = await context.newPage();
    const complaints: string[] = [];
    page.on('console', (message) => {
      if (['error', 'warning'].includes(message.type())) complaints.push(message.text());
    });
    page.on('pageerror', (error) => complaints.push(error.message));
    return {
      shop,
      page,
      context,
      complaints,
      async go(place) {
        await page.goto(`${shop.url}#${place}`);
        await page.locator('main[aria-busy="true"]').waitFor({ state: 'detached' });
      },
    };
  };
}

/** All texts of the rows of a table, cell by cell. */
export async function rowsOf(page: Page, caption: string): Promise<string[][]> {
  const table = page.getByRole('table', { name: caption, exact: true });
  await table.waitFor();
  return table
    .locator('tbody tr')
    .evaluateAll((rows: { children: Iterable<{ innerText: string }> }[]) =>
      rows.map(({ children }) => Array.from(children, (cell) => cell.innerText.replace(/\s+/g, ' ').trim())),
    );
}

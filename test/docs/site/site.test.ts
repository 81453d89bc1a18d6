import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import {
  type Browser,
  type BrowserContext,
  type ConsoleMessage,
  launchBrowser,
  type Page,
  type Response,
} from '../../support/process/browser.mjs';
import { GUIDES, readGuide, ROOT } from '../guides.js';
import { serveSite, type SiteServer } from './site-server.js';

const BUILD_MS = 600_000;
/** A page may load Mermaid, on a machine that does much else. */
const PAGE_MS = 30_000;

/** The paths of the pages of docs/ on the site. */
const pages = GUIDES.filter((path) => path.startsWith('docs/')).map((path) => ({
  path: `/${path
    .replace('docs/', '')
    .replace(/README\.md$/, 'index.md')
    .replace(/\.md$/, '.html')}`,
  diagrams: readGuide(path).match(/^```mermaid$/gm)?.length ?? 0,
}));

/** Each page would fetch the pages that it links to. */
const SAVE_DATA = 'Object.defineProperty(navigator, "connection", { value: { saveData: true } })';

/** The site is served beside the browser: to compress what it sends takes longer than all else. */
const UNCOMPRESSED = { 'accept-encoding': 'identity' };

/** Follows a link in the browser. Returns the page, and its differences from the same page when loaded directly. */
const FOLLOW = `async (path) => {
  const built = new DOMParser().parseFromString(await (await fetch(path)).text(), 'text/html').querySelector('.vp-doc');
  const link = document.createElement('a');
  link.href = path;
  document.body.append(link);
  link.click();
  link.remove();
  const until = performance.now() + ${PAGE_MS};
  const isShown = () => document.querySelector('.vp-doc')?.className === built.className;
  while (!isShown() && performance.now() < until) await new Promise((resolve) => setTimeout(resolve, 5));
  const main = document.querySelector('main');
  // The marks that Vue leaves between elements are comments, too.
  const htmlOf = (doc) => doc.innerHTML.replaceAll(/<!--[\\[\\]]?-->/g, '');
  const htmls = [htmlOf(document.querySelector('.vp-doc')), htmlOf(built)];
  const isSame = htmls[0] === htmls[1];
  let same = isSame ? htmls[0].length : 0;
  while (!isSame && htmls[0][same] === htmls[1][same]) same++;
  const [shown, expected] = htmls.map((html) => html.slice(same, same + 200));
  return {
    headings: main.querySelectorAll('h1').length,
    hasMark: main.textContent.includes('<!--'),
    shown,
    built: expected,
  };
}`;

interface Followed {
  readonly headings: number;
  /** One that is for the tests. */
  readonly hasMark: boolean;
  /** From where the two differ: empty where they do not. */
  readonly shown: string;
  readonly built: string;
}

describe('the site in a browser', () => {
  let site: SiteServer | undefined;
  let browser: Browser;
  let context: BrowserContext;
  let page: Page;
  /** Browser errors on any page of a test. */
  let complaints: string[];

  beforeAll(async () => {
    site = await serveSite();
    browser = await launchBrowser();
    // One for all tests: it keeps what all pages load.
    context = await browser.newContext({ baseURL: site.url, extraHTTPHeaders: UNCOMPRESSED });
    context.setDefaultTimeout(PAGE_MS);
  }, BUILD_MS);
  afterAll(async () => {
    await browser?.close();
    await site?.stop();
  }, BUILD_MS);

  beforeEach(async () => {
    complaints = [];
    page = await context.newPage();
    page.on('console', (message: ConsoleMessage) => {
      if (['error', 'warning'].includes(message.type())) complaints.push(message.text());
    });
    page.on('pageerror', (error: Error) => complaints.push(error.message));
    page.on('response', (response: Response) => {
      if (!response.ok() && response.status() !== 304) complaints.push(`${response.status()} ${response.url()}`);
    });
  });
  afterEach(() => page.close());

  /** The page changes after the address does. */
  const heading = (name: string) => page.locator('main').getByRole('heading', { level: 1, name }).waitFor();

  it('begins with the README', async () => {
    await page.goto('/');
    await heading('nestjs-redis-lock');
    expect(complaints).toEqual([]);
  });

  it('leads from page to page', async () => {
    await page.goto('/');
    await page.locator('.VPNavBarMenu').getByRole('link', { name: 'Reference' }).click();
    await heading('Module options');
    await page.locator('.VPSidebar').getByRole('link', { name: 'Errors', exact: true }).click();
    await heading('Errors');
    expect(new URL(page.url()).pathname).toBe('/reference/errors.html');
    await page.locator('main').getByText('LOCK_TIMEOUT').first().waitFor();
    // A link from a generated table to a heading of another page.
    await page.locator('main').getByRole('link', { name: 'Which error do I get?' }).click();
    await page.waitForURL('**/guide/waiting.html#which-error-do-i-get');
    expect(complaints).toEqual([]);
  });

  it('names the guides from other libraries beside the page', async () => {
    await page.goto('/');
    await page.locator('.VPSidebar').getByRole('heading', { name: 'Coming from' }).click();
    await page.locator('.VPSidebar a[href="/migration/"]').click();
    await heading('Migrating from other libraries');
    expect(new URL(page.url()).pathname).toBe('/migration/');
    await page.locator('.VPSidebar').getByRole('link', { name: 'From murlock' }).click();
    await heading('From murlock');
    expect(complaints).toEqual([]);
  });

  it('finds a word', async () => {
    await page.goto('/');
    await page.getByRole('button', { name: 'Search' }).click();
    await page.getByRole('searchbox').fill('restartQuarantineMs');
    const results = page.locator('#localsearch-list a');
    await results.first().waitFor();
    await page.getByRole('searchbox').press('Enter');
    await page.waitForURL(/\.html/);
    await page.locator('main').getByText('restartQuarantineMs').first().waitFor();
    expect(complaints).toEqual([]);
  });

  it('finds a page by a word of its description', async () => {
    await page.goto('/guide/one-turn.html');
    expect(await page.locator('meta[name="description"]').getAttribute('content')).toContain('agents');
    expect(await page.locator('main').getByText('agents').count()).toBe(0);
    await page.getByRole('button', { name: 'Search' }).click();
    await page.getByRole('searchbox').fill('LLM agents');
    await page.locator('#localsearch-list a[href*="one-turn"]').first().waitFor();
    expect(complaints).toEqual([]);
  });

  it('shows the options with what is allowed', async () => {
    await page.goto('/reference/lock-options.html');
    const row = page.locator('tr', { has: page.locator('td:first-child code', { hasText: /^attemptTimeoutMs$/ }) });
    expect(await row.locator('td').nth(1).innerText()).toBe('10 ms to 60 s');
    expect(complaints).toEqual([]);
  });

  it('has the API, with what the types are and what the comments say', async () => {
    await page.goto('/');
    await page.locator('.VPNavBarMenu').getByRole('link', { name: 'API' }).click();
    await heading('API');
    await page.locator('main').getByRole('link', { name: 'nestjs-redis-lock', exact: true }).click();
    await page.locator('main').getByRole('link', { name: 'LockTimeoutError', exact: true }).click();
    await heading('LockTimeoutError');
    await page.locator('main').getByText('retryAfterMs').first().waitFor();
    await page.locator('main').getByText('Raise waitMs').waitFor();
    expect(complaints).toEqual([]);
  });

  it(
    'draws the diagrams',
    async () => {
      expect(pages.some(({ diagrams }) => diagrams > 0)).toBe(true);
      for (const { path, diagrams } of pages.filter((each) => each.diagrams > 0)) {
        await page.goto(path);
        const drawn = page.locator('main .mermaid svg');
        await drawn.nth(diagrams - 1).waitFor();
        expect([path, await page.locator('main .mermaid').count()]).toEqual([path, diagrams]);
        const { width, height } = (await drawn.first().boundingBox())!;
        expect(Math.min(width, height)).toBeGreaterThan(50);
      }
      expect(complaints).toEqual([]);
    },
    BUILD_MS,
  );

  // By a link, which is four times as fast as to load each page. Vue complains of a loaded page that is not what it draws itself.
  it(
    'opens every page of docs/ without a complaint, as it was built, and shows no mark that is for the tests',
    async () => {
      expect(pages.length).toBeGreaterThan(20);
      await page.addInitScript(SAVE_DATA);
      await page.goto('/');
      for (const { path, diagrams } of pages) {
        const { headings, hasMark, shown, built }: Followed = await page.evaluate(`(${FOLLOW})('${path}')`);
        expect({ path, headings, hasMark }).toEqual({ path, headings: 1, hasMark: false });
        // Diagrams are drawn in the browser alone.
        if (diagrams === 0) expect([path, shown]).toEqual([path, built]);
      }
      expect(complaints).toEqual([]);
    },
    BUILD_MS,
  );

  it('keeps the marks for the tests out of what it sends', () => {
    const built = readdirSync(join(ROOT, 'site/dist'), { recursive: true, encoding: 'utf8' });
    const assets = built.filter((name) => /\.(html|js)$/.test(name)).map((name) => readGuide(`site/dist/${name}`));
    expect(assets.length).toBeGreaterThan(20);
    expect(assets.filter((text) => /<!-- (run|file|generated)\b/.test(text))).toEqual([]);
  });

  it('would notice an error in the console and a page that is missing', async () => {
    await page.goto('/');
    await page.evaluate('console.error("broken")');
    await page.goto('/nowhere.html');
    expect(complaints).toEqual(expect.arrayContaining(['broken', `404 ${site!.url}/nowhere.html`]));
  });
});

// Each takes as long as all of the above. Mermaid is fetched by an address that depends on both.
if (process.env['TEST_SPEED'] === 'long') {
  describe.each([
    ['built for a path of its host', { base: '/docs/' }],
    ['while its pages are being written', { dev: true }],
    ['while they are, below a path', { dev: true, base: '/docs/' }],
  ])('the site %s', (_form, how) => {
    it(
      'draws the diagrams, and nothing is missing',
      async () => {
        const site = await serveSite(how);
        const browser = await launchBrowser();
        try {
          const page = await browser.newPage();
          const failed: string[] = [];
          page.on('pageerror', (error: Error) => failed.push(error.message));
          page.on('response', (response: Response) => {
            if (response.status() >= 400 && !response.url().endsWith('/favicon.ico')) failed.push(response.url());
          });
          for (const { path, diagrams } of pages.filter((each) => each.diagrams > 0)) {
            await page.goto(site.url + path);
            await page
              .locator('main .mermaid svg')
              .nth(diagrams - 1)
              .waitFor({ timeout: PAGE_MS });
          }
          expect(failed).toEqual([]);
          expect(site.output()).not.toMatch(/error|could not/i);
        } finally {
          await browser.close();
          await site.stop();
        }
      },
      BUILD_MS,
    );
  });
}

import type { INestApplication, Provider } from '@nestjs/common';
import { RedisLockConsoleModule } from 'nestjs-redis-lock/console';
import type { RedisLockConsoleOptions } from '../../../../lib/extras/console/nest/console-options.js';
import { inMemory, useApps } from '../../../nest/nest-apps.js';
import { type Browser, type BrowserContext, launchBrowser, type Page } from '../../../support/process/browser.mjs';
import { PATIENT_MS } from './open-console.js';

export interface RealConsoleOptions extends Partial<RedisLockConsoleOptions> {
  readonly keyPrefix?: string;
  /** The time limit for Redis: by default longer than any busy machine needs. */
  readonly attemptTimeoutMs?: number;
  readonly imports?: never;
  /** Further modules of the application. */
  readonly modules?: NonNullable<Parameters<ReturnType<typeof useApps>>[0]['imports']>;
  readonly providers?: Provider[];
}

/** The console of an application, in a browser. */
export interface RealConsole {
  readonly app: INestApplication;
  readonly url: string;
  readonly page: Page;
  readonly context: BrowserContext;
  /** Browser errors. */
  readonly complaints: string[];
  /** Opens a view: what stands behind the # of the address. */
  go(place: string): Promise<void>;
}

/** Starts applications on a real Redis, each with a console and a page that shows it. */
export function useRealConsole(connection: () => string): (options?: RealConsoleOptions) => Promise<RealConsole> {
  let browser: Browser;
  const contexts: BrowserContext[] = [];
  const startApp = useApps();

  beforeAll(async () => {
    browser = await launchBrowser();
  }, 120_000);
  afterEach(async () => {
    for (const context of contexts.splice(0)) await context.close();
  });
  afterAll(() => browser?.close());

  return async ({ keyPrefix = 'lock', attemptTimeoutMs = 20_000, modules = [], providers = [], ...options } = {}) => {
    const console = RedisLockConsoleModule.forRoot({ path: 'ops/locks', unguarded: 'I know', ...options });
    const locks = inMemory({ connection: connection(), keyPrefix, instanceId: 'the-console', attemptTimeoutMs });
    const { app, url: origin } = await startApp({ imports: [locks, console, ...modules], providers });
    const context = await browser.newContext();
    contexts.push(context);
    context.setDefaultTimeout(PATIENT_MS);
    const page = await context.newPage();
    const complaints: string[] = [];
    page.on('console', (message) => complaints.push(message.text()));
    page.on('pageerror', (error) => complaints.push(error.message));
    const url = `${origin}/ops/locks/`;
    return {
      app,
      url,
      page,
      context,
      complaints,
      async go(place) {
        await page.goto(`${url}#${place}`);
        await page.locator('main[aria-busy="true"]').waitFor({ state: 'detached' });
      },
    };
  };
}

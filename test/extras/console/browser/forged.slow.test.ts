import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type Lease, RedisLockService } from 'nestjs-redis-lock';
import { RedisLockConsoleModule } from 'nestjs-redis-lock/console';
import { inMemory, useApps } from '../../../nest/nest-apps.js';
import { PLATFORMS } from '../../../nest/platforms.js';
import { type Browser, launchBrowser, type Page } from '../../../support/process/browser.mjs';

const startApp = useApps();
let browser: Browser;
let evil: Server;

beforeAll(async () => {
  // Names that are not of this machine. Without TLS, a browser does not say by Sec-Fetch-Site where a request comes from.
  browser = await launchBrowser(['--host-resolver-rules=MAP *.test 127.0.0.1']);
  evil = createServer((_request, response) => response.setHeader('content-type', 'text/html').end('<p>Win a prize!'));
  await new Promise<void>((resolve) => evil.listen(0, '127.0.0.1', resolve));
}, 120_000);
afterAll(async () => {
  await browser?.close();
  evil?.closeAllConnections();
  await new Promise((resolve) => evil.close(resolve));
});

const atEvil = (): string => `http://evil.test:${(evil.address() as AddressInfo).port}/`;

/**
 * Runs the attacks of a foreign page in an administrator's browser. @returns the kinds of replies that its scripts
 * could read
 */
function attack(page: Page, address: string, body: string): Promise<string[]> {
  return page.evaluate(
    async ([url, text]) => {
      const json = { 'content-type': 'application/json', 'x-lock-console': '1' };
      const posts: [string, RequestInit][] = [
        ['text', { mode: 'no-cors', body: text }],
        ['form', { mode: 'no-cors', body: new URLSearchParams({ body: text! }) }],
        ['files', { mode: 'no-cors', body: new FormData() }],
        ['json', { mode: 'no-cors', body: text, headers: json }],
        ['asked first', { mode: 'cors', body: text, headers: json }],
        ['with cookies', { mode: 'cors', body: text, headers: json, credentials: 'include' }],
      ];
      const told = await Promise.all(
        posts.map(async ([name, init]) => {
          const answer = await fetch(url!, { method: 'POST', ...init }).catch(() => undefined);
          return `${name}: ${answer?.status ?? 'not sent'}`;
        }),
      );
      const { navigator } = globalThis as unknown as { navigator: { sendBeacon(to: string, data: Blob): boolean } };
      navigator.sendBeacon(url!, new Blob([text!], { type: 'application/json' }));
      return told;
    },
    [address, body],
  );
}

describe.each(PLATFORMS)('a console on %s, without TLS', (_name, adapter) => {
  const opened: { close(): Promise<unknown> }[] = [];
  afterEach(async () => {
    for (const each of opened.splice(0)) await each.close();
  });

  const open = async (cors: boolean) => {
    const allowedOrigins: string[] = [];
    const { app, url } = await startApp({
      adapter: adapter(),
      imports: [
        inMemory(),
        RedisLockConsoleModule.forRoot({
          unguarded: 'I know',
          actions: ['release'],
          who: () => 'ann',
          ...(cors && { allowedOrigins }),
        }),
      ],
      configure: (starting) => void (cors && starting.enableCors()),
    });
    const origin = url.replace('127.0.0.1', 'ops.test');
    // Which port it is, is known now.
    allowedOrigins.push(origin);
    const locks = app.get(RedisLockService);
    const lease: Lease = await locks.acquire('order:7');
    opened.push({ close: () => lease.release() });
    const context = await browser.newContext();
    opened.push(context);
    const page = await context.newPage();
    const isHeld = async () => (await locks.inspect('order:7')).holders.length > 0;
    const body = JSON.stringify({ resource: 'order:7', fencingToken: lease.fencingToken, reason: 'a prize' });
    return { origin, page, isHeld, body, post: `${origin}/locks/api/release` };
  };

  it.each([false, true])('does nothing for a page of another site; every origin may send headers: %j', async (cors) => {
    const { page, isHeld, body, post } = await open(cors);
    await page.goto(atEvil());
    const told = await attack(page, post, body);
    const asked = cors
      ? ['asked first: 403', 'with cookies: not sent']
      : ['asked first: not sent', 'with cookies: not sent'];
    // For a request without a preflight, a script can't read the status: it is 0.
    expect(told).toEqual(['text: 0', 'form: 0', 'files: 0', 'json: 0', ...asked]);
    const answered = page.waitForResponse(post);
    await page.setContent(
      `<form method="post" action="${post}" enctype="text/plain"><input name='${body.slice(0, -1)},"x":"' value='"}'></form>`,
    );
    await page.evaluate('document.forms[0].submit()');
    expect((await answered).status()).toBe(415);
    expect(await isHeld()).toBe(true);
  });

  it.each([false, true])('does what its own page asks for; every origin may send headers: %j', async (cors) => {
    const { origin, page, isHeld } = await open(cors);
    await page.goto(`${origin}/locks/#lock?resource=order:7`);
    const sent = page.waitForRequest((request) => request.method() === 'POST');
    await page.getByRole('button', { name: 'Release…' }).click();
    await page.getByLabel('Reason').fill('a test');
    await page.getByRole('button', { name: 'Release this lease' }).click();
    await page.getByText('Released for ann.').waitFor();
    expect(await isHeld()).toBe(false);
    const headers = await (await sent).allHeaders();
    expect([headers['origin'], headers['sec-fetch-site']]).toEqual([origin, undefined]);
  });
});

import { spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type CDPSession, chromium } from 'playwright-core';
import { PAGE } from '../../../../lib/extras/console/page/page.generated.js';
import { serveShop } from '../../../../tools/console/shop-server.mjs';
import { eventually } from '../../../support/expect/eventually.js';
import type { Page } from '../../../support/process/browser.mjs';
import { BROWSER, findTools } from '../../../support/process/toolchain.mjs';
import { PATIENT_MS, useConsole } from './open-console.js';

/** So much of the page's time passes at once. What is answered meanwhile is late by at most that: half a second shows. */
const STEP_MS = 400;

/** Notes when the page asks, and what has not been answered yet. */
const COUNTED = `
  window.asked = [];
  window.open = 0;
  const ask = window.fetch;
  window.fetch = async (address, init) => {
    if (!String(address).includes('session')) window.asked.push(Date.now());
    window.open++;
    try { return await ask(address, init); } finally { setTimeout(() => window.open--, 0); }
  };`;

describe('how often the page of the console asks', () => {
  const open = useConsole();

  /** Lets this much time pass for the page alone. @returns the times between its questions */
  async function distances(page: Page, forMs: number): Promise<number[]> {
    for (let passed = 0; passed < forMs; passed += STEP_MS) {
      await page.clock.runFor(STEP_MS);
      await eventually(async () => {
        await page.clock.runFor(1);
        expect(await page.evaluate('window.open')).toBe(0);
      });
    }
    const asked: number[] = await page.evaluate('window.asked.splice(0, window.asked.length - 1)');
    const last = Number(await page.evaluate('window.asked[0]'));
    return asked.map((at, place) => (asked[place + 1] ?? last) - at);
  }

  it('is every two seconds, and ever less where nothing answers, down to every 30 s', async () => {
    const { page, context, go, shop } = await open();
    await context.addInitScript(COUNTED);
    await page.clock.install({ time: Date.now() });
    await go('locks');
    const calm = await distances(page, 10_000);
    expect(calm.length).toBeGreaterThanOrEqual(3);
    for (const each of calm) expect(Math.round(each / 1_000)).toBe(2);

    shop.instead = { status: 502, type: 'text/html', body: 'no' };
    const failing = await distances(page, 130_000);
    expect(failing.map((each) => Math.round(each / 1_000)).slice(0, 6)).toEqual([2, 4, 8, 16, 30, 30]);

    shop.instead = undefined;
    await page.getByRole('button', { name: 'Ask now' }).click();
    await page.getByRole('link', { name: 'order:48213' }).waitFor();
    await distances(page, 1_000);
    for (const each of (await distances(page, 8_000)).slice(1)) expect(Math.round(each / 1_000)).toBe(2);
  }, 200_000);

  it('forgets what it has seen long ago', async () => {
    const { page, go, shop } = await open({ locks: 300 });
    const session = await page.context().newCDPSession(page);
    let from = 0;
    const answer = shop.bodies.locks;
    // No lease is there for long.
    shop.bodies.locks = (at, query) => {
      const body = answer(at, query);
      return { ...body, rows: body.rows.map((row) => ({ ...row, key: `${row.key} ${from}`, resource: `#${from}#` })) };
    };
    const entriesAfter = async (answers: number): Promise<number> => {
      for (const until = from + answers; from < until; from++) {
        await page.evaluate(`location.hash = 'locks?filter=o&limit=${900 - from}'`);
        // An answer that comes after the next question is not looked at.
        await page.getByText(`#${from}#`).first().waitFor({ state: 'attached' });
      }
      return entriesOfMaps(session);
    };
    await go('locks?filter=o&limit=1000');
    // Each answer has 300 leases. The page keeps what it has seen of 5,000, and 20 answers.
    expect(await entriesAfter(20)).toBeGreaterThan(300);
    // It has seen 7,800 by now.
    expect(await entriesAfter(6)).toBeLessThan(6_000);
  }, 200_000);
});

/** How many entries the maps of the page have together, which is where it keeps what it has seen. */
async function entriesOfMaps(session: CDPSession): Promise<number> {
  const { result: prototype } = await session.send('Runtime.evaluate', { expression: 'Map.prototype' });
  const { objects: maps } = await session.send('Runtime.queryObjects', { prototypeObjectId: prototype.objectId! });
  const { result } = await session.send('Runtime.callFunctionOn', {
    objectId: maps.objectId!,
    functionDeclaration: 'function () { return this.reduce((sum, { size }) => sum + size, 0); }',
    returnByValue: true,
  });
  return result.value as number;
}

describe('a page of the console in a tab', () => {
  it('asks nothing while another tab is in front of it, and at once when it is back', async () => {
    const shop = await serveShop(PAGE, {});
    const folder = await mkdtemp(join(tmpdir(), 'console-'));
    // As a person starts it: a page that a test drives believes that it is always seen.
    const args = [
      '--headless',
      '--no-sandbox',
      '--remote-debugging-port=0',
      `--user-data-dir=${folder}`,
      'about:blank',
    ];
    const child = spawn(findTools([BROWSER])[0]!, args, { stdio: ['ignore', 'ignore', 'pipe'] });
    const ended = new Promise((resolve) => child.once('exit', resolve));
    try {
      const address = await new Promise<string>((resolve, reject) => {
        let text = '';
        child.once('error', reject);
        child.stderr.on('data', (chunk: Buffer) => {
          text += chunk.toString();
          const found = /DevTools listening on (ws:\S+)/.exec(text);
          if (found) resolve(found[1]!);
        });
      });
      const browser = await chromium.connectOverCDP(address, { noDefaults: true });
      const [context] = browser.contexts();
      context!.setDefaultTimeout(PATIENT_MS);
      const page = await context!.newPage();
      await page.goto(`${shop.url}#locks`);
      await page.getByRole('link', { name: 'order:48213' }).waitFor();
      await eventually(() => expect(shop.calls.length).toBeGreaterThan(2));

      const other = await context!.newPage();
      await page.waitForFunction('document.hidden');
      // What was asked before is answered.
      await other.waitForTimeout(500);
      const asked = shop.calls.length;
      await other.waitForTimeout(5_000);
      expect(shop.calls.length).toBe(asked);

      await page.bringToFront();
      await page.waitForFunction('!document.hidden');
      await eventually(() => expect(shop.calls.length).toBe(asked + 1));
      await eventually(() => expect(shop.calls.length).toBeGreaterThan(asked + 2));
      await browser.close();
    } finally {
      child.kill('SIGKILL');
      await ended;
      await shop.stop();
      await rm(folder, { recursive: true, force: true });
    }
  });
});

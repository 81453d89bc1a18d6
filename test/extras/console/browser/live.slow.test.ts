import type { Page } from '../../../support/process/browser.mjs';
import { useConsole } from './open-console.js';

const HOSTILE = ['<img src=x onerror=alert(1)>', 'order:\u202e7', 'line\nbreak\u0007', 'zero\u200bwidth'];

interface Stop {
  readonly what: string;
  readonly hasOutline: boolean;
  readonly isInDialog: boolean;
}

/** Records the focus from now on, and returns the expected stops on the page or in its dialog. */
async function noteFocus(page: Page): Promise<{ expected: string[]; backward: string[]; seen(): Promise<Stop[]> }> {
  const { expected, backward } = (await page.evaluate(`(() => {
    // The parts of the frame stand in another order on a narrow page: line by line.
    const isBefore = (a, b) => a.bottom <= b.top || (a.top < b.bottom && a.left < b.left);
    const parts = [...document.querySelectorAll('header > *, main')];
    parts.sort((a, b) => a.matches('main') - b.matches('main') ||
      (isBefore(a.getBoundingClientRect(), b.getBoundingClientRect()) ? -1 : 1));
    const dialog = document.querySelector('dialog');
    const all = (dialog ? [dialog] : parts).flatMap((each) => [...each.querySelectorAll('a, button, input, select, summary')]);
    const visible = all.filter((each) => each.checkVisibility({ visibilityProperty: true }));
    const nameOf = (each) => visible.indexOf(each) + ' ' + (each.ariaLabel ?? (each.name || each.innerText.split('\\n')[0] || each.id));
    const isAfter = (a, b) => b.left > a.right - 1 || b.top > a.bottom - 1;
    window.stops = [];
    document.addEventListener('focusin', ({ target }) => {
      const { outlineStyle, outlineWidth, outlineColor } = getComputedStyle(target);
      stops.push({
        what: nameOf(target),
        hasOutline: outlineStyle === 'solid' && parseFloat(outlineWidth) >= 2 && !outlineColor.endsWith(', 0)'),
        isInDialog: target.closest('dialog') !== null,
      });
    });
    return {
      expected: visible.map(nameOf),
      backward: visible
        .filter((each, place) => place > 0 &&
          !isAfter(visible[place - 1].getBoundingClientRect(), each.getBoundingClientRect()))
        .map(nameOf),
    };
  })()`)) as { expected: string[]; backward: string[] };
  return { expected, backward, seen: async () => (await page.evaluate('stops')) as Stop[] };
}

/** Lets the time between two questions pass for the page, and waits until it has asked. */
async function asksAgain(page: Page): Promise<void> {
  const answered = page.waitForResponse((response) => response.url().includes('/api/'));
  await page.clock.runFor(2_000);
  await answered;
}

const ACTIONS = ['release', 'runJob', 'pauseJob', 'resumeJob'] as const;

describe('the page of the console while it is looked at', () => {
  const open = useConsole();

  it('shows names as text, and what hides or reverses text as escapes', async () => {
    const { page, go, complaints } = await open({ resources: HOSTILE });
    for (const place of ['locks', 'now', `lock?resource=${encodeURIComponent(HOSTILE[0]!)}`]) {
      await go(place);
      await page.locator('table').first().waitFor();
      const text = await page.locator('main').innerText();
      expect([place, text.includes(HOSTILE[0]!)]).toEqual([place, true]);
      expect(text).not.toMatch(/[\u0007\u200b\u202e]/);
      expect(await page.locator('img:not([role]), main script').count()).toBe(0);
    }
    await go('locks');
    const text = await page.locator('main').innerText();
    for (const shown of ['order:\\u202e7', 'line\\u000abreak\\u0007', 'zero\\u200bwidth'])
      expect(text).toContain(shown);
    expect(complaints).toEqual([]);
  });

  it('follows changes, and keeps focus, selection and scroll position', async () => {
    const { page, go, shop } = await open({ locks: 60 });
    await page.clock.install();
    await go('locks');
    const link = page.getByRole('link', { name: 'order:100010' });
    await link.focus();
    await page.evaluate(`getSelection().selectAllChildren(document.activeElement)`);
    await page.evaluate('scrollTo(0, 600)');
    const scrolled = Number(await page.evaluate('scrollY'));
    // Rows come and go before it, and the others change places.
    const { leases, waits } = shop.shop;
    const latest = Math.max(...leases.map(({ since }) => since));
    shop.shop.leases = leases
      .filter(({ resource }) => !resource.startsWith('order:4'))
      .map((lease) => ({ ...lease, since: 2 * (latest - 60_000) - lease.since }));
    shop.shop.waits = waits.filter(({ resource }) => !resource.startsWith('order:4'));
    await asksAgain(page);
    await page.getByRole('link', { name: 'order:48213' }).waitFor({ state: 'detached' });
    expect(await page.evaluate('document.activeElement.textContent')).toBe('order:100010');
    expect(await page.evaluate('String(getSelection())')).toBe('order:100010');
    expect(scrolled).toBeGreaterThan(0);
    expect(await page.evaluate('scrollY > 0')).toBe(true);
  });

  it('fills the bar of a lease again when it is renewed', async () => {
    const { page, go, shop } = await open();
    let at = Date.now();
    shop.now = () => at;
    await page.clock.install({ time: at });
    await go('locks?filter=sku-2291');
    const seen: number[] = [];
    for (let step = 0; step < 8; step++) {
      const style = (await page.locator('.fill').first().getAttribute('style')) ?? '';
      seen.push(Number(/[\d.]+/.exec(style)?.[0]));
      at += 2_000;
      await asksAgain(page);
      // The page draws what it has heard.
      await page.clock.runFor(1_000);
    }
    const grown = seen.filter((value, place) => place > 0 && value > seen[place - 1]!);
    const shrunk = seen.filter((value, place) => place > 0 && value < seen[place - 1]!);
    expect(shrunk.length).toBeGreaterThan(0);
    expect(grown.length).toBeGreaterThan(0);
  });

  it('asks with the tag of the answer that it has, and keeps that answer on 304', async () => {
    const { page, go, shop } = await open({ isCalm: true });
    await page.clock.install();
    await go('leaders');
    shop.now = () => 1_795_717_000_000;
    // The first answer of that time is a new one.
    for (let again = 0; again < 2; again++) await asksAgain(page);
    await page.getByRole('row', { name: 'outbox-relay' }).waitFor();
    expect(shop.calls.filter(({ path }) => path === 'leaders').map(({ status }) => status)).toContain(304);
  });

  it('ignores a reply for another view after the address has changed', async () => {
    const { page, go, complaints } = await open();
    for (const view of ['now', 'locks', 'blockers', 'jobs', 'leaders', 'instances']) {
      await go(view);
      // Resolves when the browser has announced the new address. Until then, the page may draw at any time.
      await page.evaluate(`(() => {
        for (const other of ['now', 'locks', 'lock?resource=a', 'blockers', 'jobs', 'job?name=a', 'leaders', 'instances']) {
          location.hash = other;
          // Draws the page. An even number of times, so it is not paused afterwards.
          document.querySelector('[aria-label=Views] ~ .status button').click();
        }
      })()`);
    }
    expect(complaints).toEqual([]);
  });

  it('pauses, and stays paused when it is loaded again', async () => {
    const { page, go, shop } = await open();
    await page.clock.install();
    await go('locks');
    await page.getByRole('button', { name: 'Pause' }).click();
    await page.getByText('Paused').waitFor();
    const asked = shop.calls.length;
    await page.clock.runFor(60_000);
    expect(shop.calls.length - asked).toBeLessThanOrEqual(1);
    await page.reload();
    await page.getByRole('button', { name: 'Resume' }).waitFor();
    await page.getByRole('link', { name: 'order:48213' }).waitFor();
    const before = shop.calls.length;
    await page.getByRole('button', { name: 'Resume' }).click();
    await page.getByText('Live', { exact: true }).waitFor();
    await asksAgain(page);
    expect(shop.calls.length).toBeGreaterThan(before);
  });

  it.each([
    [401, 'You are signed out.', true],
    [403, 'You are not allowed to see this page.', true],
    [429, 'Too many requests.', true],
    [502, 'That did not work (502).', false],
  ])('says what a %i of the application means, and whether it asks again', async (status, head, isFinal) => {
    const { page, go, shop } = await open();
    await page.clock.install();
    await go('locks');
    await page.getByRole('link', { name: 'order:48213' }).waitFor();
    shop.instead = { status, type: 'text/html', body: '<h1>no</h1>' };
    await asksAgain(page);
    await page.getByRole('heading', { level: 1, name: head }).waitFor();
    await page.getByText(isFinal ? 'This page has stopped refreshing.' : 'This page keeps refreshing.').waitFor();
    const asked = shop.calls.length;
    if (isFinal) {
      await page.clock.runFor(60_000);
      expect(shop.calls.length).toBe(asked);
    } else while (shop.calls.length < asked + 2) await page.clock.runFor(2_000);
    shop.instead = undefined;
    await page.getByRole('button', { name: 'Refresh now' }).click();
    await page.getByRole('link', { name: 'order:48213' }).waitFor();
  });

  it('shows that Redis is down, and continues by itself after it recovers', async () => {
    const { page, go, shop } = await open();
    await page.clock.install();
    const message = 'Redis does not answer.';
    shop.instead = { status: 503, body: JSON.stringify({ error: { code: 'REDIS_UNAVAILABLE', message } }) };
    await go('now');
    await page.getByRole('heading', { level: 1, name: 'Locks are unavailable.' }).waitFor();
    await page.getByText(message).waitFor();
    expect(await page.title()).toMatch(/^Now · /);
    shop.instead = undefined;
    await page.clock.runFor(30_000);
    await page.getByRole('heading', { level: 1, name: /^"shipment:71022" is held by/ }).waitFor();
  });

  it('takes the page of a sign-in for what it is', async () => {
    const { page, go, shop } = await open();
    shop.instead = { status: 200, type: 'text/html', body: '<form>Sign in</form>' };
    await go('now');
    await page.getByRole('heading', { level: 1, name: 'You are signed out.' }).waitFor();
    expect(await page.locator('main').innerText()).toContain('This page has stopped refreshing.');
  });

  it('works without what a browser keeps', async () => {
    const { page, go, context, complaints } = await open();
    await context.addInitScript(
      `Object.defineProperty(window, 'localStorage', { get() { throw new Error('forbidden') } })`,
    );
    await go('locks');
    await page.getByRole('button', { name: 'Pause' }).click();
    await page.getByRole('button', { name: 'Resume' }).waitFor();
    expect(complaints).toEqual([]);
  });

  it('is worked by keys: / leads to the filter, Escape away from it, Enter follows a link', async () => {
    const { page, go } = await open();
    await go('locks');
    await page.getByRole('table', { name: 'Locks' }).waitFor();
    await page.keyboard.press('/');
    await page.keyboard.type('sku-2291');
    await page.waitForURL('**/#locks?filter=sku-2291');
    await page.keyboard.press('Escape');
    expect(await page.evaluate('document.activeElement.tagName')).toBe('BODY');
    await page.getByRole('link', { name: 'stock:sku-2291' }).focus();
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { level: 1, name: 'stock:sku-2291' }).waitFor();
    await page.getByRole('table', { name: 'Holders' }).waitFor();
    await page.goBack();
    await page.getByRole('table', { name: 'Locks' }).waitFor();
    expect(await page.getByRole('searchbox').inputValue()).toBe('sku-2291');
  });

  it.each([
    ['now', 1_280],
    ['locks', 1_280],
    ['jobs', 1_280],
    ['jobs', 390],
  ])('is walked through by Tab, each control once and in its order: %s at %i px', async (view, width) => {
    const at = Date.now();
    const { page, go, shop } = await open({ from: at, actions: ACTIONS }, { viewport: { width, height: 800 } });
    shop.now = () => at;
    await go(view);
    await page.locator('table').first().waitFor();
    const { expected, backward, seen } = await noteFocus(page);
    expect(expected.length).toBeGreaterThan(20);
    for (let pressed = 0; pressed < expected.length; pressed++) await page.keyboard.press('Tab');
    const stops = await seen();
    expect(stops.map(({ what }) => what)).toEqual(expected);
    expect(stops.filter(({ hasOutline }) => !hasOutline)).toEqual([]);
    expect(backward).toEqual([]);
  });

  it('keeps Tab within a dialog, and gives the focus back to the button that opened it', async () => {
    const { page, go } = await open({ actions: ACTIONS });
    await go('jobs');
    const opener = page.getByRole('button', { name: 'Pause cart-expiry' });
    await opener.focus();
    await page.keyboard.press('Enter');
    const dialog = page.getByRole('dialog', { name: 'Pause this job?' });
    await dialog.waitFor();
    const { expected, seen } = await noteFocus(page);
    // A field of a time has several stops of its own. So many lead around more than once.
    for (let pressed = 0; pressed < 30; pressed++) await page.keyboard.press('Tab');
    const stops = await seen();
    expect(stops.filter(({ isInDialog, hasOutline }) => !isInDialog || !hasOutline)).toEqual([]);
    const around = stops.map(({ what }) => what);
    const start = around.indexOf(expected[0]!);
    expect(around.slice(start, start + expected.length)).toEqual(expected);
    expect(around.length).toBeGreaterThan(expected.length);
    await page.keyboard.press('Escape');
    await dialog.waitFor({ state: 'detached' });
    expect(await page.evaluate('document.activeElement.ariaLabel')).toBe('Pause cart-expiry');
  });
});

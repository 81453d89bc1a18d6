import { rowsOf, useConsole } from './open-console.js';

describe('the views of the console', () => {
  const open = useConsole();

  it('shows the worst finding first, and each with its culprit and action', async () => {
    const { page, go, shop, complaints } = await open();
    await go('now');
    const worst = /^"shipment:71022" is held by orders-api-4:27:c0de, which is dead\.$/;
    await page.getByRole('heading', { level: 1, name: worst }).waitFor();
    const main = await page.locator('main').innerText();
    expect(main).toContain('Redis is up 1.0 ms');
    expect(main).toMatch(/11 of 12 instances answered\. Checked at \d/);
    const findings = page.getByRole('list', { name: 'Findings' }).getByRole('listitem');
    // The first is open.
    expect(await findings.first().innerText()).toMatch(
      /or end it\.\s+npx nestjs-redis-lock release shipment:71022 --token \d+\s+For \d+\s+s · shipment:71022 · on orders-api-4:27:c0de · 1 call blocked of Shipments\.label$/,
    );
    await findings.nth(1).locator('summary').click();
    expect(await findings.nth(1).innerText()).toContain('npx nestjs-redis-lock who stock-sync-1:40:6ad3');
    const locks = await rowsOf(page, 'Locks');
    expect(locks.slice(0, 3).map(([resource]) => resource)).toEqual([
      'shipment:71022',
      'stock:sku-2291',
      'catalog:import write',
    ]);
    await page.getByRole('link', { name: 'All 21 locks' }).waitFor();
    // A line needs half a minute.
    expect(await page.getByRole('img').count()).toBe(0);
    shop.now = () => Date.now() + 40_000;
    await page.getByRole('img', { name: 'Waiting in the last ' }).waitFor();
    expect(await page.getByRole('img').allInnerTexts()).toHaveLength(3);
    expect(complaints).toEqual([]);
  });

  it('says that nothing needs attention if that is so', async () => {
    const { page, go } = await open({ isCalm: true });
    await go('now');
    await page.getByRole('heading', { level: 1, name: 'Nothing needs attention' }).waitFor();
    expect(await page.getByRole('list', { name: 'Findings' }).count()).toBe(0);
  });

  it('an unknown address leads to the first page', async () => {
    const { page, go } = await open();
    await go('nowhere');
    await page.waitForURL('**/#now');
    await go('locks');
    await page.evaluate('location.hash = "#elsewhere"');
    await page.waitForURL('**/#now');
    expect(await page.getByRole('heading', { level: 1 }).innerText()).toContain('shipment:71022');
  });

  it('lists locks with work, holder, lease and queue', async () => {
    const { page, go, complaints } = await open();
    await go('locks');
    const rows = await rowsOf(page, 'Locks');
    expect(rows).toHaveLength(21);
    const sku = rows.find(([resource]) => resource === 'stock:sku-2291')!;
    expect(sku.slice(1, 3)).toEqual(['Stock.sync stock.sync.ts:73:15', 'alive stock-sync-1:40:6ad3']);
    expect(sku[5]).toMatch(/^5 oldest \d+ s$/);
    expect(rows.find(([resource]) => resource === 'shipment:71022')![2]).toBe('dead orders-api-4:27:c0de');
    expect(complaints).toEqual([]);
  });

  it('keeps each row one line high, with the full text as a title', async () => {
    const long = `tenant:${'a1b2c3d4-'.repeat(18)}:order`;
    const { page, go } = await open({ resources: [long] }, { viewport: { width: 1_280, height: 800 } });
    for (const place of ['now', 'locks', 'jobs', 'instances']) {
      await go(place);
      await page.locator('tbody tr').first().waitFor();
      const heights = (await page.evaluate(
        '[...document.querySelectorAll("tbody tr")].map((row) => row.offsetHeight)',
      )) as number[];
      expect([place, Math.max(...heights)]).toEqual([place, expect.any(Number)]);
      expect(Math.max(...heights)).toBeLessThan(48);
    }
    await go('locks');
    expect(await page.getByRole('rowheader', { name: long }).getAttribute('title')).toBe(`${long} `);
  });

  it('keeps a card of a telephone a few lines high', async () => {
    const { page, go } = await open({ actions: ['release', 'runJob'] }, { viewport: { width: 390, height: 800 } });
    for (const place of [
      'now',
      'locks',
      'lock?resource=stock%3Asku-2291',
      'jobs',
      'job?name=datev-export',
      'instances',
    ]) {
      await go(place);
      await page.locator('tbody tr').first().waitFor();
      const heights = '[...document.querySelectorAll("tbody tr")].map((row) => row.offsetHeight)';
      expect([place, Math.max(...((await page.evaluate(heights)) as number[]))]).toEqual([place, expect.any(Number)]);
      expect(Math.max(...((await page.evaluate(heights)) as number[]))).toBeLessThan(150);
    }
  });

  it('keeps filter, order and state in the address', async () => {
    const { page, go } = await open();
    await go('locks?filter=orders.service&sort=-since');
    expect((await rowsOf(page, 'Locks')).map(([resource]) => resource)).toEqual([
      'order:48219',
      'order:48220',
      'order:48213',
    ]);
    expect(await page.getByRole('searchbox').inputValue()).toBe('orders.service');
    await page.getByRole('link', { name: 'Waited for' }).click();
    await page.waitForURL('**/#locks?filter=orders.service&sort=-since&state=waited');
    await page.getByRole('link', { name: 'order:48219' }).waitFor({ state: 'detached' });
    await page.getByRole('searchbox').fill('sku');
    await page.waitForURL('**/#locks?filter=sku&sort=-since&state=waited');
    await page.getByRole('link', { name: 'stock:sku-2291' }).waitFor();
    await page.getByRole('link', { name: 'Resource' }).click();
    await page.waitForURL('**/#locks?filter=sku&sort=resource&state=waited');
    await page.reload();
    expect((await rowsOf(page, 'Locks')).map(([resource]) => resource)).toEqual(['stock:sku-2291']);
  });

  it('says that nothing fits, with a way back', async () => {
    const { page, go } = await open();
    await go('locks?filter=nowhere');
    await page.getByText('No matches.').waitFor();
    await page.getByRole('link', { name: 'Show all' }).click();
    await page.getByRole('link', { name: 'order:48213' }).waitFor();
    expect(new URL(page.url()).hash).toBe('#locks');
  });

  it('tells of one lock what explain says, who holds it, and who waits', async () => {
    const { page, go, complaints } = await open();
    await go('locks');
    await page.getByRole('link', { name: 'stock:sku-2291' }).click();
    await page.getByRole('heading', { level: 1, name: 'stock:sku-2291' }).waitFor();
    await page.getByText('The holder is alive and slow').waitFor();
    await page
      .getByText(/^stock-sync-1:40:6ad3: .* the holder is alive\. .*Its work: Stock\.sync stock\.sync\.ts:73:15\.$/)
      .waitFor();
    expect(await rowsOf(page, 'Holders')).toEqual([
      [
        'stock-sync-1:40:6ad3 alive',
        'Stock.sync stock.sync.ts:73:15',
        expect.stringMatching(/^\d+$/),
        expect.stringMatching(/^\d+ s$/),
        expect.stringMatching(/^\d+ s$/),
      ],
    ]);
    const queue = await rowsOf(page, 'Queue');
    expect(queue).toHaveLength(5);
    expect(queue[0]!.slice(0, 3)).toEqual([
      'Orders.pay orders.service.ts:212:31',
      'orders-api-2:27:d214',
      'order:48231',
    ]);
    expect(complaints).toEqual([]);
  });

  it('shows who waited for whom', async () => {
    const { page, go } = await open();
    await go('blockers');
    const rows = await rowsOf(page, 'Who waited for whom in the last ten minutes');
    expect(rows[0]).toEqual(['Orders.pay', 'Stock.sync', '212', '8 min 6 s']);
    const now = (await rowsOf(page, 'Waiting now')).map(([waiter, holder, calls]) => [waiter, holder, calls]);
    expect(now.slice(0, 2)).toEqual([
      ['Shipments.label', 'a holder that does not answer', '1'],
      ['Orders.pay', 'Stock.sync', '3'],
    ]);
  });

  it('lists jobs: next, last, history, missed, and who paused them', async () => {
    const { page, go } = await open();
    await go('jobs');
    const rows = await rowsOf(page, 'Jobs');
    expect(rows.map(([job]) => job!.split(' ')[0])).toEqual([
      'cart-expiry',
      'datev-export',
      'invoice-reminders',
      'newsletter',
      'nightly-reorder',
      'outbox-sweep',
      'price-feed',
      'stock-snapshot',
    ]);
    expect(rows[0]![4]).toBe('2');
    expect(rows[3]![1]).toMatch(/^paused by ann@garden\.example until /);
    expect(rows[4]![1]).toMatch(/^runs for \d min/);
    const history = page.getByRole('row', { name: 'cart-expiry' }).getByRole('img');
    expect(await history.getAttribute('aria-label')).toBe('The last 14 runs: 2 not successful');
    await page.getByRole('link', { name: 'invoice-reminders' }).click();
    const runs = await rowsOf(page, 'Runs');
    expect(runs[3]![1]).toBe('error no answer from the mail gateway in 30 s · PrinterTimeoutError · ETIMEDOUT');
    expect(runs[2]![4]).toBe('requested by ann@garden.example');
  });

  it('lists leaders, and their elections', async () => {
    const { page, go } = await open();
    await go('leaders');
    const rows = await rowsOf(page, 'Leaders');
    expect(rows.map(([name, leader, , , candidates, elections]) => [name, leader, candidates, elections])).toEqual([
      ['outbox-relay', 'orders-api-1:27:5ce8 alive', '2', '1'],
      ['price-feed', 'stock-sync-2:40:e19c alive', '1', '3'],
      ['search-indexer', 'jobs-2:31:9b05 alive', '1', '0'],
    ]);
  });

  it('lists instances, with those that are silent, deaf or slow', async () => {
    const { page, go } = await open();
    await go('instances?state=trouble');
    const rows = await rowsOf(page, 'Instances');
    expect(rows.map(([instance, state, , , loop]) => [instance, state, loop])).toEqual([
      ['checkout-4:18:2d6f', 'silent', '–'],
      ['orders-api-4:27:c0de', 'no subscription', '–'],
      ['stock-sync-1:40:6ad3', 'up', '312 ms blocked for 1 s'],
      ['stock-sync-2:40:e19c leads price-feed', 'no messages', '1 ms'],
    ]);
    await page.getByText('Partial.').waitFor();
  });

  it.each([360, 1_280])('keeps long names within a page of %i px', async (width) => {
    const long = `tenant:${'a1b2c3d4-'.repeat(18)}:order`;
    const { page, go } = await open({ resources: [long] }, { viewport: { width, height: 800 } });
    for (const place of ['now', 'locks', `lock?resource=${encodeURIComponent(long)}`]) {
      await go(place);
      await page.getByText(long).first().waitFor({ state: 'attached' });
      const overflow = Number(await page.evaluate('document.documentElement.scrollWidth - innerWidth'));
      expect([place, overflow]).toEqual([place, 0]);
    }
  });

  it('fits a page of each width, from a telephone over tablets to a magnified laptop', async () => {
    const { page, go } = await open({ actions: ['release', 'runJob', 'pauseJob', 'resumeJob'] });
    const tooWide: string[] = [];
    for (const place of ['now', 'locks', 'blockers', 'jobs', 'job?name=datev-export', 'leaders', 'instances']) {
      await go(place);
      await page.locator('table').first().waitFor();
      for (const width of [320, 640, 800, 801, 900, 1_024, 1_200, 1_201]) {
        await page.setViewportSize({ width, height: 800 });
        const overflow = Number(await page.evaluate('document.documentElement.scrollWidth - innerWidth'));
        if (overflow > 0) tooWide.push(`${place} at ${width} px: ${overflow} px`);
      }
    }
    expect(tooWide).toEqual([]);
  });

  it('shows local times, with UTC in the title', async () => {
    const from = Date.parse('2026-11-26T13:42:37Z');
    const { page, go, shop } = await open({ from }, { locale: 'en-GB', timezoneId: 'Asia/Tokyo' });
    shop.now = () => from;
    await go('jobs');
    const next = page.getByRole('row', { name: 'cart-expiry' }).locator('td').first().locator('time').last();
    expect(await next.innerText()).toBe('22:50:00');
    expect(await next.getAttribute('title')).toBe('26/11/2026, 22:50:00 here, Thu, 26 Nov 2026 13:50:00 GMT');
    // Not of today.
    const tomorrow = page.getByRole('row', { name: 'datev-export' }).locator('td').first().locator('time').last();
    expect(await tomorrow.innerText()).toBe('Fri 27 Nov, 09:00:00');
  });
});

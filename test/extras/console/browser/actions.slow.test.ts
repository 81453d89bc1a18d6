import { useConsole } from './open-console.js';

const ALL = ['release', 'runJob', 'pauseJob', 'resumeJob'] as const;

describe('the actions of the console', () => {
  const open = useConsole();

  it('are missing if the application does not allow them', async () => {
    const { page, go } = await open();
    for (const place of ['lock?resource=stock%3Asku-2291', 'jobs', 'job?name=price-feed']) {
      await go(place);
      await page.locator('table').first().waitFor();
      expect(await page.locator('main button').count()).toBe(0);
    }
  });

  it('releases what was seen, with a reason, and says what that does not do', async () => {
    const { page, go, shop } = await open({ actions: ALL });
    await go('lock?resource=stock%3Asku-2291');
    const token = await page.getByRole('table', { name: 'Holders' }).locator('tbody td').nth(1).innerText();
    await page.getByRole('button', { name: 'Release…' }).click();
    const dialog = page.getByRole('dialog', { name: 'Release this lease?' });
    await dialog.getByText('This does not stop the holder').waitFor();
    expect(await dialog.locator('dd').allInnerTexts()).toEqual([
      'stock:sku-2291',
      'stock-sync-1:40:6ad3 alive',
      'Stock.sync stock.sync.ts:73:15',
      expect.stringMatching(/\d+:\d\d/),
      token,
    ]);
    // Not without a reason.
    await dialog.getByRole('button', { name: 'Release this lease' }).click();
    expect(shop.calls.filter(({ method }) => method === 'POST')).toEqual([]);
    await dialog.getByLabel('Reason').fill('OPS-17');
    shop.act = (_action, body) => ({
      status: 200,
      body: { ...body, by: 'ann', holder: 'stock-sync-1:40:6ad3', heardAt: Date.now() + 4_000 },
    });
    await dialog.getByRole('button', { name: 'Release this lease' }).click();
    await page.getByRole('status').getByText('Released for ann. stock-sync-1:40:6ad3 finds out at').waitFor();
    expect(await dialog.count()).toBe(0);
    const [post] = shop.calls.filter(({ method }) => method === 'POST');
    expect(post).toMatchObject({
      path: 'release',
      headers: { 'content-type': 'application/json', 'x-lock-console': '1' },
      body: { resource: 'stock:sku-2291', fencingToken: Number(token), reason: 'OPS-17' },
    });
    await go('locks');
    await page.getByText('Released for ann.').waitFor({ state: 'detached' });
  });

  it('says why an action was refused, and leaves the dialog open', async () => {
    const { page, go, shop } = await open({ actions: ALL });
    const message = 'It is held by another lease than the one that was seen. Nothing was changed.';
    shop.act = () => ({ status: 409, body: { error: { code: 'OUT_OF_DATE', message } } });
    await go('lock?resource=stock%3Asku-2291');
    await page.getByRole('button', { name: 'Release…' }).click();
    await page.getByLabel('Reason').fill('OPS-17');
    await page.keyboard.press('Enter');
    await page.getByRole('dialog').getByText(message).waitFor();
    expect(await page.getByRole('button', { name: 'Release this lease' }).isEnabled()).toBe(true);
  });

  it('pauses a job until a time, and resumes and runs one', async () => {
    const { page, go, shop } = await open({ actions: ALL }, { timezoneId: 'Asia/Tokyo' });
    await go('jobs');
    await page.getByRole('button', { name: 'Pause price-feed' }).click();
    const until = new Date(Date.now() + 3 * 3_600_000);
    await page.getByLabel('Until').fill(new Date(until.getTime() + 9 * 3_600_000).toISOString().slice(0, 16));
    await page.getByLabel('Reason').fill('supplier is down');
    await page.getByRole('dialog').getByRole('button', { name: 'Pause' }).click();
    await page.getByRole('status').getByText('Pause price-feed: done.').waitFor();
    await page.getByRole('button', { name: 'Resume newsletter' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Resume' }).click();
    await page.getByRole('status').getByText('Resume newsletter: done.').waitFor();
    shop.act = () => ({ status: 200, body: { instanceId: 'jobs-1:31:a41e', state: 'taken', by: 'ann' } });
    await page.getByRole('button', { name: 'Run price-feed' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Run' }).click();
    await page.getByRole('status').getByText('jobs-1:31:a41e: taken').waitFor();
    const posts = shop.calls.filter(({ method }) => method === 'POST');
    expect(posts.map(({ path, body }) => [path, body])).toEqual([
      ['pauseJob', { job: 'price-feed', reason: 'supplier is down', forMs: expect.any(Number) }],
      ['resumeJob', { job: 'newsletter' }],
      ['runJob', { job: 'price-feed' }],
    ]);
    const { forMs } = posts[0]!.body as { forMs: number };
    expect(Math.abs(forMs - 3 * 3_600_000)).toBeLessThan(120_000);
  });

  it('refuses a pause until a time in the past, in words of its own', async () => {
    const { page, go, shop } = await open({ actions: ALL });
    await go('jobs');
    await page.getByRole('button', { name: 'Pause price-feed' }).click();
    await page.getByLabel('Until').fill('2020-01-01T00:00');
    await page.getByRole('dialog').getByRole('button', { name: 'Pause' }).click();
    await page.getByRole('dialog').getByText('Until must be in the future.').waitFor();
    expect(shop.calls.filter(({ method }) => method === 'POST')).toEqual([]);
  });

  it('does not offer to release a holder that may be alive', async () => {
    const { page, go, shop } = await open({ actions: ALL });
    await go('lock?resource=shipment%3A71022');
    await page.getByRole('button', { name: 'Release…' }).waitFor();
    shop.shop.deadLife = 'unknown';
    await page.getByText('unknown', { exact: true }).waitFor();
    expect(await page.getByRole('button', { name: 'Release…' }).count()).toBe(0);
  });
});

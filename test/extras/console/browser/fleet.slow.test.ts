import { ScheduleModule } from '@nestjs/schedule';
import { SingletonJobs } from 'nestjs-redis-lock/schedule';
import { inMemory, useApps } from '../../../nest/nest-apps.js';
import { eventually } from '../../../support/expect/eventually.js';
import { useProcesses } from '../../../support/process/lock-process.js';
import { type LockInstance, useAdmin, useInstances } from '../../../support/redis/lock-instances.js';
import { useRedis } from '../../../support/redis/redis-server.js';
import { rowsOf } from './open-console.js';
import { useRealConsole } from './real-console.js';

const HOUR = 3_600_000;
const LONG = { waitMs: 120_000, leaseMs: 120_000 };
/** Of a job that does not fire while a test runs. */
const hourly = `0 ${(new Date().getUTCMinutes() + 30) % 60} * * * *`;

describe('the console of a fleet on Redis', () => {
  const redis = useRedis();
  const admin = useAdmin(() => redis().url);
  const start = useInstances(() => redis().url);
  const startProcess = useProcesses(() => redis().url);
  const startApp = useApps();
  const open = useRealConsole(() => redis().url);
  /** Calls that a test leaves behind. */
  const waits: Promise<unknown>[] = [];
  const wait = ({ locks }: LockInstance, resource: string, group: string): void => {
    waits.push(locks.acquire(resource, { ...LONG, group }).catch(() => undefined));
  };

  it('shows holders, queues, readers, permits, and why a lock is unavailable', async () => {
    const [holder, first, second] = [await start(), await start(), await start()];
    const label = { request: '7f3a' };
    const lease = await holder.locks.acquire('stock:1', { ...LONG, group: 'Stock.sync', label });
    wait(first, 'stock:1', 'Orders.pay');
    await eventually(async () => expect((await holder.locks.inspect('stock:1')).waiters).toHaveLength(1));
    wait(second, 'stock:1', 'Orders.place');
    await first.locks.acquire('prices', { ...LONG, mode: 'read' });
    await second.locks.acquire('prices', { ...LONG, mode: 'read' });
    await first.locks.semaphore('psp', { permits: 4 }).acquire({ ...LONG, group: 'Payments.capture' });

    const { page, go, complaints } = await open();
    await go('locks');
    const rows = await rowsOf(page, 'Locks');
    // Others wait for it, so it comes first. The rest was acquired within milliseconds, which three clocks measure.
    expect(rows[0]![0]).toBe('stock:1');
    const byName = rows.toSorted(([a], [b]) => a!.localeCompare(b!));
    expect(byName.map(([resource, , holds]) => [resource, holds])).toEqual([
      ['prices read', expect.stringContaining('alive')],
      ['prices read', expect.stringContaining('alive')],
      ['psp semaphore', `alive ${first.instanceId}`],
      ['stock:1', `alive ${holder.instanceId}`],
    ]);
    expect(rows[0]![1]).toMatch(/^Stock\.sync/);
    expect(rows[0]![4]).toMatch(/^\d+ s|1 min/);
    expect(rows[0]![5]).toMatch(/^2 oldest /);

    // All that is chosen stands in the address: it can be sent, reloaded, and gone back to.
    await page.getByRole('link', { name: 'Waited for' }).click();
    await page.waitForURL('**/#locks?state=waited');
    await page.getByRole('link', { name: 'psp' }).waitFor({ state: 'detached' });
    await page.reload();
    await page.getByRole('link', { name: 'stock:1' }).waitFor();
    expect(await rowsOf(page, 'Locks')).toHaveLength(1);
    await page.goBack();
    await page.getByRole('link', { name: 'psp' }).waitFor();
    await page.goForward();
    await page.getByRole('link', { name: 'psp' }).waitFor({ state: 'detached' });

    await page.getByRole('link', { name: 'stock:1' }).click();
    await page.getByText(`"stock:1" has been held by ${holder.instanceId}`).waitFor();
    const holders = await rowsOf(page, 'Holders');
    expect(holders[0]![1]).toBe('Stock.sync request "7f3a"');
    expect(holders[0]![2]).toBe(String(lease.fencingToken));
    // By how long each said that it has waited, each at its own moment: these two began nearly together.
    const queue = (await rowsOf(page, 'Queue')).map(([work, instance]) => [work!.split(' ')[0], instance]);
    expect(queue).toHaveLength(2);
    expect(queue).toContainEqual(['Orders.pay', first.instanceId]);
    expect(queue).toContainEqual(['Orders.place', second.instanceId]);
    // A second look at the same lock compares.
    await page.getByText('its process answers').or(page.getByText('between two looks')).first().waitFor();

    await go('lock?resource=psp');
    await page.getByText('3 of 4 permits free').waitFor();
    await go('lock?resource=nothing');
    await page.getByText('No call holds it.').waitFor();
    await page.getByText('No call waits for it.').waitFor();

    await go('now');
    const waited = /^"stock:1" has been held for .+ by .+, which is alive\.$/;
    await page.getByRole('heading', { level: 1, name: waited }).waitFor();
    expect(await page.locator('dl.figures div:nth-child(-n+2) dd:first-of-type').allInnerTexts()).toEqual(['4', '2']);

    // A wait is counted that began after the first look.
    const next = await holder.locks.acquire('stock:2', { ...LONG, group: 'Stock.sync' });
    wait(first, 'stock:2', 'Orders.pay');
    await eventually(async () => expect((await holder.locks.inspect('stock:2')).waiters).toHaveLength(1));
    await next.release();
    await go('blockers');
    const ended = page.getByRole('table', { name: 'Who waited for whom in the last ten minutes' });
    await ended.getByRole('rowheader', { name: 'Orders.pay' }).waitFor();
    const cells = await rowsOf(page, 'Who waited for whom in the last ten minutes');
    expect(cells[0]!.slice(0, 3)).toEqual(['Orders.pay', 'not known', '1']);
    expect(complaints).toEqual([]);
    await Promise.all([holder, first, second].map(({ locks }) => locks.shutdown(0)));
    await Promise.all(waits.splice(0));
  });

  it('shows a deadlock, an instance that does not answer, and a leader and its successor', async () => {
    const [a, b] = [await start(), await start()];
    const frozen = await startProcess(120_000);
    await frozen.ask('acquire', 'report');
    wait(a, 'report', 'Reports.read');
    const campaigns = [a.locks.campaign('relay')];
    await campaigns[0]!.whenElected();
    campaigns.push(b.locks.campaign('relay'));
    const hold = ({ locks }: LockInstance, held: string, wanted: string) =>
      locks.using(held, { ...LONG, group: `Of.${held}` }, () => locks.acquire(wanted, LONG)).catch(() => undefined);
    waits.push(hold(a, 'x', 'y'), hold(b, 'y', 'x'));
    await eventually(async () => expect((await a.locks.inspect('x')).waiters).toHaveLength(1));
    frozen.suspend();

    const { page, go, complaints } = await open();
    await go('now');
    const findings = page.getByRole('list', { name: 'Findings' });
    await findings.getByText(/^Deadlock: Of\.\w on \S+ holds "\w" and waits for "\w" at \S+:\d+:\d+\. /).waitFor();
    await findings.getByText(`"report" is held by ${frozen.instanceId}, which does not answer`).waitFor();
    await go('instances?state=trouble');
    expect((await rowsOf(page, 'Instances')).map(([id, state]) => [id, state])).toEqual([
      [frozen.instanceId, 'silent'],
    ]);
    await page.getByText(`Partial. 1 instance did not answer: ${frozen.instanceId}.`).waitFor();

    await go('blockers');
    await page.getByText('Deadlock:').waitFor();
    expect(await page.locator('.troubles a').allInnerTexts()).toEqual(
      (await page.locator('.troubles').innerText()).includes('x → y → x') ? ['x', 'y', 'x'] : ['y', 'x', 'y'],
    );
    await go('leaders');
    expect((await rowsOf(page, 'Leaders'))[0]!.filter((_, at) => at !== 2 && at !== 3)).toEqual([
      'relay',
      `${a.instanceId} alive`,
      '1',
      '1',
    ]);
    await campaigns[0]!.resign();
    await page.getByText(`${b.instanceId}`).first().waitFor();
    await eventually(async () => {
      const [row] = await rowsOf(page, 'Leaders');
      expect(row!.filter((_, at) => at !== 2 && at !== 3)).toEqual(['relay', `${b.instanceId} alive`, '0', '1']);
    }, 10_000);
    expect(complaints).toEqual([]);
    frozen.resume();
    await Promise.all([a, b].map(({ locks }) => locks.shutdown(0)));
    await Promise.all(waits.splice(0));
  });

  it('shows jobs: next, last, missed, and who paused them', async () => {
    const work = async (): Promise<void> => {};
    const schedule = { modules: [ScheduleModule.forRoot()] };
    const locks = inMemory({ connection: redis().url, keyPrefix: 'lock' });
    const { app: before } = await startApp({ imports: [locks, ScheduleModule.forRoot()] });
    before.get(SingletonJobs).add({ name: 'nightly', cron: hourly, timeZone: 'UTC' }, work);
    await eventually(async () => expect(await admin().exists('lock:{cron:nightly}:last-tick')).toBe(1));
    await before.close();
    await admin().set('lock:{cron:nightly}:last-tick', Date.now() - 3 * HOUR, 'KEEPTTL');

    const { app, page, go, complaints } = await open({
      ...schedule,
      actions: ['runJob', 'pauseJob', 'resumeJob'],
      who: () => 'ann',
    });
    await go('jobs');
    const jobs = app.get(SingletonJobs);
    jobs.add({ name: 'nightly', cron: hourly, timeZone: 'UTC' }, work);
    jobs.add({ name: 'report', cron: hourly }, work);
    await jobs.runNow('report', { by: 'cia' });
    await page.getByRole('row', { name: 'nightly' }).getByText('3', { exact: true }).waitFor();
    await page.getByRole('button', { name: 'Pause report' }).click();
    await page.getByLabel('Reason').fill('moving house');
    await page.getByRole('dialog').getByRole('button', { name: 'Pause' }).click();
    await page.getByText('Pause report: done.').waitFor();
    await page.getByText('by ann until resumed: moving house').waitFor();
    const [nightly, report] = await rowsOf(page, 'Jobs');
    expect(nightly!.slice(0, 2)).toEqual([`nightly ${hourly} UTC`, expect.stringMatching(/^in \d+ (min|s)/)]);
    expect(report![2]).toMatch(/^ok .* ago$/);
    expect(await page.getByRole('row', { name: 'nightly' }).getByRole('img').getAttribute('aria-label')).toBe(
      'The last 3 runs: 3 not successful',
    );
    await page.getByRole('link', { name: 'Missed ticks' }).click();
    await page.getByRole('link', { name: 'report' }).waitFor({ state: 'detached' });
    await go('job?name=report');
    expect((await rowsOf(page, 'Runs'))[0]!.filter((_, at) => at === 1 || at === 4)).toEqual([
      'ok',
      'requested by cia',
    ]);
    expect(complaints).toEqual([]);
  });

  it('shows that Redis is down, with the last known state, and shows locks again after it recovers', async () => {
    const { page, go } = await open({ attemptTimeoutMs: 1_000 });
    await go('locks');
    await page.getByText('Nothing is held for longer than a moment.').waitFor();
    await redis().pause();
    await page.getByRole('heading', { level: 1, name: 'Locks are unavailable.' }).waitFor();
    await page.getByText('This page keeps refreshing.').waitFor();
    expect(await page.locator('main').innerText()).toMatch(/Last seen at \d/);
    await redis().resume();
    await page.getByText('Nothing is held for longer than a moment.').waitFor();
    await redis().restart();
    await page.getByText('Live', { exact: true }).waitFor();
    await (await start()).locks.acquire('again', LONG);
    await page.getByRole('link', { name: 'again' }).waitFor();
  });
});

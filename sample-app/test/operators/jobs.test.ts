import type { JobInfo, JobRun } from 'nestjs-redis-lock/schedule';
import { eventually } from '../../../test/support/expect/eventually.js';
import { useRedis } from '../../../test/support/redis/redis-server.js';
import { useFleet } from '../use-fleet.js';

const redis = useRedis();
const fleet = useFleet(redis, [{ name: 'shop-1' }, { name: 'shop-2' }], {
  DRAW_SCHEDULE: '* * * * * *',
  REPORT_SCHEDULE: '0 0 1 1 *',
  TILL_SCHEDULE: '0 0 1 1 *',
  REPORT_PAGE_MS: '10',
});
const shop = (name = 'shop-1') => fleet().named(name)!;
const idOf = (name: string) => `${name}:${shop(name).pid}`;

async function job(name: string): Promise<JobInfo> {
  return (await shop().operate('GET', `/jobs/${name}`)).body;
}

async function history(name: string): Promise<JobRun[]> {
  return (await shop().operate('GET', `/jobs/${name}/history`)).body;
}

/** Counts the ticks of the prize draw that the instance has skipped because of the pause. */
async function ticksSkipped(name: string): Promise<number> {
  const metrics = await (await fetch(`${shop(name).url}/metrics`)).text();
  const series = /^nestjs_redis_lock_job_skipped_total\{[^}]*lock_job="prize-draw"[^}]*reason="paused"[^}]*\} (\d+)/m;
  return Number(series.exec(metrics)?.[1] ?? 0);
}

it.each([
  ['GET', '/operators/jobs'],
  ['GET', '/operators/jobs/prize-draw'],
  ['GET', '/operators/jobs/prize-draw/history'],
  ['POST', '/operators/jobs/prize-draw/runs'],
  ['PUT', '/operators/jobs/prize-draw/pause'],
  ['DELETE', '/operators/jobs/prize-draw/pause'],
])('nobody without the key may %s %s', async (method, path) => {
  expect((await shop().request(method, path)).status).toBe(403);
  expect((await shop().request(method, path, undefined, { 'x-operator-key': 'guessed' })).status).toBe(403);
});

it('an operator sees all jobs, and which instances have them', async () => {
  const both = [idOf('shop-1'), idOf('shop-2')];
  await eventually(async () => {
    const jobs: JobInfo[] = (await shop().operate('GET', '/jobs')).body;
    expect(jobs).toMatchObject([
      { name: 'nightly-report', cron: '0 0 1 1 *', timeZone: 'Europe/Vienna', isHere: true, missed: 0 },
      { name: 'prize-draw', cron: '* * * * * *', isHere: true },
      { name: 'till-of-shop-1', isHere: true },
      { name: 'till-of-shop-2', isHere: false },
    ]);
    const seen = jobs.map(({ instances }) => instances.map(({ instanceId: instance }) => instance).toSorted());
    expect(seen).toEqual([both, both, [idOf('shop-1')], [idOf('shop-2')]]);
    expect(jobs[0]!.nextDueAt).toBeGreaterThan(Date.now());
  });
});

it('an operator runs a job, and each instance knows by whom', async () => {
  expect((await shop('shop-2').operate('POST', '/jobs/nightly-report/runs', { by: 'ann' })).status).toBe(204);
  const run = { manual: true, by: 'ann', outcome: 'ok', instanceId: idOf('shop-2') };
  expect(await history('nightly-report')).toMatchObject([run]);
  expect(await job('nightly-report')).toMatchObject({ lastRun: run, lastSuccessAt: expect.any(Number), missed: 0 });
  expect((await shop().get('/report')).body).toMatchObject({ instance: 'shop-2', finished: true });
});

it('an operator is told where a job can be run that this instance does not have', async () => {
  const { status, body } = await shop().operate('POST', '/jobs/till-of-shop-2/runs');
  expect({ status, code: body.code }).toEqual({ status: 404, code: 'JOB_NOT_FOUND' });
  expect(body.message).toContain(`These instances have it: "${idOf('shop-2')}"`);
  expect((await shop('shop-2').operate('POST', '/jobs/till-of-shop-2/runs')).status).toBe(204);
  expect(await history('till-of-shop-2')).toMatchObject([{ manual: true, outcome: 'ok' }]);
});

it('an operator pauses a job on all instances, and resumes it', async () => {
  expect((await shop('shop-2').operate('PUT', '/jobs/prize-draw/pause', { by: 'ann' })).status).toBe(204);
  const { pause } = await job('prize-draw');
  expect(pause).toEqual({ by: 'ann', at: expect.any(Number) });
  // The first instance that asks for a tick learns of the pause. For the other one, the tick has ended.
  await eventually(async () => {
    const skipped = await Promise.all(['shop-1', 'shop-2'].map(ticksSkipped));
    expect(skipped[0]! + skipped[1]!).toBeGreaterThanOrEqual(2);
  });
  // One that was asked for runs all the same.
  expect((await shop().operate('POST', '/jobs/prize-draw/runs')).status).toBe(204);
  const during = (await history('prize-draw')).filter(
    ({ startedAt, outcome }) => startedAt > pause!.at && outcome !== 'missed',
  );
  expect(during).toMatchObject([{ manual: true, outcome: 'ok' }]);

  const resumedAt = Date.now();
  expect((await shop().operate('DELETE', '/jobs/prize-draw/pause')).status).toBe(204);
  expect(await job('prize-draw')).not.toHaveProperty('pause');
  await eventually(async () => {
    const [last] = await history('prize-draw');
    expect(last).toMatchObject({ manual: false });
    expect(last!.startedAt).toBeGreaterThan(pause!.at);
  });
  const due = (await history('prize-draw')).filter(({ tick }) => {
    return Date.parse(tick) > pause!.at && Date.parse(tick) < resumedAt;
  });
  // They did not run, and were not missed.
  expect(due).toEqual([]);
});

it.each([
  ['GET', '/jobs/prize-drew'],
  ['GET', '/jobs/prize-drew/history'],
  ['POST', '/jobs/prize-drew/runs'],
  ['PUT', '/jobs/prize-drew/pause'],
  ['DELETE', '/jobs/prize-drew/pause'],
])('%s %s is answered with what was probably meant', async (method, path) => {
  const { status, body } = await shop().operate(method, path);
  expect({ status, body }).toEqual({
    status: 404,
    body: {
      statusCode: 404,
      error: 'Not Found',
      code: 'JOB_NOT_FOUND',
      message: expect.stringMatching(
        /^(This instance|The fleet) has no job called "prize-drew"\. Did you mean "prize-draw"\?$/,
      ),
    },
  });
});

it.each([
  ['GET', '/jobs/prize-draw/history?limit=0', undefined, 'limit must be 1 to 1000'],
  ['GET', '/jobs/prize-draw/history?limit=1001', undefined, 'limit must be 1 to 1000'],
  ['GET', '/jobs/prize-draw/history?limit=all', undefined, 'Validation failed (numeric string is expected)'],
  ['POST', '/jobs/prize-draw/runs', { by: '' }, 'by must be 1 to 100 characters'],
  ['PUT', '/jobs/prize-draw/pause', { by: 7 }, 'by must be 1 to 100 characters'],
  [
    'PUT',
    '/jobs/prize-draw/pause',
    { until: 'tomorrow' },
    'until must be a time to come, such as 2030-01-01T00:00:00Z',
  ],
  [
    'PUT',
    '/jobs/prize-draw/pause',
    { until: '2020-01-01' },
    'until must be a time to come, such as 2030-01-01T00:00:00Z',
  ],
  ['GET', `/jobs/${'x'.repeat(600)}`, undefined, expect.stringMatching(/^A value in this request cannot name a lock/)],
] as const)('%s %s with %j is refused', async (method, path, sent, message) => {
  const { status, body } = await shop().operate(method, path, sent);
  expect({ status, message: body.message }).toEqual({ status: 400, message });
  expect(await job('prize-draw')).not.toHaveProperty('pause');
});

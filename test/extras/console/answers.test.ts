import type { Clock } from '../../../lib/kernel/util/clock.js';
import { ManualClock } from '../../../lib/testing/fleet/manual-clock.js';
import { track } from '../../support/expect/tracked.js';
import { LockUnavailableError } from '../../../lib/kernel/api/errors.js';
import { ConsoleAnswers } from '../../../lib/extras/console/answers/console-answers.js';
import type { ConsoleBodies } from '../../../lib/extras/console/bodies.js';
import { fleetInstance, heldLease, largeFleet, waitingCall } from '../../features/fleet/fleet-reports.js';
import { FleetSource } from './fleet-source.js';

const answersOf = (source: FleetSource, clock?: Clock) =>
  new ConsoleAnswers({
    title: 'Orders',
    sources: [source],
    actions: [],
    onError: (error) => {
      throw error;
    },
    ...(clock && { clock }),
  });

const viewed = async <B>(answers: ConsoleAnswers, view: string, query: Record<string, string> = {}): Promise<B> => {
  const { body, status } = await answers.view(view, new URLSearchParams(query), undefined);
  expect(status).toBe(200);
  return JSON.parse(body!) as B;
};
const failed = async (answers: ConsoleAnswers, view: string, query: Record<string, string> = {}) => {
  const { body, status } = await answers.view(view, new URLSearchParams(query), undefined);
  return [status, JSON.parse(body!) as { error: { code: string; message: string } }] as const;
};

const shop = () =>
  new FleetSource([
    fleetInstance('api-1', {
      held: [
        heldLease('order:7', 64, { group: 'Stock.sync', callSite: 'stock.ts:17' }),
        heldLease('Order:8', 96, { isRenewed: false, heldMs: 90_000 }),
      ],
    }),
    fleetInstance('api-2', { waiting: [waitingCall(1, 'order:7'), waitingCall(2, 'order:9', { waitedMs: 9_000 })] }),
  ]);

it('20 viewers of every view cost one roll call a second', async () => {
  const source = shop();
  const answers = answersOf(source);
  const views = ['now', 'locks', 'blockers', 'leaders', 'instances', 'lock'];
  await Promise.all(
    Array.from({ length: 20 }, (_, viewer) => {
      return viewed(answers, views[viewer % views.length]!, { resource: 'order:7', filter: 'order', sort: '' });
    }),
  );
  expect(source.asked).toEqual(['']);
});

it('a poll is answered 304 if only the time has changed', async () => {
  const source = shop();
  const first = await answersOf(source).view('locks', new URLSearchParams(), undefined);
  const { etag } = first.headers;
  source.at += 2_000;
  source.instances = source.instances.map((each) => ({
    ...each,
    uptimeMs: each.uptimeMs + 2_000,
    held: each.held.map((lease) => ({ ...lease, heldMs: lease.heldMs + 2_000, leftMs: lease.leftMs - 2_000 })),
    waiting: each.waiting.map((wait) => ({ ...wait, waitedMs: wait.waitedMs + 2_000 })),
  }));
  const second = await answersOf(source).view('locks', new URLSearchParams(), etag);
  expect([second.status, second.body]).toEqual([304, undefined]);
  expect(Number(second.headers['x-lock-console-now'])).toBeGreaterThan(0);

  source.instances = source.instances.map((each) => ({
    ...each,
    held: each.held.map((lease) => ({ ...lease, leftMs: 30_000 })),
  }));
  const renewed = await answersOf(source).view('locks', new URLSearchParams(), etag);
  expect(renewed.status).toBe(200);
});

it('locks are filtered, sorted and cut by the server', async () => {
  const answers = answersOf(shop());
  const names = async (query: Record<string, string>) => {
    const { rows, total } = await viewed<ConsoleBodies['locks']>(answers, 'locks', query);
    return [rows.map(({ resource }) => resource), total];
  };
  expect(await names({})).toEqual([['order:9', 'order:7', 'Order:8'], 3]);
  expect(await names({ sort: 'resource' })).toEqual([['Order:8', 'order:7', 'order:9'], 3]);
  expect(await names({ sort: '-resource', limit: '2' })).toEqual([['order:9', 'order:7'], 3]);
  expect(await names({ sort: '-trouble' })).toEqual([['Order:8', 'order:7', 'order:9'], 3]);
  expect(await names({ filter: 'STOCK' })).toEqual([['order:7'], 1]);
  expect(await names({ state: 'waited', sort: 'wait' })).toEqual([['order:9', 'order:7'], 2]);
  expect(await names({ state: 'trouble' })).toEqual([['order:9', 'Order:8'], 2]);
  expect(await names({ group: 'Orders.pay' })).toEqual([['Order:8'], 1]);
  const { rows, groups } = await viewed<ConsoleBodies['locks']>(answers, 'locks', { filter: 'order:9' });
  expect(rows).toMatchObject([{ mode: 'free', life: 'noHolder', waiters: 1 }]);
  expect(groups).toEqual(['Orders.pay', 'Stock.sync']);
});

it('lists of instances that are cut are queried again with the filter', async () => {
  const source = new FleetSource([
    fleetInstance('api-1', { more: { held: 900, waiting: 0, leaderships: 0, jobs: 0 } }),
  ]);
  const body = await viewed<ConsoleBodies['locks']>(answersOf(source), 'locks', { filter: 'order:777' });
  expect(source.asked).toEqual(['', 'order:777']);
  expect(body.fleet.unlistedHeld).toBe(900);
});

it('the view now has the findings, the locks with the worst problems, and the missing instances', async () => {
  const source = shop();
  source.silent = ['api-3'];
  const body = await viewed<ConsoleBodies['now']>(answersOf(source), 'now');
  expect(body).toMatchObject({
    fleet: { completeness: 'partial', heard: 2, asked: 3, silent: ['api-3'], silentCount: 1 },
    redis: { status: 'up' },
    held: 2,
    waiting: 2,
    oldestWaitSince: source.at - 9_000,
    lastMinute: null,
  });
  expect(body.locks.map(({ resource }) => resource)).toEqual(['order:9', 'order:7', 'Order:8']);
  expect(body.findings).toMatchObject([
    { severity: 'warning', kind: 'longWait', resource: 'order:9' },
    { severity: 'warning', kind: 'instanceSilent', culprit: { instanceId: 'api-3' } },
  ]);
});

it('lock lists the calls that wait, the oldest first', async () => {
  const source = new FleetSource([
    fleetInstance('api-1', { waiting: [waitingCall(1, 'order:7', { waitedMs: 2_000 }), waitingCall(2, 'order:8')] }),
    fleetInstance('api-2', { waiting: [waitingCall(1, 'order:7', { waitedMs: 9_000 })] }),
    fleetInstance('api-3', { waiting: [waitingCall(1, 'order:7', { waitedMs: 5_000 })] }),
  ]);
  const { calls } = await viewed<ConsoleBodies['lock']>(answersOf(source), 'lock', { resource: 'order:7' });
  expect(calls.map(({ instanceId }) => instanceId)).toEqual(['api-2', 'api-3', 'api-1']);
});

it('the view now counts missing answers if Redis does not list the connected instances', async () => {
  const source = shop();
  source.unnamed = 2;
  const { fleet } = await viewed<ConsoleBodies['now']>(answersOf(source), 'now');
  expect(fleet).toMatchObject({ completeness: 'partial', heard: 2, asked: 4, silent: [], silentCount: 2 });
});

it('four times the locks take less than ten times the processor', async () => {
  const cost = async (instances: number): Promise<number> => {
    const answers = answersOf(new FleetSource(largeFleet(instances, 10)));
    const from = process.cpuUsage();
    const { total, rows } = await viewed<ConsoleBodies['locks']>(answers, 'locks', { sort: '-since' });
    expect([total, rows.length]).toEqual([instances * 10, 100]);
    const { user, system } = process.cpuUsage(from);
    return user + system;
  };
  await cost(250);
  const few = Math.max(await cost(250), await cost(250));
  expect(Math.min(await cost(1_000), await cost(1_000))).toBeLessThan(10 * few);
});

it.each(['locks', 'leaders', 'instances'])(
  'the view %s asks no instance for an order or a limit that is refused',
  async (view) => {
    const source = shop();
    const answers = answersOf(source);
    await failed(answers, view, { sort: 'colour' });
    await failed(answers, view, { limit: '0' });
    expect(source.asked).toEqual([]);
  },
);

it('a leader that was elected in this millisecond leads since now', async () => {
  const lease = heldLease('leader:mailer', 64, { heldMs: 0, leftMs: 0 });
  const leaderships = [{ name: 'mailer', isLeader: true, elections: 1 }];
  const source = new FleetSource([fleetInstance('api-1', { held: [lease], leaderships })]);
  const { at, rows } = await viewed<ConsoleBodies['leaders']>(answersOf(source), 'leaders');
  expect(rows).toMatchObject([{ name: 'mailer', since: at, until: at }]);
});

it.each([
  ['locks', { limit: '0' }, 'BAD_REQUEST'],
  ['locks', { limit: '5000' }, 'BAD_REQUEST'],
  ['locks', { sort: 'colour' }, 'BAD_REQUEST'],
  ['locks', { state: 'blue' }, 'BAD_REQUEST'],
  ['locks', { filter: 'x'.repeat(201) }, 'BAD_REQUEST'],
  ['lock', {}, 'BAD_REQUEST'],
  ['jobs', {}, 'NOT_SUPPORTED'],
  ['job', { name: 'x' }, 'NOT_SUPPORTED'],
  ['nothing', {}, 'NOT_FOUND'],
  ['__proto__', {}, 'NOT_FOUND'],
  ['now', { service: 'other' }, 'UNKNOWN_SERVICE'],
])('the view %s with %j is refused: %s', async (view, query, code) => {
  const [status, { error }] = await failed(answersOf(shop()), view, query as Record<string, string>);
  expect(error.code).toBe(code);
  expect(status).toBeGreaterThanOrEqual(400);
  expect(error.message).toMatch(/\.$|=…$/);
});

it('the view now has the finding if Redis refuses, and each other view the cause and remedy, without an address', async () => {
  const source = shop();
  source.failure = () =>
    Promise.reject(
      new LockUnavailableError('', 'poll the instances', 'failed', new Error('connect ECONNREFUSED 10.1.2.3:6379')),
    );
  const answers = answersOf(source);
  for (const view of ['locks', 'lock', 'blockers', 'leaders', 'instances']) {
    const [status, { error }] = await failed(answers, view, { resource: 'x' });
    expect([view, status, error.code]).toEqual([view, 503, 'REDIS_UNAVAILABLE']);
    expect(error.message).toBe(
      'Redis is out of memory and rejects writes. Raise maxmemory, or remove other data. Held locks expire with their leases.',
    );
  }
  const body = await viewed<ConsoleBodies['now']>(answers, 'now');
  expect(body).toMatchObject({ fleet: null, redis: { status: 'down' }, locks: [] });
  expect(body.findings).toMatchObject([
    { kind: 'redisDown', action: { text: 'Raise maxmemory, or remove other data.' } },
  ]);
  expect((await viewed<{ title: string }>(answers, 'session')).title).toBe('Orders');
});

it('a view whose requests get no answer is refused after three seconds', async () => {
  const source = shop();
  source.failure = () => new Promise<never>(() => {});
  const clock = new ManualClock();
  const answer = track(failed(answersOf(source, clock), 'locks'));
  await clock.advance(2_999);
  expect(answer.state).toBe('pending');
  await clock.advance(1);
  const [status, { error }] = answer.value;
  expect([status, error.code]).toEqual([503, 'REDIS_UNAVAILABLE']);
});

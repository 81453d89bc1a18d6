import {
  LeaseLostError,
  LockBusyError,
  LockReentryError,
  LockTimeoutError,
  LockUnavailableError,
} from 'nestjs-redis-lock';
import { LockMetrics } from '../../../lib/extras/telemetry/lock-metrics.js';
import { LOCK_METRIC_BUCKETS, LOCK_METRICS, LockMetric } from '../../../lib/extras/telemetry/names.js';
import type { Attributes } from '../../../lib/extras/telemetry/series.js';
import type { Lease } from '../../../lib/kernel/api/lease.js';
import { runs } from '../../support/simulation/runs.js';
import { eventsOf, type Instance, LockWorld } from '../../support/world/lock-world.js';
import { answered, failing, type Fate, lostOnTheWay, replyLost } from '../../support/world/scripted-store.js';
import { SeededRandom } from '../../support/world/seeded-random.js';
import { FakeSource } from './fake-source.js';

const AT = 1_700_000_000_000;
const LOCK = { 'lock.service': 'default', 'lock.mode': 'exclusive', 'lock.group': 'order' };
const busy = new LockBusyError('order:7', { attempts: 1, retryAfterMs: 100 });
const timeout = new LockTimeoutError('order:7', { waitedMs: 2_000, attempts: 3, retryAfterMs: 100 });
const unavailable = new LockUnavailableError('order:7', 'acquire', 'timeout', new Error('no answer'));

describe('the metrics of lock services', () => {
  let recorded: [LockMetric, number, Attributes][];
  let metrics: LockMetrics<Attributes>;
  let source: FakeSource;
  let stop: () => void;

  beforeEach(() => {
    recorded = [];
    const sink = {
      attributesOf: (attributes: Attributes) => attributes,
      record: (...value: [LockMetric, number, Attributes]) => void recorded.push(value),
    };
    metrics = new LockMetrics(sink, () => AT);
    source = new FakeSource();
    stop = metrics.start(source);
  });

  /** The values of a metric that are not 0, by what distinguishes them. */
  const valuesOf = (metric: LockMetric, attribute = 'lock.group'): Record<string, number> =>
    Object.fromEntries(
      metrics
        .seriesOf(metric)
        .filter(({ value }) => value !== 0)
        .map(({ attributes, value }) => [(attributes as Record<string, string>)[attribute], value]),
    );

  it('counts a lease that is acquired and released, and both times in seconds', () => {
    source.emit('acquired', { waitedMs: 250 });
    expect(valuesOf(LockMetric.Held)).toEqual({ order: 1 });
    source.emit('released', { heldMs: 40 });
    expect(valuesOf(LockMetric.Held)).toEqual({});
    expect(valuesOf(LockMetric.Acquire, 'outcome')).toEqual({ acquired: 1 });
    expect(recorded).toEqual([
      [LockMetric.WaitTime, 0.25, LOCK],
      [LockMetric.HoldTime, 0.04, LOCK],
    ]);
  });

  it('uses the same attributes for each value of a group and mode', () => {
    for (let i = 0; i < 3; i++) source.emit('acquired');
    source.emit('acquired', { mode: 'read' });
    const attributes = recorded.map(([, , each]) => each);
    expect(new Set(attributes).size).toBe(2);
    expect(attributes[3]).toEqual({ ...LOCK, 'lock.mode': 'read' });
  });

  it.each([
    ['acquired', { hasWaited: true, waitedMs: 1_500 }],
    ['notAcquired', { hasWaited: true, waitedMs: 1_500, error: timeout }],
  ] as const)('a call waits until it is %s', (type, more) => {
    source.emit('waiting');
    expect(valuesOf(LockMetric.Waiting)).toEqual({ order: 1 });
    source.emit(type, more);
    expect(valuesOf(LockMetric.Waiting)).toEqual({});
    expect(recorded).toEqual([[LockMetric.WaitTime, 1.5, LOCK]]);
  });

  it('a call that was refused at once has not waited', () => {
    source.emit('notAcquired', { error: busy });
    expect(recorded).toEqual([]);
    expect(valuesOf(LockMetric.Waiting)).toEqual({});
  });

  it('a candidate that was elected after a day has waited for no lock', () => {
    source.emit('acquired', { resource: 'leader:importer', group: 'importer', waitedMs: 86_400_000 });
    expect(recorded).toEqual([]);
    expect(valuesOf(LockMetric.Held)).toEqual({ importer: 1 });
  });

  it.each([
    ['busy', busy],
    ['timeout', timeout],
    ['unavailable', unavailable],
    ['refused', LockReentryError.upgrade('order:7')],
  ])('counts a call that failed as %s, with the code of the error', (outcome, error) => {
    source.emit('notAcquired', { error });
    expect(valuesOf(LockMetric.Acquire, 'outcome')).toEqual({ [outcome]: 1 });
    expect(valuesOf(LockMetric.Acquire, 'error.type')).toEqual({ [error.code]: 1 });
  });

  it.each([
    ['released', {}],
    ['lost', { reason: 'notRenewed', error: new LeaseLostError('order:7', 'notRenewed', 1) }],
    ['releaseFailed', { isEnd: true, error: unavailable }],
  ] as const)('a lease that is %s is held no more', (type, more) => {
    source.emit('acquired');
    source.emit(type, { heldMs: 1_000, ...more });
    expect(valuesOf(LockMetric.Held)).toEqual({});
    expect(recorded.at(-1)).toEqual([LockMetric.HoldTime, 1, LOCK]);
  });

  it('a lease that is left to expire is held no more, and its time is not recorded', () => {
    source.emit('acquired');
    source.emit('leaseAbandoned', { heldMs: 1_000 });
    expect(valuesOf(LockMetric.Held)).toEqual({});
    expect(recorded.map(([metric]) => metric)).toEqual([LockMetric.WaitTime]);
  });

  it('a release that failed after a loss ends nothing once more', () => {
    source.emit('acquired');
    source.emit('lost', { reason: 'maxHold', error: new LeaseLostError('order:7', 'maxHold', 1) });
    source.emit('releaseFailed', { isEnd: false, error: unavailable });
    expect(valuesOf(LockMetric.Held)).toEqual({});
    expect(valuesOf(LockMetric.Lost, 'reason')).toEqual({ maxHold: 1 });
    expect(valuesOf(LockMetric.ReleaseFailures, 'error.type')).toEqual({ LOCK_UNAVAILABLE: 1 });
  });

  it('counts what else happens to leases', () => {
    source.emit('acquired', { handedOn: true });
    source.emit('renewalFailed', { error: unavailable });
    source.emit('leaked');
    source.emit('heldLong');
    source.emit('eventLoopBlocked');
    expect(valuesOf(LockMetric.HandOvers)).toEqual({ order: 1 });
    expect(valuesOf(LockMetric.RenewalFailures, 'error.type')).toEqual({ LOCK_UNAVAILABLE: 1 });
    expect(valuesOf(LockMetric.Leaked)).toEqual({ order: 1 });
    expect(valuesOf(LockMetric.HeldLong)).toEqual({ order: 1 });
    expect(valuesOf(LockMetric.EventLoopBlocked, 'lock.service')).toEqual({ default: 1 });
  });

  it('measures a run of a job', () => {
    source.emit('tickStarted', { delayMs: 120 });
    source.emit('tickFinished', { outcome: 'ok', ranMs: 3_000 });
    source.emit('tickFinished', { outcome: 'error', ranMs: 1_000 });
    source.emit('tickSkipped', { reason: 'claimed' });
    source.emit('tickFailed', { error: unavailable });
    const job = { 'lock.service': 'default', 'lock.job': 'report' };
    expect(recorded).toEqual([
      [LockMetric.JobStartDelay, 0.12, job],
      [LockMetric.JobDuration, 3, job],
      [LockMetric.JobDuration, 1, job],
    ]);
    expect(valuesOf(LockMetric.JobRuns, 'outcome')).toEqual({ ok: 1, error: 1 });
    expect(valuesOf(LockMetric.JobSkipped, 'reason')).toEqual({ claimed: 1, failed: 1 });
    expect(valuesOf(LockMetric.JobLastSuccess, 'lock.job')).toEqual({ report: AT / 1000 });
  });

  it('counts the calls of once that return a result, by their outcome', () => {
    for (const outcome of ['run', 'hit', 'hit', 'wait', 'hit'] as const) source.emit('onceReturned', { outcome });
    expect(valuesOf(LockMetric.OnceCalls, 'outcome')).toEqual({ run: 1, hit: 3, wait: 1 });
  });

  it('counts each tick that no instance claimed', () => {
    source.emit('tickMissed', { count: 3 });
    source.emit('tickMissed', { count: 1_200 });
    expect(valuesOf(LockMetric.JobMissed, 'lock.job')).toEqual({ report: 1_203 });
  });

  it('a run that began before its time by our clock began in time; one without a time has no delay', () => {
    source.emit('tickStarted', { delayMs: -30 });
    source.emit('tickStarted');
    expect(recorded.map(([, value]) => value)).toEqual([0]);
  });

  it('knows whether this process leads, also while one campaign takes over from another', () => {
    source.emit('campaigning');
    const leads = () => metrics.seriesOf(LockMetric.LeaderState).map(({ value }) => value);
    expect(leads()).toEqual([0]);
    source.emit('elected');
    source.emit('elected');
    expect(leads()).toEqual([1]);
    source.emit('demoted');
    expect(leads()).toEqual([1]);
    source.emit('demoted');
    expect(leads()).toEqual([0]);
  });

  it('counts for which group calls have waited, in seconds', () => {
    source.blocked({ group: 'Orders.pay', holderGroup: 'NightlyReport.run', waitedMs: 1_500 });
    source.blocked({ group: 'Orders.pay', holderGroup: 'Orders.pay', waitedMs: 20 });
    source.blocked({ group: 'Orders.pay', holderGroup: 'NightlyReport.run', waitedMs: 500 });
    source.blocked({ group: 'Orders.ship', holderGroup: '_unknown', waitedMs: 1 });
    const service = { 'lock.service': 'default' };
    expect(metrics.seriesOf(LockMetric.BlockedTime)).toEqual([
      { attributes: { ...service, 'lock.group': 'Orders.pay', 'lock.holder.group': 'NightlyReport.run' }, value: 2 },
      { attributes: { ...service, 'lock.group': 'Orders.pay', 'lock.holder.group': 'Orders.pay' }, value: 0.02 },
      { attributes: { ...service, 'lock.group': 'Orders.ship', 'lock.holder.group': '_unknown' }, value: 0.001 },
    ]);
    stop();
    source.blocked({ group: 'Orders.ship', holderGroup: '_unknown', waitedMs: 1 });
    expect(metrics.seriesOf(LockMetric.BlockedTime)).toHaveLength(3);
  });

  it('counts times in the buckets that dashboards and alerts know', () => {
    const known = [0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];
    expect(LOCK_METRIC_BUCKETS).toEqual(known);
  });

  describe('from the start', () => {
    const zeros = (metric: LockMetric): number => metrics.seriesOf(metric).filter(({ value }) => value === 0).length;

    it('has a series for each value of what is registered, before and after', () => {
      source.register('method', 'Orders.pay');
      source.register('once', 'Orders.pay');
      source.register('job', 'report');
      source.register('leadership', 'importer');
      metrics.start(source);
      for (const [name, { kind }] of Object.entries(LOCK_METRICS)) {
        // Its groups are known with the first call.
        if (kind === 'histogram' || name === LockMetric.BlockedTime) continue;
        expect([name, zeros(name as LockMetric) > 0]).toEqual([name, true]);
      }
      expect(zeros(LockMetric.Acquire)).toBe(3 * 7);
      expect(zeros(LockMetric.Lost)).toBe(3 * 5);
      expect(zeros(LockMetric.JobRuns)).toBe(3);
    });

    it('a series of a name that comes with a call has no more than it needs', () => {
      source.emit('acquired');
      expect(zeros(LockMetric.Lost)).toBe(0);
      expect(metrics.seriesOf(LockMetric.Acquire)).toHaveLength(1);
    });
  });

  it('names of jobs and leaderships that come with calls share one series after 200; registered ones do not', () => {
    for (let i = 0; i < 300; i++) {
      source.emit('tickFinished', { job: `report of ${i}`, outcome: 'ok', ranMs: 1 });
      source.emit('campaigning', { leadership: `room ${i}` });
    }
    source.register('job', 'nightly');
    source.emit('tickFinished', { job: 'nightly', outcome: 'ok', ranMs: 1 });
    const jobs = metrics.seriesOf(LockMetric.JobLastSuccess).map(({ attributes }) => attributes['lock.job']);
    expect(jobs).toHaveLength(202);
    expect(jobs.slice(-2)).toEqual(['_other', 'nightly']);
    expect(valuesOf(LockMetric.JobLastSuccess, 'lock.job')['nightly']).toBe(AT / 1000);
    expect(metrics.seriesOf(LockMetric.LeaderState)).toHaveLength(201);
  });

  describe('several lock services in one process', () => {
    it('have series of their own, by their names', () => {
      const jobs = new FakeSource('jobs');
      metrics.start(jobs);
      source.emit('acquired');
      jobs.emit('acquired');
      jobs.emit('acquired');
      expect(valuesOf(LockMetric.Held, 'lock.service')).toEqual({ default: 1, jobs: 2 });
    });

    it('of the same name share them, and what one held when it closed is held no more', () => {
      const other = new FakeSource();
      const stopOther = metrics.start(other);
      source.emit('acquired');
      source.emit('elected');
      other.emit('acquired');
      other.emit('waiting');
      other.emit('elected');
      expect(valuesOf(LockMetric.Held)).toEqual({ order: 2 });
      stopOther();
      expect(other.isObserved).toBe(false);
      expect(valuesOf(LockMetric.Held)).toEqual({ order: 1 });
      expect(valuesOf(LockMetric.Waiting)).toEqual({});
      expect(valuesOf(LockMetric.LeaderState, 'lock.leadership')).toEqual({ importer: 1 });
      expect(valuesOf(LockMetric.Acquire)).toEqual({ order: 2 });
      stop();
      expect(valuesOf(LockMetric.Held)).toEqual({});
      expect(valuesOf(LockMetric.LeaderState, 'lock.leadership')).toEqual({});
      expect(valuesOf(LockMetric.Acquire)).toEqual({ order: 2 });
    });
  });

  it('counts correctly if a package throws', () => {
    const broken = new LockMetrics<Attributes>({
      attributesOf: (attributes) => attributes,
      record: () => {
        throw new Error('out of memory');
      },
    });
    broken.start(source);
    const emit = (...event: Parameters<FakeSource['emit']>) =>
      expect(() => source.emit(...event)).toThrow('out of memory');
    source.emit('waiting');
    emit('acquired', { hasWaited: true });
    emit('released');
    for (const metric of [LockMetric.Waiting, LockMetric.Held]) {
      expect(broken.seriesOf(metric).map(({ value }) => value)).toEqual([0]);
    }
  });
});

const SEEDS = Array.from({ length: runs(8, 4) }, (_, index) => index + 1);
const STEPS = 120;
const RESOURCES = ['order:1', 'order:2', 'stock:1', 'a bare name'];
const MODES = ['exclusive', 'reentrant', 'read', 'write'] as const;

/** An instance, and what its metrics say. */
class Measured {
  readonly metrics = new LockMetrics<Attributes>({ attributesOf: (attributes) => attributes, record: () => {} });
  readonly instance: Instance;
  readonly leases: Lease[] = [];
  readonly calls: Promise<unknown>[] = [];

  constructor(world: LockWorld, name: string) {
    this.instance = world.instance(name, { telemetry: [this.metrics] });
  }

  acquire(random: SeededRandom): void {
    const controller = new AbortController();
    const mode = pick(random, MODES);
    const several = random.fraction() < 0.1;
    const resource = several ? ['order:1', 'stock:1'] : pick(random, RESOURCES);
    const call = this.instance.locks.acquire(several ? ['order:1', 'stock:1'] : (resource as string), {
      mode,
      waitMs: pick(random, [0, 50, 2_000, 20_000]),
      signal: controller.signal,
      ...(random.fraction() < 0.2 && { maxHoldMs: 3_000 }),
      ...(random.fraction() < 0.2 && { watchdog: false, leaseMs: 2_000 }),
    });
    if (random.fraction() < 0.2) setImmediate(() => controller.abort());
    this.calls.push(
      call.then(
        (lease) => void this.leases.push(lease),
        () => {},
      ),
    );
  }

  end(random: SeededRandom): void {
    const [lease] = this.leases.splice(Math.floor(random.fraction() * this.leases.length), 1);
    if (lease === undefined) return;
    this.calls.push(lease.release().catch(() => {}));
  }

  sumOf(metric: LockMetric): number {
    return this.metrics.seriesOf(metric).reduce((sum, { value }) => sum + value, 0);
  }
}

describe('what is held and waits, after any history of calls, losses and failures', () => {
  it.each(SEEDS)('returns to exactly 0 (seed %d)', async (seed) => {
    const random = new SeededRandom(seed);
    const world = new LockWorld();
    const a = new Measured(world, 'a');
    const b = new Measured(world, 'b');
    for (let step = 0; step < STEPS; step++) {
      const one = pick(random, [a, b]);
      const dice = random.fraction();
      if (dice < 0.45) one.acquire(random);
      else if (dice < 0.85) one.end(random);
      else if (dice < 0.9) one.instance.store.all(pick<Fate>(random, [lostOnTheWay, replyLost, failing('unknown')]));
      else one.instance.store.all(answered);
      await world.clock.advance(pick(random, [0, 1, 30, 1_000]));
      for (const { metrics } of [a, b]) {
        for (const metric of [LockMetric.Held, LockMetric.Waiting]) {
          for (const { value, attributes } of metrics.seriesOf(metric)) {
            expect([metric, attributes, value >= 0]).toEqual([metric, attributes, true]);
          }
        }
      }
    }
    for (const { instance } of [a, b]) instance.store.all(answered);
    await world.clock.advance(120_000);
    for (const each of [a, b]) {
      for (const lease of each.leases.splice(0)) each.calls.push(lease.release().catch(() => {}));
    }
    await world.clock.advance(120_000);
    await Promise.all([...a.calls, ...b.calls]);
    for (const { metrics, instance, ...each } of [a, b]) {
      void each;
      for (const metric of [LockMetric.Held, LockMetric.Waiting]) {
        for (const series of metrics.seriesOf(metric))
          expect([metric, series]).toEqual([metric, { ...series, value: 0 }]);
      }
      expect(eventsOf(instance, 'acquired').length).toBeGreaterThan(4);
      expect(eventsOf(instance, 'waiting').length).toBeGreaterThan(1);
    }
  });
});

function pick<T>(random: SeededRandom, all: readonly T[]): T {
  return all[Math.floor(random.fraction() * all.length)]!;
}

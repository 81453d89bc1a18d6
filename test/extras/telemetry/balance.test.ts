import { LockMetrics } from '../../../lib/extras/telemetry/lock-metrics.js';
import { LockMetric } from '../../../lib/extras/telemetry/names.js';
import type { Attributes } from '../../../lib/extras/telemetry/series.js';
import type { Lease } from '../../../lib/kernel/api/lease.js';
import { answered, failing, type Fate, lostOnTheWay, replyLost } from '../../support/world/scripted-store.js';
import { eventsOf, type Instance, LockWorld } from '../../support/world/lock-world.js';
import { runs } from '../../support/simulation/runs.js';
import { SeededRandom } from '../../support/world/seeded-random.js';

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

import { setTimeout as sleep } from 'node:timers/promises';
import { SeededRandom } from '../../../test/support/world/seeded-random.js';
import type { Fault } from '../faults/fault.js';
import type { Slot } from '../world/slot.js';
import type { World } from '../world/world.js';

/**
 * Limits retries, times `each`, of faults that could not be injected: some need a moment that is rare on a busy
 * machine.
 */
const MAX_REPEATS = 40;

export interface Plan {
  readonly faults: readonly Fault[];
  /** Runs of each fault; more if there were too few holds. */
  readonly each: number;
  readonly holds?: number;
  /** The percentage that is combined with another fault on a worker. */
  readonly together: number;
  /** The length of the quiet phase at the end, in leases. @default 0 */
  readonly calm?: number;
  /** Ends it before the next fault, and the calm before that. */
  readonly signal?: AbortSignal;
}

/** Injects faults one after another, in an order that the seed decides, now and then with a second one in the middle. */
export async function inject(
  world: World,
  { faults, each, holds = 0, together, calm = 0, signal }: Plan,
): Promise<void> {
  // Of its own: what the faults themselves choose depends on what they find.
  const random = new SeededRandom(world.settings.seed);
  const upTo = (limit: number): number => Math.floor(random.fraction() * limit);
  const struck = new Set<Slot>();
  const others = faults.filter(({ strikes }) => strikes === 'worker');
  const order = Array.from({ length: each }, () => shuffled(faults, random)).flat();
  let more: Fault[] = [];
  let [id, repeats] = [0, 0];
  const strike = async (fault: Fault): Promise<void> => {
    const victim = await choose(world, fault, struck);
    if (!victim) return;
    struck.add(victim);
    const { kind, breaksPromises = false, losesData = false, movesClock = false } = fault;
    const victims = { worker: [victim], redis: world.slots, nobody: [] }[fault.strikes];
    const said = {
      type: 'fault',
      id: ++id,
      kind,
      victims: victims.map(({ worker }) => worker.instanceId),
      breaksPromises,
      losesData,
      movesClock,
    } as const;
    world.say({ ...said, phase: 'begin' });
    const failed = (error: unknown): void => {
      world.say({ type: 'crash', error: `The fault "${kind}" failed: ${(error as Error).stack}` });
    };
    let missed = false;
    try {
      missed = (await fault.inject(world, victim)) === false;
    } catch (error) {
      failed(error);
    }
    world.say({ ...said, phase: 'healed', missed });
    await fault.restore?.().catch(failed);
    struck.delete(victim);
    if (missed && repeats++ < MAX_REPEATS * each) order.push(fault);
  };

  for (let next = 0; next < order.length || world.countHolds() < holds;) {
    if (signal?.aborted) return;
    if (next === order.length && more.length === 0) more = shuffled(faults, random);
    // Retries the ones that could not be injected first.
    const running = [strike(next < order.length ? order[next++]! : more.pop()!)];
    const [isTogether, other, laterMs] = [upTo(100) < together, others[upTo(others.length)], upTo(world.leaseMs)];
    if (isTogether && other) {
      await sleep(laterMs);
      running.push(strike(other));
    }
    await Promise.all(running);
    // All is well again for long enough to see that it is.
    await sleep(world.leaseMs * (0.2 + 0.6 * random.fraction()), undefined, { signal }).catch(() => undefined);
  }
  await sleep(calm * world.leaseMs);
}

async function choose(world: World, fault: Fault, struck: ReadonlySet<Slot>): Promise<Slot | undefined> {
  const free = world.awake.filter((slot) => !struck.has(slot));
  const best = await fault.choose?.(world);
  return best && free.includes(best) ? best : free[world.upTo(free.length)];
}

function shuffled<T>(things: readonly T[], random: SeededRandom): T[] {
  return things
    .map((thing) => ({ thing, at: random.fraction() }))
    .sort((a, b) => a.at - b.at)
    .map(({ thing }) => thing);
}

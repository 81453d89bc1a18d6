import type { Fate } from '../../../support/world/scripted-store.js';
import { SeededRandom } from '../../../support/world/seeded-random.js';
import { type OnceInstance, OnceWorld } from './once-world.js';

const FLEETS = 30;
/** The longest way to Redis, or back. The shortest is a fiftieth of it. */
const ONE_WAY_MS = 5;
const ROUND_TRIP_MS = 2 * ONE_WAY_MS;
/** The command that ends the work, and the message about it. */
const HAND_OVER_MS = 2 * ONE_WAY_MS;
/** All calls begin within this time, and no work takes longer. */
const SPREAD_MS = 30;

/** One direction of a connection: nothing overtakes what was sent before. */
class Way {
  #freeAt = 0;

  constructor(
    private readonly world: OnceWorld,
    private readonly random: SeededRandom,
  ) {}

  pass(): Promise<void> {
    const { clock } = this.world;
    const now = clock.now();
    this.#freeAt = Math.max(this.#freeAt, now + ONE_WAY_MS * (0.02 + 0.98 * this.random.fraction()));
    return new Promise((resolve) => clock.setTimer(resolve, this.#freeAt - now));
  }
}

/** A process at a distance from Redis. Its messages have a connection of their own, so they may overtake replies. */
function distant(world: OnceWorld, name: string, random: SeededRandom): OnceInstance {
  const process = world.process(name);
  const { store } = process.instance;
  const [there, back, messages] = [new Way(world, random), new Way(world, random), new Way(world, random)];
  const travels: Fate = async (execute) => {
    await there.pass();
    const reply = await execute();
    await back.pass();
    return reply;
  };
  store.all(travels);
  Object.assign(process.results.fates, { read: travels, claim: travels, keep: travels });
  const deliver = store.deliverFreed.bind(store);
  store.deliverFreed = (message) => void messages.pass().then(() => deliver(message));
  return process;
}

interface Waited {
  readonly ms: number;
  readonly atMost: number;
}

/** Calls for one key in two to six processes, of which the work of the first ones may throw. */
async function waitsOfFleet(seed: number): Promise<Waited[]> {
  const random = new SeededRandom(seed);
  const world = new OnceWorld();
  const { clock } = world;
  const later = (ms: number) => new Promise<void>((resolve) => clock.setTimer(resolve, ms));
  const size = 2 + Math.floor(random.fraction() * 5);
  const failures = Math.floor(random.fraction() * 3);
  const ends: number[] = [];
  const work = async (): Promise<number> => {
    const run = ends.push(Infinity) - 1;
    await later(random.fraction() * SPREAD_MS);
    ends[run] = clock.now();
    if (run < failures) throw new Error('failed');
    return run;
  };
  const processes = Array.from({ length: size }, (_, index) => distant(world, `process-${index}`, random));
  const waits: Waited[] = [];
  const calls = Array.from({ length: 2 * size }, async (_, index) => {
    const process = processes[index % size]!;
    await later(random.fraction() * SPREAD_MS);
    const startedAt = clock.now();
    const run = await process.run(work).catch(() => undefined);
    if (run === undefined) return;
    waits.push({
      ms: clock.now() - Math.max(startedAt, ends[run]!),
      atMost: (size - 1) * HAND_OVER_MS + 2 * ROUND_TRIP_MS,
    });
  });
  // Long enough for many fallbacks, and far longer than the bound.
  await clock.advance(20_000);
  await Promise.all(calls);
  return waits;
}

describe('a call of once that waits for another process', () => {
  it('returns within a hand-over for each waiting process and two round trips after the end of the work', async () => {
    const waits: Waited[] = [];
    for (let seed = 1; seed <= FLEETS; seed++) waits.push(...(await waitsOfFleet(seed)));
    expect(waits.length).toBeGreaterThan(2 * FLEETS);
    expect(waits.filter(({ ms, atMost }) => ms > atMost)).toEqual([]);
  }, 120_000);
});

import { failing, type Fate, lostOnTheWay, replyLost } from '../../support/scripted-store.js';
import { SeededRandom } from '../../support/seeded-random.js';
import { Fleet, LEASE_MS, type Member, type Run } from '../../support/singleton-fleet.js';

const TICKS = 20;
const PERIOD_MS = 10_000;
const MOST_SKEW_MS = 2_000;
const WORLDS = Array.from({ length: 20 }, (_, seed) => seed + 1);

/** A fleet whose clocks differ, on a network that delays, repeats and loses. */
class Simulation {
  readonly fleet: Fleet;
  readonly random: SeededRandom;
  /** The clock of each member shows the time plus this. */
  readonly #skews = new Map<Member, number>();
  /** Who fired which tick, and so could run it. */
  readonly witnesses = new Map<string, Member[]>();
  readonly #begin: number;

  constructor(
    seed: number,
    readonly onCrash: 'skip' | 'retry',
  ) {
    this.random = new SeededRandom(seed);
    // overlap: 'wait', because then no tick may be missing, however the runs fall.
    this.fleet = new Fleet({ onCrash, overlap: 'wait' });
    this.#begin = this.fleet.clock.now() + PERIOD_MS;
    for (let i = 0; i < 4; i++) this.join(`member ${i}`);
  }

  upTo(limit: number): number {
    return Math.floor(this.random.fraction() * limit);
  }

  get alive(): Member[] {
    return [...this.#skews.keys()].filter(({ isDead }) => !isDead);
  }

  join(name: string): void {
    const member = this.fleet.member(name);
    member.ledger.fates.claim = this.#network;
    member.ledger.fates.finish = this.#network;
    this.#skews.set(member, this.upTo(2 * MOST_SKEW_MS) - MOST_SKEW_MS);
  }

  /** Each member fires each tick when its own clock says so, and again and again something happens in between. */
  async run(somethingHappens: () => void = () => {}): Promise<void> {
    const { clock } = this.fleet;
    for (let tick = 0; tick < TICKS; tick++) {
      const due = this.#begin + tick * PERIOD_MS;
      for (const [member, skew] of this.#skews) {
        clock.setTimer(() => this.#fire(member, `tick ${tick}`), due - skew - clock.now());
      }
      // All have fired by then, and none the next one.
      await clock.advance(due + MOST_SKEW_MS - clock.now());
      somethingHappens();
      await clock.advance(due + PERIOD_MS - MOST_SKEW_MS - 1 - clock.now());
    }
    await clock.advance(40 * LEASE_MS);
  }

  runsByTick(): Run[][] {
    return Array.from({ length: TICKS }, (_, tick) => this.fleet.runsOf(`tick ${tick}`));
  }

  #fire(member: Member, tick: string): void {
    if (member.isDead) return;
    this.witnesses.set(tick, [...(this.witnesses.get(tick) ?? []), member]);
    // Some wait so long for a reply that their lease is over when it comes.
    const attemptTimeoutMs = this.upTo(10) === 0 ? 60_000 : 1_000;
    const lock = { leaseMs: LEASE_MS, waitMs: Infinity, attemptTimeoutMs };
    member.fire(tick, 5 + this.upTo(8_000), { lock });
  }

  readonly #network: Fate = (execute) => {
    switch (this.upTo(20)) {
      case 0:
        return lostOnTheWay(execute);
      case 1:
        return replyLost(execute);
      case 2:
        return failing('notExecuted')(execute);
      case 3:
        return this.#delayed(execute, 900, 2 * LEASE_MS);
      default:
        return this.#delayed(execute, 400, 400);
    }
  };

  async #delayed<T>(execute: () => Promise<T>, beforeMs: number, afterMs: number): Promise<T> {
    await this.#pass(this.upTo(beforeMs));
    const reply = await execute();
    await this.#pass(this.upTo(afterMs));
    return reply;
  }

  #pass(ms: number): Promise<void> {
    return new Promise((resolve) => this.fleet.clock.setTimer(resolve, ms));
  }
}

/** No two runs at the same time. A dead runner's ends with its process, which is not looked at here. */
function overlapping(runs: readonly Run[]): string[] {
  const ended = runs.filter(({ endedAt }) => endedAt !== undefined).sort((a, b) => a.startedAt - b.startedAt);
  const pairs = ended.slice(1).map((run, index) => [ended[index]!, run] as const);
  return pairs.filter(([before, run]) => run.startedAt < before.endedAt!).map(([, { tick, on }]) => `${tick} on ${on}`);
}

describe.each(['skip', 'retry'] as const)('a fleet with skewed clocks on a bad network (onCrash: %s)', (onCrash) => {
  it.each(WORLDS)('runs every tick exactly once, one after another: world %d', async (seed) => {
    const simulation = new Simulation(seed, onCrash);
    await simulation.run();
    expect(simulation.runsByTick().map((runs) => runs.length)).toEqual(Array<number>(TICKS).fill(1));
    expect(overlapping(simulation.fleet.runs)).toEqual([]);
  });
});

describe("a fleet whose processes are killed and replaced (onCrash: 'retry')", () => {
  it.each(WORLDS)('misses no tick, and runs one again only if its runner died: world %d', async (seed) => {
    const simulation = new Simulation(seed, 'retry');
    const { fleet } = simulation;
    let joined = 0;
    await simulation.run(() => {
      if (simulation.upTo(3) > 0) return;
      fleet.clock.setTimer(() => {
        // Whoever runs a job now, or anybody.
        const runner = simulation.alive.find(({ name }) => fleet.runs.some((run) => run.on === name && !run.endedAt));
        (runner ?? simulation.alive[0]!).kill();
        simulation.join(`substitute ${++joined}`);
      }, simulation.upTo(5_000));
    });
    expect(joined).toBeGreaterThan(0);
    const isAlive = (name: string): boolean => simulation.alive.some((member) => member.name === name);
    for (const [tick, runs] of simulation.runsByTick().entries()) {
      // Nobody is left to run it only where all who fired it died before one of them got to it.
      const someoneIsLeft = simulation.witnesses.get(`tick ${tick}`)!.some(({ isDead }) => !isDead);
      if (someoneIsLeft) expect(runs.some(({ endedAt }) => endedAt !== undefined)).toBe(true);
      // Every run but the last one was on a process that died.
      expect(runs.slice(0, -1).filter(({ on }) => isAlive(on))).toEqual([]);
    }
    expect(overlapping(fleet.runs)).toEqual([]);
  });
});

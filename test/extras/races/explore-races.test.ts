import { describe, expect, it } from '@jest/globals';
import { exploreRaces } from '../../../lib/extras/races/explore-races.js';
import { raced, racePoint } from '../../../lib/extras/races/raced.js';
import { InvalidLockOptionsError } from '../../../lib/kernel/api/errors.js';
import { RaceFoundError } from '../../../lib/extras/races/schedule/race-errors.js';
import { Stock } from './stock.js';

function shop(left: number): { stock: Stock; sold: number } {
  return { stock: raced(new Stock(left), { name: 'stock', reads: ['read'] }), sold: 0 };
}

async function sell(world: ReturnType<typeof shop>): Promise<void> {
  const left = await world.stock.read();
  if (left === 0) return;
  await world.stock.write(left - 1);
  world.sold++;
}

const neverOversold = ({ sold }: { sold: number }): string | undefined => (sold > 1 ? 'oversold' : undefined);

async function raceOf(run: Promise<unknown>): Promise<RaceFoundError> {
  const error: unknown = await run.then(
    () => new Error('no race was found'),
    (thrown: unknown) => thrown,
  );
  if (!(error instanceof RaceFoundError)) throw error;
  return error;
}

describe('exploreRaces', () => {
  it('finds two actors that sell the same piece, and tells the shortest story', async () => {
    const race = await raceOf(exploreRaces(() => shop(1), [sell, sell], { invariant: neverOversold }));

    expect(race.story).toBe('A stock.read() -> 1; B stock.read() -> 1; B stock.write(0); A stock.write(0): oversold');
    expect(race.switches).toBe(1);
    expect(race.message).toContain('oversold\n  1. A stock.read() -> 1\n  2. B stock.read() -> 1\n');
    expect(race.message).toContain(race.seed);
  });

  it('runs the same schedule again by its seed', async () => {
    const found = await raceOf(exploreRaces(() => shop(1), [sell, sell], { invariant: neverOversold }));
    const again = await raceOf(
      exploreRaces(() => shop(1), [sell, sell], { invariant: neverOversold, seed: found.seed }),
    );

    expect(again.story).toBe(found.story);
    expect(again.schedules).toBe(1);
  });

  it('runs one of each set of equal orders, and says so', async () => {
    const result = await exploreRaces(() => shop(3), [sell, sell], {
      invariant: ({ stock }) => stock.now < 3,
      shares: 'named',
    });

    // There are 6 orders of two reads and two writes. They reduce to 4: A before B, B before A, and both reads first,
    // with either write last.
    expect(result).toEqual({ schedules: 4, pruned: expect.any(Number), exhausted: true });
    expect(result.pruned).toBeGreaterThan(0);
  });

  it('returns the race if it is not to throw it', async () => {
    const result = await exploreRaces(() => shop(1), [sell, sell], { invariant: neverOversold, throws: false });

    expect(result.exhausted).toBe(false);
    expect(result.failure?.reason).toBe('oversold');
  });

  it('reports that no order is to blame if the actors fail one after the other', async () => {
    const race = await raceOf(exploreRaces(() => shop(2), [sell, sell], { invariant: ({ stock }) => stock.now === 1 }));

    expect(race.switches).toBe(0);
    expect(race.message).toContain('the order is not the cause');
    expect(race.reason).toBe('the invariant does not hold');
  });

  it('counts an error of an actor as a race, unless it may throw it', async () => {
    const failing = async (): Promise<void> => {
      await racePoint('looks');
      throw new Error('sold out');
    };
    const invariant = (): void => {};

    const race = await raceOf(exploreRaces(() => 0, [failing], { invariant }));
    expect(race.story).toBe('A looks: A threw Error: sold out');
    const outcomes: unknown[] = [];
    await exploreRaces(() => 0, [failing], {
      invariant: (_, outcome) => void outcomes.push(outcome.A),
      mayThrow: (error, actor) => actor === 'A' && (error as Error).message === 'sold out',
    });
    expect(outcomes).toEqual([{ status: 'threw', error: expect.objectContaining({ message: 'sold out' }) }]);
  });

  it('tells the invariant what each actor has returned', async () => {
    const outcomes: unknown[] = [];
    const actors = { web: async (): Promise<string> => 'sold', cron: (): number => 7 };
    await exploreRaces(() => 0, actors, { invariant: (_, found) => void outcomes.push(found), shares: 'named' });

    expect(outcomes).toEqual([{ web: { status: 'returned', value: 'sold' }, cron: { status: 'returned', value: 7 } }]);
  });

  it('waits for work that an actor has not awaited', async () => {
    const careless = async (world: ReturnType<typeof shop>): Promise<void> => void sell(world);

    const race = await raceOf(exploreRaces(() => shop(1), [careless, careless], { invariant: neverOversold }));
    expect(race.story).toContain('oversold');
  });

  it('finds actors that wait for each other', async () => {
    const gates = (): PromiseWithGate[] => [gate(), gate()];
    const one = async ([mine, other]: PromiseWithGate[]): Promise<void> => {
      await racePoint('waits for B');
      await other!.opened;
      mine!.open();
    };
    const two = async ([other, mine]: PromiseWithGate[]): Promise<void> => {
      await other!.opened;
      mine!.open();
    };

    const race = await raceOf(exploreRaces(gates, [one, two], { invariant: () => {}, patienceMs: 5 }));
    expect(race.reason).toBe(
      'no actor can continue: A waits for something other than a race point, after "waits for B"; ' +
        'B waits for something other than a race point',
    );
  });

  it('waits for code outside its control, and reports an order that led to other steps', async () => {
    const slow = async (): Promise<void> => {
      await racePoint('sends');
      await new Promise((resolve) => setTimeout(resolve, 5));
      await racePoint('hears');
    };
    await expect(exploreRaces(() => 0, [slow], { invariant: () => {} })).resolves.toMatchObject({ exhausted: true });

    let calls = 0;
    const changing = (): Promise<void> => racePoint(`call ${++calls}`);
    await expect(exploreRaces(() => 0, [changing, changing], { invariant: () => {} })).rejects.toMatchObject({
      code: 'SCHEDULE_DIVERGED',
      message: expect.stringContaining('state that setup does not create'),
    });
  });

  it('ends a schedule that never ends', async () => {
    const polling = async (): Promise<void> => {
      for (;;) await racePoint('polls', { object: 'poll' });
    };

    const race = await raceOf(exploreRaces(() => 0, [polling], { invariant: () => {}, maxSteps: 20 }));
    expect(race.reason).toBe('the run has not ended after 20 steps');
  });

  describe('with more orders than it may run', () => {
    const busy = async (): Promise<void> => {
      for (let step = 0; step < 8; step++) await racePoint('works');
    };
    const invariant = (): void => {};

    it('refuses to run some of them for all', async () => {
      await expect(exploreRaces(() => 0, [busy, busy], { invariant, maxSchedules: 50 })).rejects.toMatchObject({
        code: 'TOO_MANY_SCHEDULES',
      });
    });

    it('runs as many as requested, half of them by chance', async () => {
      const result = await exploreRaces(() => 0, [busy, busy], { invariant, schedules: 40 });

      expect(result).toMatchObject({ schedules: 40, exhausted: false });
    });

    it('finds a late race by chance, and the same one with the same seed', async () => {
      const world = (): { turns: string[] } => ({ turns: [] });
      const actor =
        (name: string) =>
        async ({ turns }: { turns: string[] }): Promise<void> => {
          for (let step = 0; step < 8; step++) {
            await racePoint('works');
            turns.push(name);
          }
        };
      const run = (seed: number): Promise<RaceFoundError> =>
        raceOf(
          exploreRaces(world, [actor('a'), actor('b')], {
            invariant: ({ turns }) => !turns.join('').startsWith('bab'),
            schedules: 400,
            seed,
          }),
        );

      const [one, again] = [await run(3), await run(3)];
      expect(again.seed).toBe(one.seed);
      expect(again.schedules).toBe(one.schedules);
      expect(one.schedules).toBeGreaterThan(200);
    });
  });

  it.each([
    [{}, 'invariant must be a function'],
    [{ schedules: 0 }, "schedules must be 'all', or an integer of 1 or more, not 0"],
    [{ seed: 1.5 }, 'seed must be an integer'],
    [{ seed: 'what' }, 'the `seed` text of a RaceFoundError, not "what"'],
    [{ shares: 'some' }, "shares must be one of 'anything', 'named'"],
    [{ faults: 'kill' }, `faults must be an array of 'kill', 'stall', 'lose', not "kill"`],
    [{ faults: ['kill', 'die'] }, `faults[1] must be one of 'kill', 'stall', 'lose', not "die"`],
    [{ maxSteps: -1 }, 'maxSteps must be an integer of 1 or more (steps)'],
    [{ shedules: 3 }, 'has no option "shedules". Did you mean schedules?'],
  ])('refuses the options %j', async (options, message) => {
    const given = {
      ...('shares' in options || Object.keys(options).length > 0 ? { invariant: () => {} } : {}),
      ...options,
    };
    const run = exploreRaces(() => 0, [() => {}], given as never);

    await expect(run).rejects.toThrow(InvalidLockOptionsError);
    await expect(run).rejects.toThrow(message);
  });
});

interface PromiseWithGate {
  readonly opened: Promise<void>;
  open(): void;
}

function gate(): PromiseWithGate {
  let open!: () => void;
  const opened = new Promise<void>((resolve) => (open = resolve));
  return { opened, open };
}

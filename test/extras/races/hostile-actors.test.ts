import { describe, expect, it } from '@jest/globals';
import {
  exploreRaces,
  type ExploreRacesOptions,
  raced,
  RaceFoundError,
  racePoint,
  RaceToolError,
} from '../../../lib/races.js';

const holds = (): void => {};

async function errorOf(run: Promise<unknown>): Promise<RaceFoundError | RaceToolError> {
  const error: unknown = await run.then(
    () => new Error('nothing was thrown'),
    (thrown: unknown) => thrown,
  );
  if (error instanceof RaceFoundError || error instanceof RaceToolError) return error;
  throw error;
}

describe('exploreRaces with hostile actors', () => {
  it('ends if an actor never does, and names its last step', async () => {
    const hanging = async (): Promise<void> => {
      await racePoint('asks a person');
      await new Promise(() => {});
    };

    const race = await errorOf(exploreRaces(() => 0, { clerk: hanging }, { invariant: holds, patienceMs: 20 }));
    expect(race).toBeInstanceOf(RaceFoundError);
    expect(race.message).toMatch(/^no actor can continue: clerk waits for .*, after "asks a person"\n/);
  });

  it('ends if an actor loops forever without a point', async () => {
    let rounds = 0;
    const polling = async (): Promise<void> => {
      for (const last = rounds + 100_000; rounds < last; rounds++)
        await new Promise((resolve) => setImmediate(resolve));
    };

    const race = await errorOf(exploreRaces(() => 0, [polling], { invariant: holds, patienceMs: 20 }));
    expect(race.message).toMatch(/^no actor can continue: A waits for /);
    rounds = Infinity;
  });

  it.each([
    ['an error', new TypeError('no such row'), 'A threw TypeError: no such row'],
    ['a text', 'no such row', 'A threw "no such row"'],
    ['undefined', undefined, 'A threw undefined'],
    ['null', null, 'A threw null'],
    ['an object without a prototype', Object.create(null) as object, 'A threw {}'],
    ['a frozen error', Object.freeze(new Error('frozen')), 'A threw Error: frozen'],
  ])('tells of an actor that throws %s', async (_, thrown, reason) => {
    const later = async (): Promise<void> => {
      await racePoint('looks');
      throwIt(thrown);
    };
    const atOnce = (): never => throwIt(thrown);

    for (const actor of [later, atOnce]) {
      const race = (await errorOf(exploreRaces(() => 0, [actor], { invariant: holds }))) as RaceFoundError;
      expect(race.reason).toBe(reason);
      expect(race.cause).toBe(thrown);
    }
  });

  it.each([
    ['throws an error', (): never => throwIt(new Error('2 sold')), '2 sold'],
    ['throws an error without a message', (): never => throwIt(new RangeError()), 'RangeError'],
    ['throws a text', (): never => throwIt('2 sold'), 'the invariant threw "2 sold"'],
    ['throws undefined', (): never => throwIt(undefined), 'the invariant threw undefined'],
    ['rejects', (): Promise<never> => Promise.reject(new Error('2 sold')), '2 sold'],
    ['resolves to false', async (): Promise<boolean> => false, 'the invariant does not hold'],
    ['resolves to a text', async (): Promise<string> => '2 sold', '2 sold'],
  ])('tells of an invariant that %s', async (_, invariant, reason) => {
    const race = (await errorOf(exploreRaces(() => 0, [() => racePoint('sells')], { invariant }))) as RaceFoundError;

    expect(race.reason).toBe(reason);
    expect(race.story).toBe(`A sells: ${reason}`);
  });

  it.each([
    ['throws', (): never => throwIt(new Error('no database'))],
    ['rejects', (): Promise<never> => Promise.reject(new Error('no database'))],
  ])('says that the setup %s, though it fails the third time only', async (_, fail) => {
    let runs = 0;
    const setup = (): unknown => (++runs === 3 ? fail() : 0);
    const actor = (): Promise<void> => racePoint('works');

    const error = await errorOf(exploreRaces(setup, [actor, actor, actor], { invariant: holds }));
    expect(error).toMatchObject({
      code: 'SETUP_FAILED',
      cause: expect.objectContaining({ message: 'no database' }),
      message: 'exploreRaces: the setup failed: Error: no database',
    });
  });

  it.each([[[]], [{}], [undefined as never], [null as never]])('refuses the actors %j', async (actors) => {
    await expect(exploreRaces(() => 0, actors, { invariant: holds })).rejects.toMatchObject({
      code: 'INVALID_LOCK_OPTIONS',
      message: expect.stringContaining('at least one actor'),
    });
  });

  describe('that do something else each time', () => {
    let calls = 0;
    /** In place of Math.random(), so that it surely differs. */
    const chance = (): boolean => ++calls % 3 === 0;
    const gambler = async (): Promise<void> => {
      await racePoint('plays');
      if (chance()) await racePoint('wins');
      else await racePoint('loses');
    };

    it.each<[string, Partial<ExploreRacesOptions<number>>]>([
      ['all', {}],
      ['some', { schedules: 50 }],
    ])('says so, with %s schedules', async (_, options) => {
      const error = await errorOf(exploreRaces(() => 0, [gambler, gambler], { invariant: holds, ...options }));

      expect(error).toMatchObject({ code: 'SCHEDULE_DIVERGED' });
      expect(error.message).toMatch(/A loses.*Now: .*A wins|A wins.*Now: .*A loses|B (loses|wins)/);
      expect(error.message).toContain('a random number');
    });
  });

  it('runs two explorations at the same time', async () => {
    const sell = async (stock: { left: number }): Promise<void> => {
      await racePoint('reads');
      const { left } = stock;
      await racePoint('writes');
      stock.left = left - 1;
    };
    const invariant = ({ left }: { left: number }): boolean => left === 0;
    const explore = (): Promise<unknown> =>
      exploreRaces(() => ({ left: 2 }), [sell, sell], { invariant, throws: false });
    const alone = await explore();

    expect(await Promise.all([explore(), explore(), explore()])).toEqual([alone, alone, alone]);
  });

  it('has no effect on what an actor of an earlier schedule still does', async () => {
    class Ledger {
      readonly lines: string[] = [];
      async add(line: string): Promise<void> {
        this.lines.push(line);
      }
    }
    const ledgers: Ledger[] = [];
    const setup = (): Ledger => {
      ledgers.push(new Ledger());
      return raced(ledgers.at(-1)!);
    };
    const late = (ledger: Ledger): void => {
      setTimeout(() => void ledger.add('late'), 300);
    };
    await exploreRaces(setup, [late, (ledger) => ledger.add('B')], { invariant: holds });
    await new Promise((resolve) => setTimeout(resolve, 350));

    for (const { lines } of ledgers) expect(lines).toEqual(['B']);
  });
});

function throwIt(value: unknown): never {
  throw value;
}

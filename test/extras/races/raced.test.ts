import { describe, expect, it } from '@jest/globals';
import { InvalidLockOptionsError } from '../../../lib/kernel/api/errors.js';
import { exploreRaces } from '../../../lib/extras/races/explore-races.js';
import { raced, racePoint } from '../../../lib/extras/races/raced.js';

class Rows {
  readonly #rows = new Map<string, number>();
  label = 'rows';

  async get(id: string): Promise<number> {
    return this.#rows.get(id) ?? 0;
  }

  async add(id: string, count: number): Promise<void> {
    this.#rows.set(id, (await this.get(id)) + count);
  }

  async fail(): Promise<void> {
    throw new Error('no such table');
  }
}

const invariant = (): void => {};

describe('raced', () => {
  it('passes calls through outside of an exploration, with private fields and plain properties', async () => {
    const rows = raced(new Rows());
    await rows.add('a', 2);

    expect(await rows.get('a')).toBe(2);
    expect(rows.label).toBe('rows');
    expect(rows).toBeInstanceOf(Rows);
    expect(rows.get).toBe(rows.get);
  });

  it('is one point for each call from outside: what a method calls of its own object is part of it', async () => {
    const result = await exploreRaces(
      () => raced(new Rows()),
      [(rows) => rows.add('a', 1), (rows) => rows.add('a', 1)],
      { invariant: async (rows) => (await rows.get('a')) === 2, shares: 'named' },
    );

    expect(result).toMatchObject({ schedules: 2, exhausted: true });
  });

  it('lets calls about different parts change places', async () => {
    const run = (
      object?: (method: string, args: readonly unknown[]) => string | undefined,
    ): Promise<{ schedules: number }> =>
      exploreRaces(
        () => raced(new Rows(), { ...(object && { object }) }),
        [(rows) => rows.add('a', 1), (rows) => rows.add('b', 1)],
        { invariant, shares: 'named' },
      );

    expect(await run((_, [id]) => String(id))).toMatchObject({ schedules: 1 });
    expect(await run()).toMatchObject({ schedules: 2 });
    expect(await run(() => undefined)).toMatchObject({ schedules: 2 });
  });

  it('lets readings change places', async () => {
    const read = (rows: Rows): Promise<number> => rows.get('a');
    const result = await exploreRaces(() => raced(new Rows(), { reads: ['get'] }), [read, read, read], {
      invariant,
      shares: 'named',
    });

    expect(result.schedules).toBe(1);
  });

  it('tells arguments, results and errors', async () => {
    const { failure } = await exploreRaces(
      () => raced(new Rows()),
      [
        async (rows) => {
          await rows.add('a', 1);
          await rows.get('a');
          await rows.fail();
        },
      ],
      { invariant, throws: false },
    );

    expect(failure?.story).toBe(
      'A Rows.add("a", 1); A Rows.get("a") -> 1; A Rows.fail() threw Error: no such table: ' +
        'A threw Error: no such table',
    );
  });

  it('refuses what it cannot wrap', () => {
    expect(() => raced(5 as never)).toThrow('the first argument of raced must be an object, not 5');
    expect(() => raced(new Rows(), { reads: ['label'] })).toThrow(
      'reads must name methods of the Rows, and "label" is not one',
    );
    expect(() => raced(new Rows(), { reads: 'get' as never })).toThrow('reads must be an array of names of methods');
    expect(() => raced(new Rows(), { name: '' })).toThrow('name must be text that is not empty');
    expect(() => raced(new Rows(), { object: 'row' as never })).toThrow(InvalidLockOptionsError);
  });
});

describe('racePoint', () => {
  it('resolves at once outside of an exploration', async () => {
    await expect(racePoint('reads')).resolves.toBeUndefined();
  });

  it('refuses an object that is no text', async () => {
    const point = (): Promise<void> => racePoint('reads', { object: 5 as never });
    const race = exploreRaces(() => 0, [point], { invariant });

    await expect(race).rejects.toThrow('object must be text that is not empty, not 5');
  });
});

import assert from 'node:assert/strict';
import {
  exploreRaces,
  raced,
  type RaceFoundError,
  type RaceKit,
} from 'nestjs-redis-lock/races';

class Stock {
  left = 1;
  async read(): Promise<number> {
    return this.left;
  }
  async write(left: number): Promise<void> {
    this.left = left;
  }
}

describe('the last item', () => {
  const setup = (kit: RaceKit) => ({
    locks: kit.locks(),
    stock: raced(new Stock(), { name: 'stock' }),
    sold: 0,
  });
  type Shop = ReturnType<typeof setup>;

  const sell = async (shop: Shop): Promise<void> => {
    const left = await shop.stock.read();
    if (left === 0) return;
    await shop.stock.write(left - 1);
    shop.sold++;
  };
  const invariant = ({ sold }: Shop): boolean => sold === 1;

  it('is sold once, in any order of the two customers', async () => {
    const locked = (shop: Shop): Promise<void> =>
      shop.locks.using('stock', () => sell(shop));
    const { exhausted } = await exploreRaces(setup, [locked, locked], {
      invariant,
    });
    assert.ok(exhausted); // every order was tried
  });

  it('is sold twice without the lock', async () => {
    // The error has the shortest failing run as its `story`, and the seed
    // that repeats it.
    await assert.rejects(
      exploreRaces(setup, [sell, sell], { invariant }),
      ({ story }: RaceFoundError) =>
        story.startsWith(
          'A stock.read() -> 1; B stock.read() -> 1; B stock.write(0);',
        ),
    );
  });
});

import { describe, expect, it } from '@jest/globals';
import type { RedisLockService } from '../../../lib/nest/redis-lock.service.js';
import { exploreRaces } from '../../../lib/extras/races/explore-races.js';
import type { RaceKit } from '../../../lib/extras/races/locks/race-kit.js';
import { raced, racePoint } from '../../../lib/extras/races/raced.js';
import { Stock } from './stock.js';

interface Shop {
  readonly locks: RedisLockService;
  readonly stock: Stock;
  sold: number;
}

const shop = (kit: RaceKit): Shop => ({
  locks: kit.locks(),
  stock: raced(new Stock(1), { name: 'stock', reads: ['read'] }),
  sold: 0,
});

async function sell(world: Shop): Promise<void> {
  const left = await world.stock.read();
  if (left === 0) return;
  await world.stock.write(left - 1);
  world.sold++;
}

const lockedBy = (resource: string) => (world: Shop) => world.locks.using(resource, () => sell(world));
const locked = lockedBy('order:7');
const soldOnce = ({ sold }: Shop): string | undefined => (sold === 1 ? undefined : `sold ${sold} times`);

type Actors = Parameters<typeof exploreRaces<Shop>>[1];

async function storyOf(actors: Actors, invariant: (world: Shop) => unknown = soldOnce): Promise<string | undefined> {
  return (await exploreRaces(shop, actors, { invariant, throws: false })).failure?.story;
}

describe('exploreRaces with locks', () => {
  it.each(['anything', 'named'] as const)('finds no race if the work is locked (shares: %s)', async (shares) => {
    const result = await exploreRaces(shop, [locked, locked], { invariant: soldOnce, shares });

    expect(result.exhausted).toBe(true);
    expect(result.schedules).toBeGreaterThan(1);
  });

  it('finds a check outside of the lock', async () => {
    const early = async (world: Shop): Promise<void> => {
      if ((await world.stock.read()) === 0) return;
      await world.locks.using('order:7', async () => {
        await world.stock.write(0);
        world.sold++;
      });
    };

    expect(await storyOf([early, early])).toBe(
      'A stock.read() -> 1; A asks for order:7 and gets it; B stock.read() -> 1; B asks for order:7 and finds it held; ' +
        'A stock.write(0); A releases order:7; B gets order:7; B stock.write(0); B releases order:7: sold 2 times',
    );
  });

  it('finds state in memory that is changed after the release, though no point names it', async () => {
    const late = async (world: Shop): Promise<void> => {
      const sold = await world.locks.using('order:7', () => world.sold);
      world.sold = sold + 1;
    };

    expect(await storyOf([late, late], ({ sold }) => sold === 2)).toBe(
      'A asks for order:7 and gets it; A releases order:7; B asks for order:7 and gets it; B releases order:7: ' +
        'the invariant does not hold',
    );
  });

  it('tries both orders if a caller does not wait', async () => {
    const results = new Set<string>();
    const once = (world: Shop): Promise<unknown> =>
      world.locks.tryUsing('order:7', async () => racePoint('works', { object: 'order' }));
    await exploreRaces(shop, [once, once], {
      invariant: (_, { A, B }) => void results.add(JSON.stringify([A?.value, B?.value])),
    });

    expect(results.size).toBe(3);
  });

  it('finds actors that lock in different orders, and wait for each other', async () => {
    const both = (first: string, second: string) => (world: Shop) =>
      world.locks.using(first, { waitMs: Infinity }, () => world.locks.using(second, { waitMs: Infinity }, () => {}));

    const story = await storyOf([both('a', 'b'), both('b', 'a')], () => {});
    expect(story).toMatch(/ m?s pass: deadlock: B waits for a, which A holds; A waits for b, which B holds$/);
  });

  it('runs a tick of a job on one instance', async () => {
    const job = (world: Shop): Promise<unknown> =>
      world.locks.runSingleton(
        { job: 'nightly', tick: '2026-01-01', overlap: 'skip', onCrash: 'skip', claimTtlMs: 60_000, lock: {} },
        async () => {
          await racePoint('counts');
          world.sold++;
        },
      );

    expect(await storyOf([job, job])).toBeUndefined();
  });

  it('lets time pass when no actor can continue', async () => {
    const waits: number[] = [];
    const slow = async ({ kit, locks }: { kit: RaceKit; locks: RedisLockService }): Promise<void> => {
      await locks.using('order:7', async () => {
        const before = kit.now();
        await kit.sleep(90_000);
        waits.push(kit.now() - before);
      });
    };
    await exploreRaces((kit) => ({ kit, locks: kit.locks({ waitMs: 600_000 }) }), [slow, slow], {
      invariant: () => {},
    });

    expect(new Set(waits)).toEqual(new Set([90_000]));
  });
});

describe('faults', () => {
  const explore = async (fault: 'kill' | 'lose' | 'stall', actor: (world: Shop) => unknown): Promise<string> => {
    const invariant = ({ sold }: Shop): unknown => sold < 2;
    const result = await exploreRaces(shop, [actor, actor], {
      invariant,
      faults: [fault],
      shares: 'named',
      throws: false,
    });
    return result.failure?.story ?? 'nothing';
  };

  it('lets the other actor have the lock when a process has died', async () => {
    const ends = new Set<string>();
    const brief = (kit: RaceKit): Shop => ({ ...shop(kit), locks: kit.locks({ leaseMs: 2_000 }) });
    await exploreRaces(brief, [locked, locked], {
      invariant: ({ sold }, { A, B }) => void ends.add(`${A?.status} ${B?.status} ${sold}`),
      faults: ['kill'],
      shares: 'named',
    });

    expect([...ends].toSorted()).toEqual(['killed returned 1', 'returned killed 1', 'returned returned 1']);
  });

  it('finds work that does not look at its signal, and not that which does', async () => {
    const looking = (world: Shop): Promise<void> =>
      world.locks.using('order:7', async ({ signal }) => {
        const left = await world.stock.read();
        if (left === 0 || signal.aborted) return;
        world.sold++;
        await world.stock.write(left - 1);
      });
    const blind = (world: Shop): Promise<void> =>
      world.locks.using('order:7', async () => {
        const left = await world.stock.read();
        await racePoint('pays', { object: 'payment' });
        if (left === 1) world.sold++;
        await world.stock.write(0);
      });

    expect(await explore('lose', blind)).toContain('A loses order:7; B asks for order:7 and gets it');
    expect(await explore('lose', looking)).toMatch(/A stock.read\(\) -> 1; A loses order:7|nothing/);
  });

  it('happen as often as they may', async () => {
    const most = async (maxFaults: number): Promise<number> => {
      let killed = 0;
      await exploreRaces(shop, [locked, locked], {
        invariant: (_, { A, B }) => {
          killed = Math.max(killed, [A, B].filter((end) => end?.status === 'killed').length);
        },
        faults: ['kill'],
        maxFaults,
        shares: 'named',
      });
      return killed;
    };

    expect([await most(1), await most(2)]).toEqual([1, 2]);
  });
});

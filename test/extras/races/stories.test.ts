import { describe, expect, it } from '@jest/globals';
import type { LockOptions } from '../../../lib/index.js';
import { exploreRaces, raced, racePoint, type RaceKit } from '../../../lib/races.js';
import { formatTimePassed } from '../../../lib/extras/races/schedule/story.js';

class Bids {
  async raise(_bid: number, token: number): Promise<{ token: number }> {
    return { token };
  }
}

const setup = (kit: RaceKit) => ({ kit, locks: kit.locks(), bids: raced(new Bids()) });
type World = ReturnType<typeof setup>;

async function storyOf(actors: ((world: World) => unknown)[]): Promise<string> {
  const options = { invariant: () => 'told', throws: false, shares: 'named' } as const;
  return (await exploreRaces(setup, actors, options)).failure!.story;
}

const keeps = async ({ locks }: World): Promise<void> => {
  await locks.acquire('a', { leaseMs: 5_000, watchdog: false });
};

describe('the story of a race', () => {
  it('tells that an actor gets a lock after time has passed', async () => {
    const waits = (world: World): Promise<void> => world.locks.using('a', { waitMs: 60_000 }, () => racePoint('works'));

    expect(await storyOf([keeps, waits])).toMatch(
      /B asks for a and finds it held; [\d.]+ m?s pass; B gets a; B works; B releases a: told$/,
    );
  });

  it('tells that an actor ends with an error that it may throw', async () => {
    const busy = (world: World): Promise<void> => world.locks.using('a', { waitMs: 0 }, () => racePoint('works'));

    expect(await storyOf([keeps, busy])).toBe(
      'A asks for a and gets it; B asks for a and finds it held; B ends with LockBusyError: told',
    );
  });

  it('tells whether a reentrant lock is entered or left', async () => {
    const options: LockOptions = { mode: 'reentrant' };
    const again = ({ locks }: World): Promise<void> =>
      locks.using('a', options, () => locks.using('a', options, () => racePoint('works')));

    expect(await storyOf([again])).toBe(
      'A asks for a and gets it; A re-enters a; A works; A leaves its re-entry of a; A releases a: told',
    );
  });

  it.each([
    [10_000, '10 s pass'],
    [1_000, '1 s passes'],
    [5_015, '5015 ms pass'],
    [0, '0 ms pass'],
    [1, '1 ms passes'],
  ])('tells %d ms', (ms, text) => {
    expect(formatTimePassed(ms)).toBe(text);
  });
});

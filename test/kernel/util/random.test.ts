import { createHash } from 'node:crypto';
import { SystemRandom } from '../../../lib/kernel/util/clock.js';

/** Resumes a copy of a saved machine, with the same random bytes as the other copy. */
function copyThatGoesOnAt(now: number, wallNow: number): SystemRandom {
  let fills = 0;
  let time = 0;
  return new SystemRandom({
    fill: (pool) => {
      fills++;
      for (let from = 0; from < pool.length; from += 32) {
        pool.set(createHash('sha256').update(`${fills} ${from}`).digest(), from);
      }
    },
    // Each moves on a little with each look.
    now: () => now + (time += 0.001),
    wallNow: () => wallNow,
  });
}

describe('the random part of an owner id', () => {
  it('has 128 bits, and is never repeated, however many are requested', () => {
    const random = new SystemRandom();
    const ids = Array.from({ length: 10_000 }, () => random.id());
    expect(new Set(ids).size).toBe(ids.length);
    expect(ids.filter((id) => !/^[\w-]{22}$/.test(id))).toEqual([]);
    // Every bit comes up: none is left at what the buffer began with.
    const seen = Buffer.alloc(16);
    for (const id of ids) Buffer.from(id, 'base64url').forEach((byte, index) => (seen[index]! |= byte));
    expect([...seen]).toEqual(Array(16).fill(255));
  });

  it('differs between two that were made at the same time', () => {
    expect(new SystemRandom().id()).not.toBe(new SystemRandom().id());
  });

  const idsOf = (random: SystemRandom): string[] => Array.from({ length: 600 }, () => random.id());

  it.each([
    ['a microsecond later', 1_000.001, 1_800_000_000_000],
    ['in the same nanosecond of its own time, another day', 1_000, 1_800_086_400_000],
  ])('differs in a copy of the machine that continues %s', (_when, now, wallNow) => {
    const original = idsOf(copyThatGoesOnAt(1_000, 1_800_000_000_000));
    const copy = idsOf(copyThatGoesOnAt(now, wallNow));
    expect(new Set([...original, ...copy]).size).toBe(1_200);
  });

  it('is the same if no clock distinguishes the copies', () => {
    expect(idsOf(copyThatGoesOnAt(1_000, 5))).toEqual(idsOf(copyThatGoesOnAt(1_000, 5)));
  });
});

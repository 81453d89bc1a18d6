import { SystemRandom } from '../../../lib/core/random.js';

describe('the random part of an owner id', () => {
  it('has 128 bits, and is never given twice, however many are asked for', () => {
    const random = new SystemRandom();
    const ids = Array.from({ length: 10_000 }, () => random.id());
    expect(new Set(ids).size).toBe(ids.length);
    for (const id of ids) expect(id).toMatch(/^[\w-]{22}$/);
    // Every bit comes up: none is left at what the buffer began with.
    const seen = Buffer.alloc(16);
    for (const id of ids) Buffer.from(id, 'base64url').forEach((byte, index) => (seen[index]! |= byte));
    expect([...seen]).toEqual(Array(16).fill(255));
  });

  it('differs between two that were made at the same time', () => {
    expect(new SystemRandom().id()).not.toBe(new SystemRandom().id());
  });
});

import { ClusterKeys } from '../../../lib/redis/keys.js';
import { slotOf } from '../../../lib/redis/topology/slot.js';

describe('the slot of a key', () => {
  it.each([
    // From the specification, and as CLUSTER KEYSLOT of Redis 7 says.
    ['123456789', 12_739],
    ['foo', 12_182],
    ['{foo}bar', 12_182],
    ['bar{foo}', 12_182],
    ['foo{}{bar}', 8_363],
    ['foo{{bar}}zap', 4_015],
    ['', 0],
  ])('%j is %i', (key, slot) => {
    expect(slotOf(key)).toBe(slot);
  });
});

describe('the keys of a cluster', () => {
  it('have the fence in the slot of the lock, and one for each slot', () => {
    const keys = new ClusterKeys('lock');
    const fences = new Map<number, string>();
    const wrong: string[] = [];
    for (let i = 0; i < 20_000; i++) {
      const lock = keys.lock(`order:${i}`);
      const fence = keys.fence(lock);
      const slot = slotOf(lock);
      if (slotOf(fence) !== slot || (fences.get(slot) ?? fence) !== fence) wrong.push(lock);
      fences.set(slot, fence);
    }
    expect(wrong).toEqual([]);
    expect(new Set(fences.values()).size).toBe(fences.size);
    expect(fences.size).toBeGreaterThan(10_000);
  });

  it('are all in the slot of a hash tag that the prefix has', () => {
    const keys = new ClusterKeys('{app}:lock');
    expect(new Set(['a', 'b'].flatMap((name) => [keys.lock(name), keys.fence(keys.lock(name))]).map(slotOf))).toEqual(
      new Set([slotOf('app')]),
    );
  });
});

import type { Holder } from '../../lib/kernel/api/holder.js';
import { mergeSeen } from '../../lib/quorum/holders.js';

const seen = (...holders: Holder[]) => ({ holders, holderCount: holders.length });

function holder(instanceId: string, fencingToken: number, more: Partial<Holder> = {}): Holder {
  const lease = { fencingToken, ttlMs: 1_000, leaseMs: 1_000, heldMs: 50, depth: 1 };
  return { instanceId, isThisProcess: false, mode: 'exclusive', ...lease, ...more };
}

describe('the holders that a quorum sees', () => {
  it('are those that a majority names, with the token, the time and the rest of the majority', () => {
    const views = [
      seen(holder('a', 320, { ttlMs: 900, heldMs: 70 })),
      seen(holder('a', 640, { ttlMs: 700, heldMs: 50 })),
      seen(holder('a', 960, { ttlMs: 800, heldMs: 60 })),
    ];
    expect(mergeSeen(views, 0, 2)).toEqual({
      holderCount: 1,
      holders: [holder('a', 640, { ttlMs: 800, heldMs: 60 })],
    });
  });

  it('are not those of a minority, and none where the votes are split', () => {
    expect(
      mergeSeen([seen(holder('a', 32)), seen(holder('a', 32)), seen(holder('b', 64))], 0, 2)!.holders,
    ).toMatchObject([{ instanceId: 'a' }]);
    expect(mergeSeen([seen(holder('a', 32)), seen(holder('b', 64)), undefined], 0, 2)).toBeUndefined();
    expect(mergeSeen([], 3, 2)).toBeUndefined();
  });

  it('may have the votes of nodes that are silent', () => {
    expect(mergeSeen([seen(holder('a', 32)), undefined], 1, 2)).toMatchObject({
      holderCount: 1,
      holders: [{ instanceId: 'a' }],
    });
    // Both cannot hold it, and neither has more votes.
    expect(mergeSeen([seen(holder('a', 32)), seen(holder('b', 32))], 1, 2)).toBeUndefined();
    const two = mergeSeen([seen(holder('a', 32)), seen(holder('a', 32)), seen(holder('b', 32))], 2, 3);
    expect(two).toMatchObject({ holderCount: 1, holders: [{ instanceId: 'a' }] });
  });

  it('may be several readers, also of one process', () => {
    const read = (instanceId: string, token: number) => holder(instanceId, token, { mode: 'read' });
    const view = seen(read('a', 32), read('a', 64), read('b', 96));
    const less = seen(read('a', 64), read('b', 96));
    expect(mergeSeen([view, view, less], 0, 2)).toMatchObject({
      holderCount: 3,
      holders: [{ instanceId: 'a' }, { instanceId: 'a' }, { instanceId: 'b' }],
    });
  });

  it('are a sample of very many readers, where no two nodes name the same', () => {
    const view = (first: number) => ({
      holders: Array.from({ length: 8 }, (_, i) => holder(`r${first + i}`, 32 * (first + i + 1), { mode: 'read' })),
      holderCount: 100,
    });
    const merged = mergeSeen([view(0), view(20), { ...view(40), holderCount: 90 }], 0, 2)!;
    expect(merged.holders).toHaveLength(8);
    expect(merged.holderCount).toBe(100);
  });

  it('are not mixed of different modes', () => {
    const views = [seen(holder('a', 32, { mode: 'read' })), seen(holder('b', 32)), seen(holder('b', 32))];
    expect(mergeSeen(views, 2, 3)!.holders).toMatchObject([{ instanceId: 'b', mode: 'exclusive' }]);
  });
});

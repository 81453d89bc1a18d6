import type { QuorumNode } from '../../lib/quorum/node.js';
import { QuorumSeat } from '../../lib/quorum/candidate-at-node.js';

const LEASE_MS = 3_000;

function seat(): QuorumSeat {
  let names = 0;
  const node = { answered: () => {}, expectLate: () => {} } as unknown as QuorumNode;
  const newName = () => ({ resource: 'a', id: `one/x.${++names}`, mode: 'exclusive' as const });
  return new QuorumSeat(node, newName(), newName);
}

describe('the seat of a contender at one node', () => {
  const GRANT = { fencingToken: 64, stamp: 1_000 };

  it('has the vote that a message names', () => {
    const one = seat();
    expect(one.hearMessage(GRANT)).toBe(true);
    expect(one.vote).toEqual(GRANT);
  });

  it('does not have it again by the same message, once it was forgotten: anybody in the channels can repeat it', () => {
    const one = seat();
    one.hearMessage(GRANT);
    one.missed(2_000, true);
    expect(one.vote).toBeUndefined();
    expect(one.hearMessage(GRANT)).toBe(false);
    expect(one.vote).toBeUndefined();
  });

  it('has it by the next grant, and by the answer of the node itself', () => {
    const one = seat();
    one.hearMessage(GRANT);
    one.missed(2_000, true);
    expect(one.hearMessage({ fencingToken: 96, stamp: 2_500 })).toBe(true);
    one.missed(3_000, true);
    one.heed({ status: 'granted', fencingToken: 96 }, 3_500);
    expect(one.vote).toEqual({ fencingToken: 96, stamp: 3_500 });
  });

  it('listens anew where it has another name', () => {
    const one = seat();
    one.hearMessage(GRANT);
    one.yield(LEASE_MS);
    expect(one.hearMessage({ fencingToken: 32, stamp: 2_000 })).toBe(true);
  });
});

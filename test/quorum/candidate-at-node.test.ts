import type { QuorumNode } from '../../lib/quorum/node.js';
import { CandidateAtNode } from '../../lib/quorum/candidate-at-node.js';

const LEASE_MS = 3_000;

function atNode(): CandidateAtNode {
  let names = 0;
  const node = { answered: () => {}, expectLate: () => {} } as unknown as QuorumNode;
  const newName = () => ({ resource: 'a', id: `one/x.${++names}`, mode: 'exclusive' as const });
  return new CandidateAtNode(node, newName(), newName);
}

describe('a candidate at one node', () => {
  const GRANT = { fencingToken: 64, stamp: 1_000 };

  it('has the vote that a message names', () => {
    const one = atNode();
    expect(one.onGrantMessage(GRANT)).toBe(true);
    expect(one.vote).toEqual(GRANT);
  });

  it('does not have it again by the same message, once it was forgotten: any process in the channels can repeat it', () => {
    const one = atNode();
    one.onGrantMessage(GRANT);
    one.onNoReply(2_000, true);
    expect(one.vote).toBeUndefined();
    expect(one.onGrantMessage(GRANT)).toBe(false);
    expect(one.vote).toBeUndefined();
  });

  it('has it by the next grant, and by the answer of the node itself', () => {
    const one = atNode();
    one.onGrantMessage(GRANT);
    one.onNoReply(2_000, true);
    expect(one.onGrantMessage({ fencingToken: 96, stamp: 2_500 })).toBe(true);
    one.onNoReply(3_000, true);
    one.onReply({ status: 'granted', fencingToken: 96 }, 3_500);
    expect(one.vote).toEqual({ fencingToken: 96, stamp: 3_500 });
  });

  it('subscribes again if it has another name', () => {
    const one = atNode();
    one.onGrantMessage(GRANT);
    one.passVoteOn(LEASE_MS);
    expect(one.onGrantMessage({ fencingToken: 32, stamp: 2_000 })).toBe(true);
  });
});

import { Witness } from './registers.js';

describe('the witness', () => {
  it('takes writes in the order of their tokens, and the same token again', () => {
    const witness = new Witness();
    expect(witness.write('stock', 'a', 32, 0).accepted).toBe(true);
    expect(witness.write('stock', 'a', 32, 1).accepted).toBe(true);
    expect(witness.write('stock', 'b', 64, 2).accepted).toBe(true);
  });

  it('refuses a token that is smaller than one it has seen, for that resource alone', () => {
    const witness = new Witness();
    witness.write('stock', 'b', 64, 0);
    expect(witness.write('stock', 'a', 32, 0).accepted).toBe(false);
    expect(witness.write('prices', 'a', 32, 0).accepted).toBe(true);
  });

  it('lets an update get lost in the counter that nothing fences', () => {
    const witness = new Witness();
    const [one, other] = [witness.enter('stock', 'a'), witness.enter('stock', 'b')];
    witness.write('stock', 'a', 32, one);
    expect(witness.write('stock', 'b', 64, other)).toMatchObject({ found: 1 });
    expect(other).toBe(0);
    expect(witness.enter('stock', 'c')).toBe(1);
  });

  it('counts who is inside, but not those whose process is gone', () => {
    const witness = new Witness();
    for (const call of ['a', 'b', 'c']) witness.enter('stock', call);
    witness.leave(['b']);
    expect(witness.write('stock', 'a', 32, 0).inside).toBe(2);
    expect(witness.write('stock', 'c', 64, 1).inside).toBe(1);
  });
});

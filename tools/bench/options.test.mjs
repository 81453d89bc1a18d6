import assert from 'node:assert/strict';
import { describe, it } from './testing.mjs';
import { readOptions } from './options.mjs';

const KNOWN = ['one', 'two', 'three'];
const read = (...args) => readOptions(args, KNOWN);

describe('the command line', () => {
  it('runs everything for five rounds and writes the page', () => {
    const { rounds, scenarios, writeDocs } = read();
    assert.deepEqual({ rounds, scenarios, writeDocs }, { rounds: 5, scenarios: KNOWN, writeDocs: true });
  });

  it('writes the page after a part only when it is told to', () => {
    assert.equal(read('--scenario', 'one').writeDocs, false);
    assert.equal(read('--scenario', 'one', '--write-docs').writeDocs, true);
  });

  it('never writes it after a smoke run', () => {
    assert.equal(read('--quick', '--write-docs').writeDocs, false);
  });

  it('takes several scenarios, in the order of the report', () => {
    assert.deepEqual(read('--scenario', 'three', '--scenario', 'one').scenarios, ['one', 'three']);
    assert.deepEqual(read('--scenario', 'two,one').scenarios, ['one', 'two']);
  });

  it('takes the name of a group for all that is in it', () => {
    const { scenarios, isPart } = readOptions(['--scenario', 'last,one'], KNOWN, { last: ['two', 'three'] });
    assert.deepEqual({ scenarios, isPart }, { scenarios: ['one', 'two', 'three'], isPart: true });
  });

  it('compares with a commit for fifteen rounds, only where two builds can take turns, and writes nothing', () => {
    const known = ['uncontended-1', 'quorum-1', 'contended-2ms'];
    const { against, rounds, scenarios, writeDocs } = readOptions(['--against', 'HEAD~1'], known);
    const expected = { against: 'HEAD~1', rounds: 15, scenarios: ['uncontended-1', 'contended-2ms'], writeDocs: false };
    assert.deepEqual({ against, rounds, scenarios, writeDocs }, expected);
    assert.throws(() => readOptions(['--against', 'HEAD', '--scenario', 'quorum-1'], known), /No scenario is called/);
  });

  it('refuses what it does not know', () => {
    assert.throws(() => read('--scenario', 'four'), /No scenario is called four/);
    assert.throws(() => read('--rounds', '0'), /whole number/);
    assert.throws(() => read('--fast'), /fast/);
  });
});

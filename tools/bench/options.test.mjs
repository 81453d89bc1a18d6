import assert from 'node:assert/strict';
import { describe, it } from './testing.mjs';
import { readOptions } from './options.mjs';

const KNOWN = ['one', 'two', 'three'];
const read = (...args) => readOptions(args, KNOWN);

describe('the command line', () => {
  it('runs everything for five rounds', () => {
    const { rounds, scenarios, writeDocs } = read();
    assert.deepEqual({ rounds, scenarios, writeDocs }, { rounds: 5, scenarios: KNOWN, writeDocs: false });
  });

  it('writes the page after all that it shows, and after nothing else', () => {
    const options = readOptions(['--write-docs'], KNOWN, { page: ['three', 'one'] });
    assert.deepEqual([options.writeDocs, options.scenarios], [true, ['one', 'three']]);
    for (const other of [['--quick'], ['--scenario', 'one'], ['--against', 'HEAD']])
      assert.throws(() => read('--write-docs', ...other), /--write-docs chooses/);
  });

  it('takes several scenarios, in the order of the report', () => {
    assert.deepEqual(read('--scenario', 'three', '--scenario', 'one').scenarios, ['one', 'three']);
    assert.deepEqual(read('--scenario', 'two,one').scenarios, ['one', 'two']);
  });

  it('takes the name of a group for all that is in it', () => {
    const { scenarios } = readOptions(['--scenario', 'last,one'], KNOWN, { last: ['two', 'three'] });
    assert.deepEqual(scenarios, ['one', 'two', 'three']);
  });

  it('compares with a commit for fifteen rounds, only where two builds can take turns', () => {
    const known = ['uncontended-1', 'quorum-1', 'contended-2ms'];
    const { against, rounds, scenarios } = readOptions(['--against', 'HEAD~1'], known);
    const expected = { against: 'HEAD~1', rounds: 15, scenarios: ['uncontended-1', 'contended-2ms'] };
    assert.deepEqual({ against, rounds, scenarios }, expected);
    assert.throws(() => readOptions(['--against', 'HEAD', '--scenario', 'quorum-1'], known), /No scenario is called/);
  });

  it('refuses what it does not know', () => {
    assert.throws(() => read('--scenario', 'four'), /No scenario is called four/);
    assert.throws(() => read('--rounds', '0'), /whole number/);
    assert.throws(() => read('--fast'), /fast/);
  });
});

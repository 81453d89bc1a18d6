import assert from 'node:assert/strict';
import { describe, it } from './testing.mjs';
import { commandReader } from './network/command-reader.mjs';
import { overlaps } from './measure/exclusion.mjs';
import { median, quantile, rotated, spread } from './measure/statistics.mjs';

describe('statistics', () => {
  it('take the middle one, or the middle between two', () => {
    assert.equal(median([3, 1, 2]), 2);
    assert.equal(median([4, 1, 2, 3]), 2.5);
    assert.ok(Number.isNaN(median([])));
  });

  it('sort by value, and leave what they are given alone', () => {
    const numbers = [10, 9, 100];
    assert.equal(quantile(numbers, 1), 100);
    assert.equal(quantile(numbers, 0), 9);
    assert.deepEqual(numbers, [10, 9, 100]);
  });

  it('find the value that 99 % do not exceed', () => {
    const numbers = Array.from({ length: 100 }, (_, index) => index + 1);
    assert.equal(quantile(numbers, 0.99), 99);
    assert.deepEqual(spread(numbers), { median: 50.5, min: 1, max: 100 });
  });

  it('let everyone begin in turn', () => {
    assert.deepEqual(
      [0, 1, 2, 3].map((round) => rotated(['a', 'b', 'c'], round).join('')),
      ['abc', 'bca', 'cab', 'abc'],
    );
  });
});

describe('the check of exclusion', () => {
  const stamps = (...sections) => ({
    entered: Float64Array.from(sections, ([entered]) => entered),
    left: Float64Array.from(sections, ([, left]) => left),
  });

  it('accepts sections that touch', () => {
    assert.equal(overlaps([stamps([0, 2], [4, 6]), stamps([2, 4], [6, 7])]), 0);
  });

  it('finds sections of two processes that overlap, and one within another', () => {
    assert.equal(overlaps([stamps([0, 3]), stamps([2, 4])]), 1);
    assert.equal(overlaps([stamps([0, 10]), stamps([1, 2], [3, 4])]), 2);
  });

  it('finds a section that takes no time within another', () => {
    assert.equal(overlaps([stamps([0, 10]), stamps([5, 5])]), 1);
  });

  it('lets as many in as there are permits, and no more', () => {
    const four = [stamps([0, 10], [20, 30]), stamps([1, 9], [10, 12]), stamps([2, 8]), stamps([3, 4], [9, 15])];
    assert.equal(overlaps(four, 4), 0);
    assert.equal(overlaps(four, 3), 1);
    assert.equal(overlaps(four, 2), 2);
  });

  it('lets readers in beside readers, and nobody beside a writer', () => {
    const sections = (writes, ...times) => ({ ...stamps(...times), writes: Uint8Array.from(writes) });
    const readers = sections([0, 0], [0, 4], [10, 14]);
    assert.equal(overlaps([readers, sections([0, 0], [1, 3], [12, 20])]), 0);
    assert.equal(overlaps([readers, sections([1, 1], [4, 10], [14, 20])]), 0);
    assert.equal(overlaps([readers, sections([1], [3, 5])]), 1, 'a writer beside a reader');
    assert.equal(overlaps([readers, sections([1], [5, 12])]), 1, 'a reader beside a writer');
    assert.equal(overlaps([sections([1], [0, 4]), sections([1], [3, 5])]), 1, 'two writers');
  });

  it('knows readers from writers also where some never got in', () => {
    const processes = [
      { ...stamps([0, 2]), writes: Uint8Array.of(0, 1) },
      { ...stamps([1, 3]), writes: Uint8Array.of(0) },
    ];
    assert.equal(overlaps(processes), 0);
  });
});

describe('the counter of commands', () => {
  const command = (...parts) =>
    `*${parts.length}\r\n${parts.map((part) => `$${Buffer.byteLength(part)}\r\n${part}\r\n`).join('')}`;
  const stream = Buffer.from(
    [command('PING'), command('SET', 'key', '*3\r\n$1\r\n'), command('EVALSHA', 'é', ''), command('GET', 'x')].join(''),
  );

  it('counts commands, not what is in them', () => {
    assert.equal(counted([stream]), 4);
  });

  it('counts the same whatever the pieces are', () => {
    for (let size = 1; size < stream.length; size++) {
      const pieces = Array.from({ length: Math.ceil(stream.length / size) }, (_, index) =>
        stream.subarray(index * size, (index + 1) * size),
      );
      assert.equal(counted(pieces), 4, `in pieces of ${size}`);
    }
  });

  function counted(chunks) {
    let commands = 0;
    const read = commandReader(() => commands++);
    for (const chunk of chunks) read(chunk);
    return commands;
  }
});

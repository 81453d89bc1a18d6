import { story } from '../checkers/story.js';
import { faultsOutcome } from '../report/faults-rows.js';
import { judgeChapter } from './judge-chapter.js';

const told = () =>
  story()
    .hold('a', 'stock', { from: 0, to: 10, token: 32 })
    .hold('b', 'stock', { asked: 5, from: 11, to: 20, token: 64 })
    .fault('one', { from: 30, to: 40, victims: ['a'] })
    .fault('one', { from: 50, to: 60, victims: ['a'] })
    .fault('missed', { from: 70, to: 80, victims: ['a'], missed: true });

const judged = (kinds: string[]) =>
  judgeChapter(
    { title: 'a chapter', seed: 1, leaseMs: 300, kinds, unpromised: [], splitsVotes: false },
    told().history,
  );

const targets = { holds: 2, contended: 1, faults: 2, each: 1, longest: false };
const rowOf = (kinds: string[], what: string) =>
  faultsOutcome([judged(kinds)], targets).rows.find((row) => row.what === what)!;

describe('what came of a chapter', () => {
  it('survives the way from one process to another', () => {
    const chapter = judged(['one']);
    expect(JSON.parse(JSON.stringify(chapter))).toEqual(chapter);
    expect(chapter).toMatchObject({ holds: 2, contended: 1, faults: { one: 2 } });
  });

  it('has also the faults that should have come and never came', () => {
    expect(rowOf(['one'], 'faults of each kind')).toMatchObject({ met: true, seen: '2 (one)' });
    expect(rowOf(['one', 'other'], 'faults of each kind')).toMatchObject({ met: false, seen: '0 (other)' });
    expect(rowOf(['one', 'missed'], 'faults of each kind')).toMatchObject({ met: false, seen: '0 (missed)' });
  });
});

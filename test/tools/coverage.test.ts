import { coverageByRoom, coverageTable, lowerRooms } from '../../tools/line-coverage/rooms.mjs';

const lines = (total: number, covered: number) => ({ lines: { total, covered } });
const summary = {
  total: lines(60, 45),
  '/p/lib/core/lease/a.ts': lines(10, 10),
  '/p/lib/core/lease/b.ts': lines(30, 20),
  '/p/lib/core/c.ts': lines(20, 15),
};
const rooms = coverageByRoom(summary, '/p');

describe('the coverage of a room', () => {
  it('is that of its files, and not of the folders in it', () => {
    expect(rooms).toEqual([
      { room: 'lib/core', lines: 20, covered: 15 },
      { room: 'lib/core/lease', lines: 40, covered: 30 },
      { room: 'all', lines: 60, covered: 45 },
    ]);
  });

  it('is a line, with what it was', () => {
    const before = [{ room: 'lib/core', lines: 20, covered: 20 }];
    expect(
      coverageTable(rooms, before)
        .split('\n')
        .map((line) => line.replace(/ +/g, ' ')),
    ).toEqual(['lib/core 15 of 20 75.0 % was 100.0 %', 'lib/core/lease 30 of 40 75.0 %', 'all 45 of 60 75.0 %']);
  });

  it.each([
    ['more of it is missed than before', { lines: 20, covered: 16 }, ['lib/core']],
    ['it is as it was', { lines: 20, covered: 15 }, []],
    ['it had more lines, of which as many were missed', { lines: 40, covered: 35 }, []],
    ['it was not there', undefined, []],
  ])('is lower, or not, where %s', (_, was, lower) => {
    expect(lowerRooms(rooms, was ? [{ room: 'lib/core', ...was }] : [])).toEqual(lower);
  });
});

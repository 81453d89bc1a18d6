import { eventually } from '../../../test/support/expect/eventually.js';
import { AnswerWatch } from './answer-watch.js';

it('tells since when an answer was awaited that came late, also where it was an error', async () => {
  const takes = [10, 50, 51, 0, 200];
  let [now, asked] = [1_000, 0];
  const ping = async (): Promise<'PONG'> => {
    now += takes[asked++] ?? 0;
    if (asked === takes.length) throw new Error('LOADING');
    return 'PONG';
  };
  const told: number[] = [];
  const watch = new AnswerWatch(
    () => [{ ping }],
    (from) => told.push(from),
    () => now,
  );
  await eventually(() => {
    if (asked <= takes.length) throw new Error('It has not asked so often');
  });
  watch.end();
  expect(told).toEqual([1_060, 1_111]);
});
